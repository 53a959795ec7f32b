"""From turns to groups: who is compared with whom, who leaves, what is masked, and the permuted control."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from cudaperf_agent.store.records import StoredAttempt, Tokens
from training.grpo.credit import CreditRule
from training.grpo.metrics import rollout_metrics, time_metrics
from training.grpo.rollouts import Rollout, task_seed
from training.grpo.rows import Turn, make_groups, permute_structural, turn_of

RULE = CreditRule("immediate", baseline="leave_one_out")


def turn(trajectory: int, number: int, reward: float | None, *, task: str = "t", **more: Any) -> Turn:
    parts = {"outcome": "correct", "structural": 0.0, **more.pop("parts", {})}
    given = {"status": "correct", "parts": parts, "source_key": f"{task}{trajectory}", **more}
    return Turn(task, "run", trajectory, number, (1, 2), (3, 4), (-0.1, -0.2), reward=reward, **given)


def advantages(
    turns: list[Turn], rule: CreditRule = RULE, horizon: int = 2, **more: Any
) -> dict[tuple[str, int, int], float]:
    groups = make_groups(turns, rule, horizon, **{"mask_truncated": True, **more})
    return {(t.task, t.trajectory, t.turn): t.advantage for g in groups for t in g.turns}


def test_turns_are_compared_with_the_same_turn_of_the_same_task() -> None:
    turns = [
        turn(0, 0, 1.0),
        turn(1, 0, 3.0),
        turn(0, 1, -1.0),
        turn(1, 1, -1.0),
        turn(0, 0, 9.0, task="u"),
        turn(1, 0, 7.0, task="u"),
    ]
    found = advantages(turns)
    assert found == {
        ("t", 0, 0): -2.0, ("t", 1, 0): 2.0,  # 1 against 3
        ("t", 0, 1): 0.0, ("t", 1, 1): 0.0,  # nothing between them: skipped
        ("u", 0, 0): 2.0, ("u", 1, 0): -2.0,
    }  # fmt: skip


def test_gain_looks_at_the_whole_trajectory_and_shared_history_does_not() -> None:
    turns = [turn(0, 0, 1.0), turn(0, 1, 0.0), turn(1, 0, -3.0), turn(1, 1, 0.0)]
    gain = CreditRule("gain", baseline="leave_one_out")
    assert advantages(turns, gain)["t", 1, 1] == 3.0  # from −3 to 0, against no gain
    # Samples of one history have one best-so-far: rewards are compared as they are.
    assert advantages(turns, gain, shared_history=True)["t", 1, 1] == 0.0


def test_what_leaves_its_group_moves_nobody() -> None:
    found = advantages([turn(0, 0, 1.0), turn(1, 0, None, status="unsupported"), turn(2, 0, 3.0)])
    assert found == {("t", 0, 0): -2.0, ("t", 1, 0): 0.0, ("t", 2, 0): 2.0}


def test_a_cut_answer_counts_in_the_baseline_and_bears_no_loss() -> None:
    turns = [turn(0, 0, -3.0, truncated=True), turn(1, 0, 1.0), turn(2, 0, 1.0)]
    assert advantages(turns) == {("t", 0, 0): 0.0, ("t", 1, 0): 2.0, ("t", 2, 0): 2.0}
    assert advantages(turns, mask_truncated=False)["t", 0, 0] == -4.0


def test_ids_and_log_probabilities_come_as_generated_or_not_at_all() -> None:
    attempt = StoredAttempt(
        "r", 3, 1, source_key="k", finish_reason="length", status="wrong", reward={"total": -2.0, "score": 0.5},
        tokens=Tokens((1, 2), (3, 4, 5), (-0.5, -0.25, -1.0)),
    )  # fmt: skip
    made = turn_of("task", attempt)
    assert made is not None
    assert (made.prompt_ids, made.ids, made.logprobs) == ((1, 2), (3, 4, 5), (-0.5, -0.25, -1.0))
    assert (made.reward, made.truncated, made.trajectory, made.turn) == (-2.0, True, 3, 1)
    for tokens in (None, Tokens((1,), None, None), Tokens((1,), (2,), None), Tokens((1,), (), ())):
        assert turn_of("task", replace(attempt, tokens=tokens)) is None


def scored(trajectory: int, structural: float, source: str, **more: Any) -> Turn:
    parts = {"structural": structural, "score": structural * 4}
    return turn(trajectory, 0, 1.0 + structural, parts=parts, source_key=source, **more)


def test_the_permuted_control_keeps_the_distribution_and_loses_the_relation() -> None:
    turns = [scored(k, k / 32, f"s{k}") for k in range(8)]
    seen = set()
    for seed in range(20):
        permuted = permute_structural(turns, seed)
        values = [t.parts["structural"] for t in permuted]
        assert sorted(values) == [k / 32 for k in range(8)]
        assert [t.reward for t in permuted] == pytest.approx([1.0 + v for v in values])
        # The ranker's own score stays, for the log's rank correlation.
        assert [t.parts["score"] for t in permuted] == [t.parts["score"] for t in turns]
        seen.add(tuple(values))
    assert len(seen) > 15
    assert permute_structural(turns, 3) == permute_structural(turns, 3)


def test_turns_with_one_source_share_one_permuted_value_and_others_are_left_alone() -> None:
    same = [scored(0, 0.1, "a"), scored(1, 0.1, "a"), scored(2, -0.2, "b"), scored(3, 0.05, "c")]
    gated = turn(4, 0, -3.0, source_key="d", parts={"outcome": "uncompiled", "score": None})
    left = turn(5, 0, None, source_key="e")
    for seed in range(10):
        permuted = permute_structural([*same, gated, left], seed)
        assert permuted[0].parts["structural"] == permuted[1].parts["structural"]
        assert permuted[4:] == [gated, left]
        assert sorted({t.parts["structural"] for t in permuted[:4]}) == [-0.2, 0.05, 0.1]


def test_seeds_depend_on_step_and_task_alone() -> None:
    assert task_seed(1, "a") == task_seed(1, "a")
    assert len({task_seed(step, name) for step in range(50) for name in ("a", "b")}) == 100


def test_the_log_tells_rates_diversity_and_alarms() -> None:
    def timed(trajectory: int, number: int, speedup: float, score: float, **more: Any) -> Turn:
        parts = {"speedup": speedup, "baseline": "naive", "score": score, "verifiable": math.log2(speedup), **more}
        return turn(trajectory, number, math.log2(speedup), parts=parts)

    turns = [
        timed(0, 0, 4.0, 3.0, structural_clipped="high"), timed(1, 0, 2.0, 2.0, excess=3.0),
        timed(2, 0, 0.5, 1.0, clipped="low"),
        turn(3, 0, -3.0, status="no_code", source_key="", parts={"outcome": "uncompiled"}),
        turn(0, 1, -3.0, status="cheat", parts={"outcome": "uncompiled"}),
        turn(1, 1, -2.0, status="wrong", parts={"outcome": "wrong"}),
        turn(2, 1, None, status="unstable"), timed(3, 1, 1.5, 0.0),
    ]  # fmt: skip
    groups = make_groups(turns, RULE, 2, mask_truncated=True)
    found = rollout_metrics(Rollout(tuple(turns), {}, {}, {}, ("lost",)), groups, 2)
    assert found["compile_rate"] == 7 / 8
    assert (found["correct@turn1"], found["correct@turn2"]) == (0.75, 1.0)
    assert (found["fast_1"], found["fast_2"]) == (0.75, 0.25)
    assert found["turns_used"] == 1.25
    assert found["cheats"] == 1
    assert found["rollout/left_group"] == 1 / 8
    assert found["clipped/low"] == 0.25
    assert found["charged/work"] == 0.25
    assert (found["clipped/structural_low"], found["clipped/structural_high"]) == (0.0, 0.25)
    assert found["distinct_sources_per_group"] == 3.5
    assert found["zero_variance_groups"] == 0.0
    assert found["rank_correlation"] == pytest.approx(1.0)
    assert found["rollout/errors"] == 1
    # Where the ranker likes what is slow, the alarm goes off.
    hacked = [replace(t, parts={**t.parts, "score": -t.parts["score"]}) if t.parts.get("score") else t for t in turns]
    groups = make_groups(hacked, RULE, 2, mask_truncated=True)
    assert rollout_metrics(Rollout(tuple(hacked), {}, {}, {}, ()), groups, 2)["rank_correlation"] == pytest.approx(-1.0)


def test_nothing_is_told_of_speed_that_was_not_measured() -> None:
    turns = [turn(0, 0, 0.0, parts={"speedup": 1.0, "baseline": ""}), turn(1, 0, -2.0, status="wrong")]
    found = rollout_metrics(Rollout(tuple(turns), {}, {}, {}, ()), make_groups(turns, RULE, 1, mask_truncated=True), 1)
    assert not {"fast_1", "log2_speedup", "rank_correlation", "clipped/low"} & found.keys()


def test_shares_of_a_step() -> None:
    found = time_metrics({"learning": 2.0, "generating": 3.0, "timing": 1.0, "verifying": 3.0, "waiting": 1.0})
    assert found["time/gpu_busy"] == pytest.approx(0.6)
    assert found["time/step_seconds"] == 10.0
    assert time_metrics({}) == {}
