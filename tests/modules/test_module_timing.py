"""The exchange that times modules, tried on the CPU: kernels apart, all of it is what a GPU sees."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from module_bench import ModuleBench

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.cuda.clocks import Agreement, ClockRule
from cudaperf_agent.cuda.modules import timed_calls
from cudaperf_agent.cuda.modules.config import MODULES
from cudaperf_agent.cuda.modules.runs import Kernels
from cudaperf_agent.cuda.modules.timed_process import TimedEnded, TimedModule, seconds_of
from cudaperf_agent.cuda.modules.timing import EAGER, TimingPlace, make_baselines, measured_module
from cudaperf_agent.cuda.verdict import Status, Verdict

pytestmark = pytest.mark.asyncio(loop_scope="session")
# The machine that runs tests is busy, so the clocks may differ by more than when something is measured.
CONFIG = replace(MODULES, timed=4, warmups=2, contents_bytes=1 << 24, compiled=False, slack=50.0, slack_seconds=1.0)
HONEST = """import torch

class ModelNew(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores, mask):
        return (torch.softmax(scores / self.temperature, -1) * mask).sum(-1)
"""
ALL = "return (torch.softmax(scores / self.temperature, -1) * mask).sum(-1)"


def plain(text: str) -> ModuleFile:
    """A candidate without kernels, which no verdict would pass; only its times are wanted here."""
    return ModuleFile(text, text, "light", ())


async def test_times_are_taken_and_outputs_checked(module_bench: ModuleBench, torch_cases: Path) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py", mode="libraries-allowed")
    place = TimingPlace(module_bench.verifier.place.sandbox, device="cpu")
    known = await make_baselines(task, place, CONFIG)
    assert len(known.timings[EAGER].samples) == CONFIG.timed
    assert known.flags["matmul_allow_tf32"] is False
    right = Verdict(Status.CORRECT)

    async def measured(text: str) -> Verdict:
        return await measured_module(task, plain(text), Kernels({}), right, known, place, CONFIG)

    verdict = await measured(HONEST)
    assert verdict.correct, verdict.message
    assert verdict.measured
    assert [s.baseline for s in verdict.speedups] == [EAGER]
    assert verdict.timings[0].case == "2048×1024, 2048×1024"
    assert verdict.timings[0].cold is not None
    assert verdict.clocks["batch_excess_seconds"] < verdict.clocks["parent_seconds"]

    wrong = await measured(HONEST.replace(ALL, f"out = {ALL[7:]}\n        out[1999:] = 0\n        return out"))
    assert wrong.status is Status.WRONG
    assert "at the timed size" in wrong.message
    assert not wrong.measured

    crash = await measured(HONEST.replace(ALL, "raise ValueError('no')"))
    assert crash.status is Status.CRASH
    assert "ValueError" in crash.message


@pytest.mark.parametrize("late", [1, 2])
async def test_clocks_of_a_module_that_disagree_are_read_once_more(
    module_bench: ModuleBench, torch_cases: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py", mode="libraries-allowed")
    place = TimingPlace(module_bench.verifier.place.sandbox, device="cpu")
    known = await make_baselines(task, place, CONFIG)
    read, seen = timed_calls.call_agreement, 0

    def first_ones_late(
        inside: Sequence[float], outside: Sequence[float], exchanges: Sequence[float], rule: ClockRule
    ) -> Agreement:
        nonlocal seen
        seen += 1
        agreement = read(inside, outside, exchanges, rule)
        return replace(agreement, agree=agreement.agree and seen > late)

    monkeypatch.setattr(timed_calls, "call_agreement", first_ones_late)
    verdict = await measured_module(task, plain(HONEST), Kernels({}), Verdict(Status.CORRECT), known, place, CONFIG)
    assert seen == 2
    assert verdict.clocks["attempts"] == 2
    assert verdict.status is (Status.CORRECT if late == 1 else Status.UNSTABLE)
    assert verdict.measured == (late == 1)


COUNTS = """import torch

class ModelNew(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.calls = 0

    def forward(self, scores, mask):
        self.calls += 1
        if self.calls CONDITION:
            return torch.empty_like(scores).copy_(scores)
        return scores * 1
"""
COPIES = """import torch
class Copies(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
    def forward(self, scores, mask):
        return scores.clone()
def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64)]
def get_init_inputs():
    return [2.0]
"""


@pytest.mark.parametrize(
    ("condition", "mode", "status"),
    [
        ("> 0", "pure-cuda", Status.CORRECT),  # copies alone
        ("< 2", "pure-cuda", Status.CHEAT),
        ("< 2", "libraries-allowed", Status.CORRECT),
    ],
)
async def test_operators_that_run_only_while_it_is_timed_are_seen(
    module_bench: ModuleBench, tmp_path: Path, condition: str, mode: str, status: Status
) -> None:
    path = tmp_path / "copies.py"
    path.write_text(COPIES)
    task = await module_bench.described(path, mode=mode)
    place = TimingPlace(module_bench.verifier.place.sandbox, device="cpu")
    known = await make_baselines(task, place, CONFIG)
    file = plain(COUNTS.replace("CONDITION", condition))
    verdict = await measured_module(task, file, Kernels({}), Verdict(Status.CORRECT), known, place, CONFIG)
    assert verdict.status is status, verdict.message
    assert verdict.measured == (status is Status.CORRECT)
    if status is Status.CHEAT:
        assert "torch's own operators (mul)" in verdict.message
    else:
        assert len(verdict.timings[0].samples) == CONFIG.timed


SUMS = """import torch
class ExpSum(torch.nn.Module):
    def forward(self, x):
        return x.exp().sum(1)
def get_inputs():
    return [torch.randn(4, 20001)]
"""
ONE_AFTER_ANOTHER = """import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        terms = x.exp().to(torch.TYPE)
        total = terms[:, 0]
        for j in range(1, terms.shape[1]):
            total = total + terms[:, j]
        return total.float()
"""


async def test_timed_outputs_may_be_summed_in_any_order_but_not_in_half(
    module_bench: ModuleBench, tmp_path: Path
) -> None:
    path = tmp_path / "exp_sum.py"
    path.write_text(SUMS)
    task = await module_bench.described(path, mode="libraries-allowed")
    place = TimingPlace(module_bench.verifier.place.sandbox, device="cpu")
    known = await make_baselines(task, place, CONFIG)

    async def measured(dtype: str) -> Verdict:
        file = plain(ONE_AFTER_ANOTHER.replace("TYPE", dtype))
        return await measured_module(task, file, Kernels({}), Verdict(Status.CORRECT), known, place, CONFIG)

    verdict = await measured("float32")
    assert verdict.correct, verdict.message
    half = await measured("float16")
    assert half.status is Status.WRONG
    assert "at the timed size" in half.message


@pytest.mark.parametrize("said", ["{}", '{"seconds": "soon"}', '{"seconds": NaN}', '{"seconds": true}', "[]"])
async def test_a_process_that_talks_nonsense_is_told_from_one_that_answers(tmp_path: Path, said: str) -> None:
    script = f"import sys\nfor line in sys.stdin: print({said!r}, flush=True)"
    with (
        TimedModule([sys.executable, "-c", script], tmp_path, {}, 20.0) as process,
        pytest.raises(TimedEnded, match="an answer cannot be read"),
    ):
        seconds_of(process.ask("go"))
