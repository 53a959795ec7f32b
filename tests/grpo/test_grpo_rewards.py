"""What a candidate is worth in each condition, on the shipped ranker and real features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.codegen.variants import plain_variant
from cudaperf_agent.cuda.measure import NAIVE
from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.tasks.parse import load_task
from training.grpo.config import RewardSection
from training.grpo.rewards import make_assess

TASK = load_task(Path(__file__).parents[1] / "cases" / "c" / "saxpy.c")
SOURCE = """__global__ void k(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        k<<<(n + 31) / 32, 32, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
"""


def verdict(status: Status, *, seconds: float | None = None) -> Verdict:
    given: dict[str, Any] = {"passed": 3, "total": 4} if status is Status.WRONG else {"passed": 4, "total": 4}
    if seconds is None:
        return Verdict(status, **given)
    speedup = (Speedup(NAIVE, 2.0, 1.9, 2.1),)
    return Verdict(status, measured=True, timings=(Timing("device", "n", (seconds,) * 5),), speedups=speedup, **given)


def reward(status: Status, source: str = SOURCE, *, seconds: float | None = None, **section: Any) -> Any:
    return make_assess(RewardSection(**section))(TASK, source, verdict(status, seconds=seconds)).reward


def test_both_is_the_sum_of_its_parts() -> None:
    found = reward(Status.CORRECT, seconds=1e-3)
    assert found["total"] == pytest.approx(found["verifiable"] + found["structural"])
    assert found["verifiable"] == pytest.approx(1.0)  # twice as fast as naive, no variation
    assert found["structural"] == pytest.approx(0.25 * min(max(found["score"], -1), 1))
    assert (found["speedup"], found["baseline"], found["outcome"]) == (2.0, NAIVE, "correct")


def test_verifiable_alone_asks_no_ranker() -> None:
    found = reward(Status.WRONG, structural="none")
    assert (found["total"], found["structural"], found["score"]) == (pytest.approx(-1.95), 0.0, None)


def test_structural_alone_looks_at_structure_whether_it_works_or_not() -> None:
    totals = {reward(s, verifiable=False)["total"] for s in (Status.CORRECT, Status.WRONG, Status.COMPILE_ERROR)}
    assert len(totals) == 1
    assert totals != {0.0}


@pytest.mark.parametrize("section", [{}, {"verifiable": False}, {"structural": "none"}, {"preset": "paper"}])
def test_no_code_and_cheats_are_never_redeemed(section: dict[str, Any]) -> None:
    assert reward(Status.NO_CODE, "", **section)["total"] == -3.0
    # The paper's gate is `always`: there a cheat's structure counts beside its −3.
    found = reward(Status.CHEAT, **section)
    assert found["verifiable"] == -3.0
    assert found["total"] == -3.0 + found["structural"]


def test_what_cannot_be_judged_has_no_reward() -> None:
    assert reward(Status.UNSUPPORTED) is None
    assert reward(Status.UNSTABLE) is None


def test_weight_and_gate_can_be_set() -> None:
    plain = reward(Status.WRONG)
    assert reward(Status.WRONG, structural_scale=0.5)["structural"] == pytest.approx(2 * plain["structural"])
    assert reward(Status.WRONG, structural_gate="correct")["structural"] == 0.0
    assert reward(Status.COMPILE_ERROR)["structural"] == 0.0
    assert reward(Status.COMPILE_ERROR, structural_gate="always")["structural"] == plain["structural"]


def test_features_and_hints_reach_the_feedback() -> None:
    found = make_assess(RewardSection())(TASK, SOURCE, verdict(Status.CORRECT))
    assert found.features is not None
    assert found.features["coal"] == 1.0


def test_the_plain_cuda_is_worth_nothing_and_what_has_none_neither() -> None:
    plain = plain_variant(TASK)
    assert plain is not None
    found = reward(Status.CORRECT, plain.source)
    assert (found["score"], found["structural"], found["structural_clipped"]) == (0.0, 0.0, "")
    # By the ranker as it is, the same source lies somewhere else: the paper's preset keeps that.
    assert reward(Status.CORRECT, plain.source, preset="paper")["structural"] != 0.0
    recursive = load_task(source="int f(int n)\n{\n    return n ? f(n - 1) + 1 : 0;\n}\n", entry="f")
    found = make_assess(RewardSection())(recursive, SOURCE, verdict(Status.CORRECT)).reward
    assert (found["structural"], found["score"]) == (0.0, None)
    assert any("no plain CUDA" in flag for flag in found["flags"])
