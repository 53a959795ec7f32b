"""Estimators against brute-force enumeration, intervals against a simulation."""

from __future__ import annotations

from itertools import combinations
from math import exp, log

import numpy as np
import pytest

from training.evaluation.intervals import BootstrapConfig, bootstrap, paired_difference
from training.evaluation.metrics import (
    Trajectory,
    best_of_k,
    correct_only_geometric_mean,
    fast_p,
    headroom_closed,
    log_speed_at_k,
    pass_at_k,
    speed_at_k,
)

RUNS = [
    Trajectory(True, 3.0),
    Trajectory(False),
    Trajectory(True, 0.5),
    Trajectory(True, 1.2),
    Trajectory(False),
    Trajectory(True, 8.0),
]


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("correct", range(7))
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one(correct: int, k: int) -> None:
    outcomes = [True] * correct + [False] * (6 - correct)
    subsets = list(combinations(outcomes, k))
    assert pass_at_k(6, correct, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets))


@pytest.mark.parametrize("k", range(1, 7))
def test_best_of_k_is_the_mean_of_the_subsets_maxima(k: int) -> None:
    values = [0.3, -1.0, 2.5, 2.5, 0.0, 7.0]
    subsets = list(combinations(values, k))
    assert best_of_k(values, k) == pytest.approx(sum(max(s) for s in subsets) / len(subsets))


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("k", range(1, 7))
def test_speed_at_k_by_enumeration(k: int, raw: bool) -> None:
    def value(t: Trajectory) -> float:
        gain = log(t.speedup) if t.correct and t.speedup else 0.0
        return gain if raw else max(gain, 0.0)

    subsets = list(combinations(RUNS, k))
    expected = sum(max(value(t) for t in s) for s in subsets) / len(subsets)
    assert log_speed_at_k(RUNS, k, raw=raw) == pytest.approx(expected)
    assert speed_at_k([RUNS, RUNS], k, raw=raw) == pytest.approx(exp(expected))


def test_a_slowdown_costs_nothing_unless_raw() -> None:
    slow = [Trajectory(True, 0.25)]
    assert speed_at_k([slow], 1) == 1.0
    assert speed_at_k([slow], 1, raw=True) == pytest.approx(0.25)


def test_fast_p_counts_strictly_faster_correct_ones() -> None:
    assert fast_p(RUNS, 1.0) == pytest.approx(3 / 6)
    assert fast_p(RUNS, 3.0) == pytest.approx(1 / 6)


def test_a_correct_only_mean_comes_with_its_count() -> None:
    assert correct_only_geometric_mean(RUNS) == (pytest.approx((3 * 0.5 * 1.2 * 8) ** 0.25), 4)
    assert correct_only_geometric_mean([Trajectory(False)]) == (None, 0)


def test_headroom_runs_from_naive_to_the_limit() -> None:
    assert headroom_closed(8.0, 8.0, 1.0) == 0
    assert headroom_closed(8.0, 1.0, 1.0) == 1
    assert headroom_closed(8.0, 2.0, 1.0) == pytest.approx(2 / 3)
    assert headroom_closed(1.0, 1.0, 1.0) is None


@pytest.mark.parametrize(("n", "k"), [(3, 4), (3, 0), (0, 1)])
def test_an_impossible_k_is_refused(n: int, k: int) -> None:
    with pytest.raises(ValueError, match=f"k = {k}"):
        pass_at_k(n, 0, k)


@pytest.mark.parametrize(("units", "heavy"), [(40, False), (40, True), (24, False)])
def test_intervals_cover_as_they_say(units: int, heavy: bool) -> None:
    """Coverage of the 95 % interval of a mean, over 1,500 simulated benchmarks, is within 93 to 97 %."""
    rng = np.random.default_rng(7)
    config = BootstrapConfig(resamples=600)
    truth = exp(0.125) if heavy else 0.0
    covered = 0
    for trial in range(1500):
        values = rng.lognormal(0, 0.5, units) if heavy else rng.normal(0, 1, units)
        interval = bootstrap(values.tolist(), config=BootstrapConfig(config.resamples, seed=trial))
        covered += interval.low <= truth <= interval.high
    assert 0.93 <= covered / 1500 <= 0.97


def test_whole_clusters_are_resampled() -> None:
    """Ten families of eight alike tasks: intervals that resample tasks cover far too little, clustered ones do not."""
    rng = np.random.default_rng(3)
    clusters = [f for f in range(20) for _ in range(8)]
    hits = {"task": 0, "family": 0}
    for trial in range(400):
        values = np.repeat(rng.normal(0, 1, 20), 8) + rng.normal(0, 0.1, 160)
        config = BootstrapConfig(400, seed=trial)
        for name, groups in (("task", None), ("family", clusters)):
            interval = bootstrap(values.tolist(), clusters=groups, config=config)
            hits[name] += interval.low <= 0 <= interval.high
    assert hits["family"] / 400 > 0.91
    assert hits["task"] / 400 < 0.75


def test_pairing_takes_out_what_tasks_share() -> None:
    rng = np.random.default_rng(5)
    hard = rng.normal(0, 5, 40)
    first, second = hard + 0.3 + rng.normal(0, 0.2, 40), hard + rng.normal(0, 0.2, 40)
    paired = paired_difference(first.tolist(), second.tolist())
    assert paired.low > 0
    assert paired.high - paired.low < 0.5


def test_an_interval_repeats_exactly() -> None:
    assert bootstrap([1.0, 2.0, 4.0, 8.0]) == bootstrap([1.0, 2.0, 4.0, 8.0])


def test_no_interval_is_claimed_from_two_tasks() -> None:
    interval = bootstrap([1.0, 2.0])
    assert (interval.value, interval.low, interval.high, interval.units) == (1.5, -np.inf, np.inf, 2)
