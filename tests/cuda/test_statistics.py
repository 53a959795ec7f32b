"""Intervals of speedups hold the truth about as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from cudaperf_agent.cuda.statistics import speedup


def test_the_interval_covers_the_true_ratio() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for trial in range(200):
        slow = 3e-4 * np.exp(rng.normal(0, 0.05, 24))
        fast = 1e-4 * np.exp(rng.normal(0, 0.05, 24))
        found = speedup("naive", slow.tolist(), fast.tolist(), seed=trial)
        assert found.low <= found.value <= found.high
        hits += found.low <= 3.0 <= found.high
    assert 180 <= hits <= 200


def test_spread_between_processes_widens_it() -> None:
    same = [1e-4 + i * 1e-9 for i in range(24)]
    narrow, wide = speedup("naive", same, same), speedup("naive", same, same, reference_cv=0.02, candidate_cv=0.02)
    assert wide.low < narrow.low <= 1 <= narrow.high < wide.high


def test_no_samples_no_speedup() -> None:
    with pytest.raises(ValueError, match="samples"):
        speedup("naive", [], [1.0])
