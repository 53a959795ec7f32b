"""The ensemble: a model proposes, and whenever its candidate failed the generator's next best variant takes a turn."""

from __future__ import annotations

from dataclasses import replace

from cudaperf_agent.policies.base import Policy, Proposal, ProposalRequest
from cudaperf_agent.policies.variants import VariantsPolicy


class EnsemblePolicy:
    """A model and the variants in one trajectory.

    The model has the first turn. After a candidate of the model that is not correct, the next turn goes to the best
    variant that this trajectory has not used; then, and after a correct candidate, to the model again, which sees the
    variant and its verdict among the attempts. Whoever declines leaves the turn to the other; the trajectory ends when
    both do. Whose turn it is follows from the history alone, so that a resumed run goes on as it would have.
    """

    def __init__(self, model: Policy, *, turns: int = 5) -> None:
        """Args: model: closed with the ensemble. turns: how many turns a trajectory has."""
        self._model = model
        # A trajectory of which the model fails at every turn of its own uses half of its turns for variants.
        self._variants = VariantsPolicy(turns=max(turns // 2, 1))

    @property
    def name(self) -> str:
        """``ensemble:MODEL``, with the name of the model's policy."""
        return f"ensemble:{self._model.name}"

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """`request.n` proposals of whoever has the turn, or one that declines, with both reasons."""
        known = await self._variants.sources(request.task)
        used = sum(attempt.source in known for attempt in request.history)
        last = request.history[-1] if request.history else None
        variant_next = last is not None and last.source not in known and not last.verdict.correct
        as_variant = replace(request, turn=used)
        order: list[tuple[Policy, ProposalRequest]] = [(self._model, request), (self._variants, as_variant)]
        if variant_next:
            order.reverse()
        reasons = []
        for policy, asked in order:
            proposals = await policy.propose(asked)
            if any(proposal.declined is None for proposal in proposals):
                return proposals
            reasons += [f"{policy.name}: {proposal.declined}" for proposal in proposals[:1]]
        return [Proposal("", declined="; ".join(reasons), finish_reason="declined", model=self.name)]

    async def aclose(self) -> None:
        """Close both."""
        await self._model.aclose()
        await self._variants.aclose()
