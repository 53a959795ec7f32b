"""The variants policy proposes each generated source once, or declines with reason and line."""

from __future__ import annotations

from pathlib import Path

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.policies.base import Policy, ProposalRequest
from cudaperf_agent.policies.variants import VariantsPolicy
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task


def task(c_cases: Path, name: str) -> Task:
    return load_task(c_cases / f"{name}.c")


async def sources(policy: VariantsPolicy, of: Task, trajectory: int, turns: int) -> list[str | None]:
    found: list[str | None] = []
    for turn in range(turns):
        (proposal,) = await policy.propose(ProposalRequest((), of, trajectory=trajectory, turn=turn))
        found.append(proposal.source)
    return found


async def test_turn_t_proposes_the_t_th_best_and_none_twice(c_cases: Path) -> None:
    saxpy = task(c_cases, "saxpy")
    expected = [v.source for v in generate(saxpy).variants]
    policy = VariantsPolicy(turns=2)
    assert isinstance(policy, Policy)
    proposed = [s for t in range(3) for s in await sources(policy, saxpy, t, 2)]
    assert [s for s in proposed if s] == expected[:6]
    assert len({s for s in proposed if s}) == len([s for s in proposed if s])


async def test_asking_again_gives_the_same(c_cases: Path) -> None:
    saxpy = task(c_cases, "saxpy")
    assert await sources(VariantsPolicy(), saxpy, 0, 3) == await sources(VariantsPolicy(), saxpy, 0, 3)


async def test_when_all_were_proposed_it_declines(c_cases: Path) -> None:
    saxpy = task(c_cases, "saxpy")
    (proposal,) = await VariantsPolicy().propose(ProposalRequest((), saxpy, trajectory=50))
    assert proposal.source is None
    assert "variants have been proposed" in (proposal.declined or "")


async def test_what_the_generator_declines_is_declined_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "chaos.c"
    path.write_text(
        "void chaos(int n, float r, float *x)\n{\n    for (int i = 1; i < n; i++)\n"
        "        x[i] = r * x[i - 1] * (1.0f - x[i - 1]);\n}\n"
    )
    (proposal,) = await VariantsPolicy().propose(ProposalRequest((), load_task(path)))
    assert proposal.source is None
    assert proposal.finish_reason == "declined"
    assert any(f"{path}:{line}: " in (proposal.declined or "") for line in (3, 4))


async def test_several_at_once_and_the_text_holds_the_source(c_cases: Path) -> None:
    saxpy = task(c_cases, "saxpy")
    shown: list[str] = []
    proposals = await VariantsPolicy().propose(ProposalRequest((), saxpy, n=2, on_token=shown.append))
    assert len(proposals) == 2
    assert proposals[0].source != proposals[1].source
    assert proposals[0].source is not None
    assert proposals[0].source.strip() in proposals[0].text
    assert "".join(shown) == "".join(p.text for p in proposals)
    assert all(p.strategy for p in proposals)
