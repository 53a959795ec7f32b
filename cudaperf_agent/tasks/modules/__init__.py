"""PyTorch modules as tasks: found in a file without importing it, described by a run in the sandbox."""
