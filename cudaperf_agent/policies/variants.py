"""The variants policy: proposes what the generators derive from the C, or the module's graph, best guess first."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from cudaperf_agent.policies.base import Proposal, ProposalRequest

if TYPE_CHECKING:
    from cudaperf_agent.codegen.variants import Generation
    from cudaperf_agent.tasks.model import Task

NAME = "variants"


class VariantsPolicy:
    """Needs no model. Turn t of the first trajectory proposes the t-th best variant.

    Each further trajectory begins where the one before it would end, so that no variant is proposed twice in a run.
    What is proposed depends on trajectory and turn alone, so that a resumed run goes on as it would have.
    """

    def __init__(self, *, turns: int = 5) -> None:
        """Args: turns: how many turns a trajectory has."""
        self._turns = turns
        self._generations: dict[str, Generation] = {}
        self._lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """``variants``."""
        return NAME

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """The next `request.n` variants; or one proposal that declines with the reason and the line."""
        generation = await self._generation(request.task)
        if generation.declined is not None and not generation.variants:
            decline = generation.declined
            place = f"{request.task.path}:{decline.line}: " if decline.line else ""
            remedy = f". {decline.remedy}" if decline.remedy else ""
            return [_declined(place + decline.reason + remedy)]
        first = (request.trajectory * self._turns + request.turn) * request.n
        chosen = generation.variants[first : first + request.n]
        if not chosen:
            return [_declined(f"all {len(generation.variants)} variants have been proposed")]
        proposals = []
        language = "python" if request.task.module else "cuda"
        for variant in chosen:
            text = f"{variant.description}\n\n```{language}\n{variant.source.rstrip()}\n```\n"
            if request.on_token:
                request.on_token(text)
            proposals.append(Proposal(text, source=variant.source, strategy=variant.strategy, model=NAME))
        return proposals

    async def sources(self, task: Task) -> frozenset[str]:
        """The source of every variant of a task."""
        return frozenset(variant.source for variant in (await self._generation(task)).variants)

    async def aclose(self) -> None:
        """Forget the generated variants."""
        self._generations.clear()

    async def _generation(self, task: Task) -> Generation:
        # One at a time: a run's trajectories all start with the same task, and the analysis is pure computing.
        async with self._lock:
            if task.digest not in self._generations:
                self._generations[task.digest] = await asyncio.to_thread(_generated, task)
            return self._generations[task.digest]


def _generated(task: Task) -> Generation:
    from cudaperf_agent.codegen.variants import Decline, Generation, generate

    if task.module is None:
        return generate(task)
    from cudaperf_agent.codegen.modules.variants import generate_module

    if not task.module.graph:
        return Generation(declined=Decline("the module was not traced", 0))
    return generate_module(json.loads(task.module.graph), class_source=task.source)


def _declined(reason: str) -> Proposal:
    return Proposal("", declined=reason, finish_reason="declined", model=NAME)
