"""What vLLM and the tests of candidates share on one machine: processors, and the engine's batch sizes."""

from __future__ import annotations

import os

SPARED_PROCESSORS = 4
"""Not used by compilers and tests beside vLLM: its two processes and the trainer must not wait for them."""
CAPTURE_SIZES = (1, 8, 16, 32, 64, 128, 256)
"""Batch sizes with CUDA graphs: an engine of the same numbers starts from an earlier one's cache."""


def judging_jobs(spared: int = 0) -> int:
    """Compilers, and tests, at once: all processors that this process may use but the spared ones, at least one."""
    return max(1, len(os.sched_getaffinity(0)) - spared)
