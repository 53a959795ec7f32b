"""Dependence analysis and generation of CUDA from a task: drop-in wrapper, naive CUDA, variants."""
