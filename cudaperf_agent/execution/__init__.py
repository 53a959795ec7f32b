"""How foreign code is run: child processes under limits, the sandbox, and native calls of shared libraries."""
