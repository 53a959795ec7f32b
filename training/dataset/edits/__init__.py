"""Edits beyond those of the first measured set: vector loads, kernels split and joined, other shapes of a launch."""
