"""The ensemble: the model first; a variant after each of its failures; both decline before the trajectory ends."""

from __future__ import annotations

from pathlib import Path

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.policies.base import Attempt, Policy, Proposal, ProposalRequest
from cudaperf_agent.policies.ensemble import EnsemblePolicy
from cudaperf_agent.policies.scripted import ScriptedAnswer, ScriptedPolicy
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task

TURNS = 5
ANSWERS = [f"```cuda\n// answer {turn}\n```\n" for turn in range(TURNS)]


async def played(ensemble: EnsemblePolicy, task: Task, statuses: list[Status], trajectory: int = 0) -> list[Proposal]:
    """The proposals of a trajectory whose candidates get these verdicts."""
    history: list[Attempt] = []
    proposals: list[Proposal] = []
    for turn, status in enumerate(statuses):
        request = ProposalRequest((), task, tuple(history), trajectory=trajectory, turn=turn)
        (proposal,) = await ensemble.propose(request)
        proposals.append(proposal)
        history.append(Attempt(turn, proposal.source or proposal.text, Verdict(status)))
    return proposals


def origins(proposals: list[Proposal]) -> list[str]:
    return ["declined" if p.declined else p.model for p in proposals]


async def test_a_failed_answer_is_followed_by_the_best_variant_that_is_left(c_cases: Path) -> None:
    task = load_task(c_cases / "saxpy.c")
    ensemble = EnsemblePolicy(ScriptedPolicy([ANSWERS]), turns=TURNS)
    assert isinstance(ensemble, Policy)
    assert ensemble.name == "ensemble:scripted"
    proposals = await played(
        ensemble, task, [Status.WRONG, Status.WRONG, Status.COMPILE_ERROR, Status.CORRECT, Status.WRONG]
    )
    assert origins(proposals) == ["scripted", "variants", "scripted", "variants", "scripted"]
    best = [v.source for v in generate(task).variants]
    assert [p.source for p in proposals if p.source] == best[:2]
    # The next trajectory takes the variants after those.
    again = await played(ensemble, task, [Status.WRONG] * 2, trajectory=1)
    assert again[1].source == best[2]


async def test_a_model_that_is_right_keeps_its_turns(c_cases: Path) -> None:
    task = load_task(c_cases / "saxpy.c")
    ensemble = EnsemblePolicy(ScriptedPolicy([ANSWERS]), turns=TURNS)
    assert origins(await played(ensemble, task, [Status.CORRECT] * 3)) == ["scripted"] * 3


async def test_whoever_declines_leaves_the_turn_to_the_other(c_cases: Path) -> None:
    task = load_task(c_cases / "saxpy.c")
    gives_up = ScriptedPolicy([[ScriptedAnswer("", declined="no idea")] * TURNS])
    found = await played(EnsemblePolicy(gives_up, turns=TURNS), task, [Status.WRONG] * 3)
    assert [p.source for p in found] == [v.source for v in generate(task).variants[:3]]


async def test_where_the_generator_declines_the_model_goes_on_and_in_the_end_both_say_why(tmp_path: Path) -> None:
    path = tmp_path / "chaos.c"
    path.write_text(
        "void chaos(int n, float r, float *x)\n{\n    for (int i = 1; i < n; i++)\n"
        "        x[i] = r * x[i - 1] * (1.0f - x[i - 1]);\n}\n"
    )
    ensemble = EnsemblePolicy(ScriptedPolicy([ANSWERS[:2]]), turns=TURNS)
    proposals = await played(ensemble, load_task(path), [Status.WRONG] * 3)
    assert origins(proposals) == ["scripted", "scripted", "declined"]
    assert "scripted: the script has no answer" in (proposals[2].declined or "")
    assert f"variants: {path}:" in (proposals[2].declined or "")
