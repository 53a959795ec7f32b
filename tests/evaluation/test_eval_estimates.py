"""Every estimate of a report equals what one computes by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, log

import numpy as np
import pytest
from eval_facts import LIMIT, NAIVE, C, evaluation, example, fails, right, task, turn

from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.store.records import RunStatus, StoredAttempt, Trajectory
from training.evaluation.baselines import FASTEST_C, HAND, kind_of, ordered
from training.evaluation.collect import outcome, speed_of_light
from training.evaluation.compare import compare
from training.evaluation.document import text_document, times_interval
from training.evaluation.estimates import EstimateConfig, estimate
from training.evaluation.facts import Evaluation, Outcome
from training.evaluation.intervals import BootstrapConfig, bootstrap, ratio, share, share_difference
from training.evaluation.sections import document

QUICK = EstimateConfig(ks=(1, 2, 5), bootstrap=BootstrapConfig(resamples=500))


def test_pass_at_k_by_hand() -> None:
    found = estimate(example(), "g", QUICK)
    assert (found.tasks, found.refused, found.unfinished, found.trajectories) == (3, 1, 0, 2)
    assert {k: i.value for k, i in found.pass_at.items()} == pytest.approx({1: 0.5, 2: 2 / 3})
    assert found.curve == pytest.approx((0.5, 2 / 3))
    assert found.pass_of_all == pytest.approx(0.5 * 3 / 4)
    assert found.failures == {"wrong": 1, "compile_error": 1, "hidden wrong": 1}
    assert found.statuses == ({"correct": 3, "wrong": 3}, {"compile_error": 1, "correct": 2, "wrong": 2})


def test_speeds_by_hand() -> None:
    found = estimate(example(), "g", QUICK)
    assert [s.baseline for s in found.speeds] == [C, NAIVE, LIMIT]
    speed = found.speeds[0]
    assert {k: i.value for k, i in speed.speed_at.items()} == pytest.approx({1: 2 ** (2.5 / 3), 2: 32 ** (1 / 3)})
    assert {k: i.value for k, i in speed.raw_at.items()} == pytest.approx({1: 2 ** (2 / 3), 2: 32 ** (1 / 3)})
    assert {p: i.value for p, i in speed.fast.items()} == pytest.approx({1.0: 1 / 3, 1.5: 1 / 3, 2.0: 1 / 3})
    assert (speed.mean, speed.over, speed.tasks) == (pytest.approx(16 ** (1 / 3)), 3, 3)
    naive = found.speeds[1]
    assert naive.fast[1.0].value == pytest.approx((0.5 + 0.5) / 3)  # exactly as fast is not faster
    assert naive.mean == pytest.approx(2.0)


def test_kernels_that_are_right_and_far_slower_than_naive_are_counted() -> None:
    tasks = (
        task("a", right(8, 1, 0.5), right(8, 0.21, 0.1)),
        task("b", right(2, 0.19, 0.1), fails("wrong")),
        task("c", right(1, 0.01, 0.005), right(1, 0.001, 0.0005)),
    )
    found = estimate(evaluation(*tasks, n=2), "g", QUICK)
    assert (found.slow, found.beside_naive) == (3, 5)
    told = text_document(document([evaluation(*tasks, n=2)], QUICK))
    assert "3 of 5 correct trajectories take more than 5 times as long as naive CUDA" in told


def test_headroom_by_hand() -> None:
    found = estimate(example(), "g", QUICK)
    b = (0 + log(4) / log(4 / 0.8)) / 2
    assert found.headroom is not None
    assert found.headroom.value == pytest.approx((0.5 + b) / 2)
    of_c, of_naive, of_limit = (s.headroom for s in found.speeds)
    assert of_c == pytest.approx((-0.5 + 0.5 - log(2) / log(5)) / 3)
    assert of_naive == pytest.approx(0)
    assert of_limit == pytest.approx(1)


def test_turns_against_samples_by_hand() -> None:
    (row,) = estimate(example(), "g", QUICK).budget
    assert (row.budget, row.trajectories, row.turns) == (2, 1, 2)
    assert (row.pass_turns, row.pass_samples) == pytest.approx((2 / 3, 2 / 3))
    assert row.pass_difference.value == pytest.approx(0)
    assert row.used == pytest.approx(11 / 6)
    assert (row.speed_turns, row.speed_samples) == pytest.approx((2 ** (2.5 / 3), 2.0))
    assert row.speed_ratio is not None
    assert row.speed_ratio.value == pytest.approx(2 ** (2.5 / 3) / 2)


def test_a_trajectory_of_turns_is_cut_by_the_search_not_by_the_hidden_tests() -> None:
    first = task("a", *(fails("hidden wrong", turn("correct"), number=i) for i in range(4)))
    (one, two) = estimate(evaluation(first, n=4), "g", QUICK).budget
    assert (one.budget, two.budget) == (2, 4)
    assert one.pass_turns == one.pass_samples == 1.0


def test_seeds_are_pooled_and_told_apart() -> None:
    a = task(
        "a", right(2, 1, 1, seed=0), fails("wrong", seed=0, number=1), right(8, 1, 1, seed=1), right(2, 1, 1, seed=1)
    )
    b = task("b", *(fails("wrong", seed=s, number=i) for s in (0, 1) for i in (0, 1)))
    found = estimate(evaluation(a, b, n=2, seeds=2), "g", QUICK)
    assert found.trajectories == 4
    assert found.pass_at[1].value == pytest.approx(3 / 8)
    assert found.pass_at[2].value == pytest.approx(0.5)
    assert [(s.seed, s.pass_at_1) for s in found.by_seed] == [(0, 0.25), (1, 0.5)]
    assert [s.speed_at_1 for s in found.by_seed] == pytest.approx([2 ** (1 / 4), 16 ** (1 / 4)])


def test_the_fastest_c_is_the_one_to_beat() -> None:
    fast_math = "C -O3 -march=native -ffast-math, one core"
    one = replace(right(4, 2, 1), speedups={C: 4.0, fast_math: 3.0, NAIVE: 2.0}, turns=(turn("correct", 4),))
    two = replace(right(6, 2, 1), speedups={C: 6.0, NAIVE: 2.0})
    found = estimate(evaluation(task("a", one), task("b", one), n=1), "g", QUICK)
    assert [s.baseline for s in found.speeds][:3] == [FASTEST_C, C, fast_math]
    assert found.speeds[0].speed_at[1].value == pytest.approx(3.0)
    assert found.main == FASTEST_C
    # Where one build was timed only, the fastest is that one.
    mixed = estimate(evaluation(task("a", one), task("b", two), n=1), "g", QUICK)
    assert mixed.speeds[0].speed_at[1].value == pytest.approx((3 * 6) ** 0.5)
    assert mixed.speeds[0].tasks == 2


def test_a_hand_written_kernel_is_a_baseline_where_it_passes() -> None:
    hand = right(2, 1, 0.5)
    good = task("a", right(6, 3, 1), fails("wrong", number=1), hand=hand)
    bad = task("b", right(6, 3, 1), right(6, 3, 1), hand=fails("wrong"))
    found = estimate(evaluation(good, bad, n=2), "g", QUICK)
    speed = next(s for s in found.speeds if s.baseline == HAND)
    assert (speed.tasks, speed.over) == (1, 1)
    assert speed.mean == pytest.approx(3.0)
    assert speed.speed_at[1].value == pytest.approx(3**0.5)
    assert (found.hand_correct, found.hand_of) == (1, 2)


def test_failures_count_where_the_baseline_could_not_be_timed() -> None:
    """A policy must not look faster for failing on the tasks where it would have been slow."""
    found = estimate(evaluation(task("a", right(4, 2, 1)), task("b", fails("wrong")), n=1), "g", QUICK)
    assert found.speeds[0].tasks == 2
    assert found.speeds[0].speed_at[1].value == pytest.approx(2.0)
    assert found.speeds[0].mean == pytest.approx(4.0)


def test_families_are_the_units_of_intervals() -> None:
    tasks = [task(f"t{i}", right(2 + i % 5, 1, 1) if i % 3 else fails("wrong"), family=f"f{i % 6}") for i in range(12)]
    found = estimate(evaluation(*tasks, n=1), "g", QUICK)
    assert found.families == found.pass_at[1].units == found.speeds[0].speed_at[1].units == 6
    assert [(f.family, f.tasks, f.trajectories) for f in found.by_family] == [(f"f{i}", 2, 2) for i in range(6)]
    assert [f.pass_at_1 for f in found.by_family] == [0, 1, 1, 0, 1, 1]
    assert found.by_family[1].mean == pytest.approx((3 * 4) ** 0.5)


def test_nothing_timed_gives_no_speed() -> None:
    plain = Outcome(0, 0, True, cases=18, turns=(turn("correct"),))
    found = estimate(evaluation(task("a", plain), task("b", fails("wrong")), n=1), "g", QUICK)
    assert found.speeds == ()
    assert found.headroom is None
    assert found.main == ""


def test_facts_survive_json() -> None:
    made = replace(example(), tasks=(*example().tasks, task("h", right(1, 1, 1), right(1, 1, 1), hand=right(2, 1, 1))))
    assert Evaluation.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    with pytest.raises(ValueError, match="another version"):
        Evaluation.from_dict({**made.to_dict(), "format": 0})


def test_baselines_are_known_by_name() -> None:
    names = ["naive CUDA", "speed of light", f"{C}, copies included", "gcc -O3 -march=native -fopenmp", C, "eager"]
    assert [kind_of(n) for n in names] == ["naive", "limit", "end_to_end", "c", "c", "torch"]
    assert ordered(names)[:2] == ("gcc -O3 -march=native -fopenmp", C)
    assert ordered([*names, FASTEST_C])[0] == FASTEST_C
    assert FASTEST_C not in ordered([C, FASTEST_C, "naive CUDA"])


def test_the_speed_of_light_is_made_from_what_the_device_was_measured_to_do() -> None:
    profile = {
        "moved_bytes": 4_000_000, "peak_bytes_per_second": 4e12, "null_call_seconds": 1e-6, "flop": 3e7,
        "peak_flop_per_second": 3e13,
    }  # fmt: skip
    verdict = Verdict(Status.CORRECT, profile=profile)
    assert speed_of_light(verdict) == pytest.approx(2e-6)  # 1 µs for an empty call, 1 µs for bytes and for arithmetic
    assert speed_of_light(replace(verdict, profile={**profile, "flop": 9e7})) == pytest.approx(4e-6)
    assert speed_of_light(replace(verdict, profile={**profile, "flop": None})) == pytest.approx(2e-6)
    assert speed_of_light(replace(verdict, profile={})) is None
    timed = replace(
        verdict,
        measured=True,
        timings=(Timing("device", "n=1", (4e-6, 4e-6, 5e-6)),),
        speedups=(Speedup(C, 10.0, 9.0, 11.0), Speedup(NAIVE, 2.0, 1.9, 2.1)),
    )
    record = Trajectory("run", 0, 0, RunStatus.CORRECT, 0.0, first_choice=0, best_turn=0)
    attempt = StoredAttempt("run", 0, 0, source="x", verdict=timed, hidden_verdict=timed)
    found = outcome(record, [attempt], 0)
    assert found.speedups == pytest.approx({C: 10.0, NAIVE: 2.0, LIMIT: 0.5})
    assert found.turns[0].speedups == found.speedups
    told = replace(timed, speedups=(*timed.speedups, Speedup(LIMIT, 0.7, 0.6, 0.8)))
    again = outcome(record, [replace(attempt, hidden_verdict=told)], 0)
    assert again.speedups[LIMIT] == 0.7


def test_comparisons_by_hand() -> None:
    first = evaluation(
        task("a", right(8, 4, 1), right(8, 4, 1)),
        task("b", right(2, 1, 1), fails("wrong")),
        task("x", fails("wrong")),
        n=2,
    )
    second = evaluation(
        task("a", right(2, 1, 1), fails("wrong")), task("b", fails("wrong"), fails("wrong")), n=2, name="f"
    )
    found = compare(first, second, QUICK)
    (group,) = found.groups
    assert (group.tasks, found.left_out, found.changed) == (2, 1, ())
    shares = {s.name: s for s in group.shares}
    assert (shares["pass@1"].first, shares["pass@1"].second) == (0.75, 0.25)
    assert shares["pass@1"].difference.value == pytest.approx(0.5)
    assert shares["pass@2"].difference.value == pytest.approx(1 - 0.5)
    assert shares[f"fast_2 against {C}"].difference.value == pytest.approx(0.5)
    speeds = {(s.name, s.baseline): s for s in group.speeds}
    at_1 = speeds["speed@1", C]
    assert (at_1.first, at_1.second) == pytest.approx(((8 * 2**0.5) ** 0.5, (2**0.5) ** 0.5))
    assert at_1.ratio.value == pytest.approx(8**0.5)
    common = speeds["common-correct mean", C]
    assert (common.tasks, common.first, common.second) == (1, pytest.approx(8), pytest.approx(2))
    assert common.ratio.value == pytest.approx(4)
    # Two units give no interval, and none is told.
    assert (at_1.ratio.low, at_1.ratio.high) == (-inf, inf)
    assert times_interval(at_1.ratio) == "2.83×"


def test_nothing_is_as_fast_as_the_limit_so_no_speed_is_compared_there() -> None:
    first, second = (
        evaluation(*(task(f"t{n}", right(s, 1, s / 9)) for n, s in enumerate(speeds)), n=1, name=name)
        for name, speeds in (("e", (8, 4, 2)), ("f", (2, 2, 1)))
    )
    (group,) = compare(first, second, QUICK).groups
    told = {baseline: [s.name for s in group.speeds if s.baseline == baseline] for baseline in (C, LIMIT)}
    assert told == {C: ["speed@1", "common-correct mean"], LIMIT: ["common-correct mean"]}


def test_a_task_that_changed_is_not_compared() -> None:
    one = evaluation(task("a", fails("wrong")), n=1)
    other = replace(one, tasks=(replace(one.tasks[0], digest="another"),))
    found = compare(one, other, QUICK)
    assert found.changed == ("g/a",)
    assert found.groups[0].tasks == 0


@pytest.mark.parametrize(("units", "chance"), [(40, 0.5), (40, 0.8), (120, 0.9)])
def test_intervals_of_shares_cover_what_they_say(units: int, chance: float) -> None:
    """Tasks that are all or nothing, as with one trajectory each: coverage 93 to 97 %, by simulation."""
    rng = np.random.default_rng(7)
    hits = 0
    for run in range(1000):
        values = (rng.random(units) < chance).astype(float).tolist()
        found = share(values, config=BootstrapConfig(resamples=400, seed=run))
        hits += found.low <= chance <= found.high
    assert 0.93 <= hits / 1000 <= 0.975


def test_intervals_of_paired_shares_cover_what_they_say() -> None:
    rng = np.random.default_rng(8)
    hits = 0
    for run in range(1000):
        hard = rng.random(60)
        first, second = (
            (hard + rng.normal(0, 0.2, 60) < 0.8).astype(float),
            (hard + rng.normal(0, 0.2, 60) < 0.6).astype(float),
        )
        found = share_difference(first.tolist(), second.tolist(), config=BootstrapConfig(resamples=400, seed=run))
        hits += found.low <= TRUE_DIFFERENCE <= found.high
    assert 0.93 <= hits / 1000 <= 0.98


def _true_difference() -> float:
    rng = np.random.default_rng(9)
    hard = rng.random(2_000_000)
    shares = [(hard + rng.normal(0, 0.2, hard.size) < at).mean() for at in (0.8, 0.6)]
    return float(shares[0] - shares[1])


TRUE_DIFFERENCE = _true_difference()


def test_all_or_none_still_has_an_interval() -> None:
    found = share([1.0] * 19)
    assert found.high == 1.0
    assert 0.75 < found.low < 0.95
    assert share([0.0] * 19).high == pytest.approx(1 - found.low)


def test_too_few_units_that_differ_give_no_interval_of_speeds() -> None:
    assert np.isinf(bootstrap([0.0] * 18 + [3.0]).low)
    assert np.isfinite(bootstrap([0.0] * 14 + [3.0, 2.0, 1.0, 0.5, 2.5]).low)


def test_nearly_equal_units_do_not_carry_an_end_away() -> None:
    """A fifth of the units far from the rest: as wide as it has to be, and coverage stays what it was."""
    rng = np.random.default_rng(12)
    free = BootstrapConfig(resamples=400, least_error=0.0)
    hits, widths = 0, []
    for run in range(400):
        values = (rng.normal(0, 0.1, 19) + 4.0 * (rng.random(19) < 0.2)).tolist()
        found = bootstrap(values, config=BootstrapConfig(resamples=400, seed=run))
        wide = bootstrap(values, config=replace(free, seed=run))
        assert wide.low <= found.low <= found.value <= found.high <= wide.high
        hits += found.low <= 0.8 <= found.high
        widths.append((found.high - found.low, wide.high - wide.low))
    assert 0.93 <= hits / 400 <= 0.99
    bounded, before = np.quantile(np.array(widths), 0.95, axis=0)
    assert bounded < 4 < 2 * bounded < before


def test_a_ratio_is_of_means_and_its_interval_covers_what_it_says() -> None:
    halves = ratio([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (halves.value, halves.low, halves.high) == (0.5, 0.5, 0.5)
    values = [0.0, 1.0, 2.0, 4.0, 5.0, 9.0]
    assert ratio(values, [1.0] * 6) == bootstrap(values)
    assert ratio([1.0, 3.0, 5.0], [1.0, 1.0, 4.0], clusters=["a", "a", "b"]).value == 1.5
    assert ratio([1.0, 3.0, 5.0], [1.0, 1.0, 4.0], clusters=["a", "a", "b"]).units == 2
    rng = np.random.default_rng(11)
    hits = 0
    for run in range(500):
        below = rng.uniform(0.5, 1, 40)
        found = ratio(
            (0.6 * below + rng.normal(0, 0.2, 40)).tolist(),
            below.tolist(),
            config=BootstrapConfig(resamples=400, seed=run),
        )
        hits += found.low <= 0.6 <= found.high
    assert 0.92 <= hits / 500 <= 0.98
    with pytest.raises(ValueError, match="same tasks"):
        ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="above 0"):
        ratio([1.0, 2.0], [1.0, -1.0])
