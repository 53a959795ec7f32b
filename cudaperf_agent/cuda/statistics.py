"""Speedups with an interval: medians, bootstrapped, and what two runs of the same thing differ by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cudaperf_agent.cuda.verdict import Speedup

_RESAMPLES = 2000


def speedup(
    baseline: str,
    reference: Sequence[float],
    candidate: Sequence[float],
    *,
    level: float = 0.95,
    reference_cv: float = 0.0,
    candidate_cv: float = 0.0,
    seed: int = 0,
) -> Speedup:
    """Ratio of medians (reference ÷ candidate) with a percentile-bootstrap interval.

    Args:
        baseline: Name of the reference.
        reference, candidate: Raw samples, seconds.
        level: Coverage of the interval.
        reference_cv, candidate_cv: Relative standard deviation between medians of processes that run the same code (the
            machine's A/A spread, `spread.Spread`), which samples of one process cannot show; it widens the interval.
        seed: Of the resampling.

    Raises:
        ValueError: A sample set is empty.
    """
    if not reference or not candidate:
        raise ValueError("a speedup needs samples of both sides")
    rng = np.random.default_rng(seed)
    drawn = np.log(_medians(reference, rng)) - np.log(_medians(candidate, rng))
    between = float(np.hypot(reference_cv, candidate_cv))
    if between:
        drawn = drawn + rng.normal(0.0, between, drawn.shape)
    tail = (1.0 - level) / 2.0
    low, high = np.exp(np.quantile(drawn, [tail, 1.0 - tail]))
    value = float(np.median(reference) / np.median(candidate))
    return Speedup(baseline, value, min(float(low), value), max(float(high), value))


def _medians(samples: Sequence[float], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    data = np.asarray(samples, dtype=np.float64)
    return np.asarray(np.median(data[rng.integers(0, len(data), (_RESAMPLES, len(data)))], axis=1))
