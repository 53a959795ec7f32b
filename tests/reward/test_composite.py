"""Rewards: every status and branch, the paper's inversion, and the order that `robust` guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudaperf_agent.cuda.measure import C_ONE_CORE, NAIVE
from cudaperf_agent.cuda.modules.timing import EAGER
from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.features.model import ORDER, Features, Gap
from cudaperf_agent.reward.composite import Reward, group_shares, passes_gate, score
from cudaperf_agent.reward.presets import PAPER, PRESETS, ROBUST, Gate, RewardPreset
from cudaperf_agent.reward.verifiable import LEAVES_GROUP, UNCOMPILED, WRONG

FEATURES = Features(dict.fromkeys(ORDER, 0.0))
PLAIN = Features(dict.fromkeys(ORDER, 1.0))
GATES: tuple[Gate, ...] = ("always", "compiled", "correct")


@dataclass(frozen=True)
class Says:
    """A ranker that always says the same, and a value of its own of the plain CUDA."""

    value: float
    plain: float = 0.0

    def score(self, features: Features) -> float:
        return self.plain if features is PLAIN else self.value


def timed(
    speedup: float, *, baseline: str = NAIVE, samples: tuple[float, ...] = (1.0, 1.0), kind: str = "device"
) -> Verdict:
    return Verdict(
        Status.CORRECT,
        passed=4,
        total=4,
        measured=True,
        timings=(Timing(kind, "a", samples),),
        speedups=(Speedup(baseline, speedup, speedup, speedup),),
    )


def reward(verdict: Verdict, preset: RewardPreset = ROBUST, ranker: Says | None = None) -> Reward:
    found = score(verdict, FEATURES, ranker, preset, lambda: PLAIN)
    assert found is not None
    return found


def test_every_status_is_handled() -> None:
    assert UNCOMPILED | WRONG | LEAVES_GROUP | {Status.CORRECT} == set(Status)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
@pytest.mark.parametrize("status", sorted(UNCOMPILED))
def test_what_did_not_compile_or_cheats_gets_minus_three(status: Status, preset: RewardPreset) -> None:
    assert reward(Verdict(status, passed=4, total=4), preset).total == -3.0


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
@pytest.mark.parametrize("status", sorted(LEAVES_GROUP))
def test_what_cannot_be_judged_leaves_the_group(status: Status, preset: RewardPreset) -> None:
    assert score(Verdict(status), FEATURES, Says(1.0), preset) is None


@pytest.mark.parametrize("status", sorted(WRONG))
def test_wrong_is_paid_by_pass_rate(status: Status) -> None:
    assert reward(Verdict(status, passed=3, total=4), PAPER).total == pytest.approx(-2.0 * 0.25)
    assert reward(Verdict(status, passed=3, total=4), ROBUST).total == pytest.approx(-1.8 - 0.6 * 0.25)
    assert reward(Verdict(status), PAPER).total == pytest.approx(-2.0)
    assert reward(Verdict(status), ROBUST).total == pytest.approx(-2.4)
    assert reward(Verdict(status, passed=4, total=4), ROBUST).total == pytest.approx(-1.8)


@pytest.mark.parametrize(
    ("preset", "baseline", "speedup", "expected", "clipped"),
    [
        (PAPER, C_ONE_CORE, 2.0, 1.0, ""),
        (PAPER, C_ONE_CORE, 1000.0, 4.0, "high"),
        (PAPER, C_ONE_CORE, 0.1, -0.5, "low"),
        (ROBUST, NAIVE, 2.0, 1.0, ""),
        (ROBUST, NAIVE, 32.0, 4.0, "high"),
        (ROBUST, NAIVE, 0.1, -1.0, "low"),
        (ROBUST, EAGER, 4.0, 2.0, ""),
    ],
)
def test_correct_is_paid_by_clipped_log_speedup(
    preset: RewardPreset, baseline: str, speedup: float, expected: float, clipped: str
) -> None:
    found = reward(timed(speedup, baseline=baseline), preset)
    assert found.total == pytest.approx(expected)
    assert found.verifiable.clipped == clipped
    assert found.verifiable.baseline == baseline
    assert found.flags == ()


def test_robust_prefers_naive_and_flags_the_reference() -> None:
    both = replace(timed(2.0), speedups=(Speedup(C_ONE_CORE, 64.0, 64, 64), Speedup(NAIVE, 2.0, 2, 2)))
    assert reward(both).total == pytest.approx(1.0)
    assert reward(both, PAPER).total == pytest.approx(4.0)
    fallback = reward(timed(2.0, baseline=C_ONE_CORE))
    assert fallback.total == pytest.approx(1.0)
    assert any(NAIVE in f for f in fallback.flags)


def test_a_timed_candidate_without_baseline_has_speedup_one_and_says_so() -> None:
    found = reward(replace(timed(2.0), speedups=()))
    assert (found.total, found.verifiable.speedup) == (0.0, 1.0)
    assert found.flags


def test_unmeasured_is_speedup_one_without_variation() -> None:
    verdict = replace(timed(8.0, samples=(1.0, 3.0)), measured=False)
    assert reward(verdict).total == 0.0
    assert reward(verdict, PAPER).total == 0.0


def untimed(writes: int, span: int) -> Verdict:
    work = {"writes": writes, "span": span, "plain_writes": 1000, "plain_span": 10}
    return Verdict(Status.CORRECT, passed=4, total=4, profile={"work": work})


@pytest.mark.parametrize(
    ("writes", "span", "expected", "clipped"),
    [
        (1000, 10, 0.0, ""),
        (4000, 160, 0.0, ""),  # partial results, sixteen elements a thread: ordinary
        (6000, 10, -0.585, ""),
        (8000, 10, -1.0, "low"),
        (1000, 240, -0.585, ""),
        (500_000, 10_000, -1.0, "low"),
        (100, 1, 0.0, ""),  # less than plain CUDA is not known to be faster
    ],
)
def test_what_is_not_timed_is_charged_for_work_that_plain_cuda_does_not_do(
    writes: int, span: int, expected: float, clipped: str
) -> None:
    found = reward(untimed(writes, span))
    assert found.total == pytest.approx(expected, abs=0.001)
    assert found.verifiable.clipped == clipped
    assert (found.verifiable.excess > 1) == bool(found.flags) == (expected < 0)
    assert reward(untimed(writes, span), PAPER).total == 0.0
    # What was timed is paid by its time.
    assert reward(replace(timed(1.0), profile=untimed(writes, span).profile)).total == 0.0


def test_the_slowest_correct_candidate_beats_every_wrong_one() -> None:
    worst = reward(untimed(10**9, 10**9), ranker=Says(-100.0)).total
    best_wrong = reward(Verdict(Status.MEMORY_ERROR, passed=4, total=4), ranker=Says(100.0)).total
    assert worst > best_wrong


def test_variation_costs_and_is_capped_only_in_robust() -> None:
    shaky = timed(1.0, samples=(0.0, 0.0, 0.0, 4.0), kind="device")
    cv = shaky.timings[0].cv
    assert cv == pytest.approx(2.0)
    assert reward(shaky).total == pytest.approx(-0.25)
    assert reward(replace(shaky, speedups=(Speedup(C_ONE_CORE, 1.0, 1, 1),)), PAPER).total == pytest.approx(-0.5 * cv)
    calm = timed(1.0, samples=(0.9, 1.1))
    assert reward(calm).total == pytest.approx(-0.5 * calm.timings[0].cv)


def test_a_whole_file_candidate_is_charged_for_its_own_kind_of_time() -> None:
    whole = timed(1.0, samples=(0.9, 1.1), kind="end_to_end")
    assert reward(whole).verifiable.cv == pytest.approx(whole.timings[0].cv)


@pytest.mark.parametrize("speedup", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_speedup_is_worth_the_low_clip(speedup: float) -> None:
    found = reward(timed(speedup))
    assert found.total == -1.0
    assert found.flags


def test_the_papers_inversion_is_in_paper_and_not_in_robust() -> None:
    nearly = Verdict(Status.WRONG, passed=9, total=10)
    slow = timed(0.6, baseline=C_ONE_CORE)
    assert reward(nearly, PAPER).total > reward(slow, PAPER).total
    assert reward(nearly, ROBUST).total < reward(slow, ROBUST).total


def test_the_structural_part_is_scaled_and_clipped_in_robust_and_raw_in_paper() -> None:
    assert reward(timed(1.0), ROBUST, Says(0.4)).structural == pytest.approx(0.1)
    assert reward(timed(1.0), ROBUST, Says(9.0)).structural == pytest.approx(0.25)
    assert reward(timed(1.0), ROBUST, Says(-9.0)).structural == pytest.approx(-0.25)
    assert reward(timed(1.0, baseline=C_ONE_CORE), PAPER, Says(9.0)).total == pytest.approx(9.0)


def test_without_ranker_or_features_the_structural_part_is_zero() -> None:
    assert reward(timed(2.0)).total == pytest.approx(1.0)
    found = score(timed(2.0), None, Says(1.0), ROBUST)
    assert found is not None
    assert (found.structural, found.score) == (0.0, None)


def test_a_score_that_is_no_number_and_incomplete_features_are_flagged() -> None:
    assert reward(timed(1.0), ROBUST, Says(float("nan"))).total == 0.0
    partial = replace(FEATURES, gaps=(Gap(("occ",), "unknown block"),))
    found = score(timed(1.0), partial, Says(1.0), ROBUST)
    assert found is not None
    assert any("occ" in f for f in found.flags)


def test_what_the_ranker_adds_for_a_whole_task_changes_nothing() -> None:
    for offset in (-5.0, 0.0, 5.0):
        found = reward(timed(1.0), ROBUST, Says(0.5 + offset, plain=offset))
        assert found.structural == pytest.approx(0.125)
        assert found.score == pytest.approx(0.5)
        assert reward(timed(1.0), PAPER, Says(0.5 + offset, plain=offset)).structural == pytest.approx(0.5 + offset)


def test_the_clip_that_a_score_lies_at_is_told() -> None:
    told = {value: reward(timed(1.0), ROBUST, Says(value)).structural_clipped for value in (-1.0, -0.9, 0.9, 2.0)}
    assert told == {-1.0: "low", -0.9: "", 0.9: "", 2.0: "high"}
    assert reward(timed(1.0), PAPER, Says(-50.0)).structural_clipped == ""


def test_without_plain_cuda_the_structural_part_is_zero_and_flagged() -> None:
    found = score(timed(2.0), FEATURES, Says(1.0), ROBUST)
    assert found is not None
    assert (found.total, found.structural, found.score) == (pytest.approx(1.0), 0.0, None)
    assert found.flags == ("there is no plain CUDA to compare with: R_str = 0",)
    paper = score(timed(1.0, baseline=C_ONE_CORE), FEATURES, Says(1.0), PAPER)
    assert paper is not None
    assert paper.structural == pytest.approx(1.0)


def test_gates() -> None:
    table = {(o, g): passes_gate(o, g) for o in ("uncompiled", "wrong", "correct") for g in GATES}
    assert [k for k, v in table.items() if not v] == [
        ("uncompiled", "compiled"),
        ("uncompiled", "correct"),
        ("wrong", "correct"),
    ]
    assert PAPER.structural_gate == "always"
    assert ROBUST.structural_gate == "compiled"
    for preset, expected in ((PAPER, -3.0 + 0.5), (ROBUST, -3.0)):
        found = reward(Verdict(Status.COMPILE_ERROR), preset, Says(0.5))
        assert found.total == pytest.approx(expected)
        assert found.gated is (preset is ROBUST)


def test_shares_at_the_clips_and_spread_of_a_group() -> None:
    rewards = [score(timed(s), FEATURES, None, ROBUST) for s in (64.0, 64.0, 2.0, 0.01)] + [None]
    shares = group_shares(rewards)
    assert (shares.count, shares.left, shares.low, shares.high) == (4, 1, 0.25, 0.5)
    assert shares.spread == pytest.approx(5.0)
    assert not shares.claim
    assert shares.teaches
    flat = group_shares([score(timed(1.0), FEATURES, None, ROBUST)] * 3)
    assert (flat.teaches, flat.claim) == (False, True)
    assert group_shares([]).count == 0


seconds = st.floats(min_value=0, max_value=1e9)
anything = st.floats(allow_nan=True, allow_infinity=True)


@given(
    correct=anything,
    samples=st.lists(seconds, max_size=6),
    wrong=st.sampled_from(sorted(WRONG)),
    passed=st.integers(0, 8),
    broken=st.sampled_from(sorted(UNCOMPILED)),
    says=st.tuples(anything, anything, anything),
    gate=st.sampled_from(GATES),
    measured=st.booleans(),
)
def test_under_robust_correct_beats_wrong_beats_uncompiled(
    correct: float,
    samples: list[float],
    wrong: Status,
    passed: int,
    broken: Status,
    says: tuple[float, float, float],
    gate: Gate,
    measured: bool,
) -> None:
    preset = replace(ROBUST, structural_gate=gate)
    good = replace(timed(correct, samples=tuple(samples)), measured=measured)
    first = reward(good, preset, Says(says[0])).total
    second = reward(Verdict(wrong, passed=passed, total=8), preset, Says(says[1])).total
    third = reward(Verdict(broken), preset, Says(says[2])).total
    assert all(math.isfinite(r) for r in (first, second, third))
    assert first >= -1.5 > -1.55 >= second >= -2.65 > -2.75 >= third
