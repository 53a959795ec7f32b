"""The evaluation of an adapter, with the generator in the model's place: real graph, compiler and emulator."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.policies.sampling import SamplingConfig
from cudaperf_agent.policies.variants import VariantsPolicy
from cudaperf_agent.store.repository import Store
from training.sft.adapters import card, write_facts
from training.sft.phases import CANDIDATES, RESULTS, Evaluation, EvaluationConfig


class Stand(VariantsPolicy):
    """Answers with no code when it is greedy, so that the phases differ."""

    greedy = False

    def use_adapter(self, folder: Path | None) -> None:
        """Nothing to load."""

    def use_sampling(self, sampling: SamplingConfig) -> None:
        """Remember whether it is greedy."""
        self.greedy = sampling.temperature == 0

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """No code at first."""
        if self.greedy or (request.turn == 0 and request.task.name == "axpy_shift"):
            return [Proposal("Sorry.")]
        return await super().propose(request)


async def test_phases_are_counted_and_every_candidate_kept(tmp_path: Path) -> None:
    config = EvaluationConfig(turns=2, samples=1, sampled_tasks=1, most=1, phase_seconds=0)
    verifier = Verifier(gpu=None)
    with Store(f"sqlite:///{tmp_path}/store.sqlite") as store:
        work = Evaluation(Stand(turns=2), verifier, store, tmp_path, config, time.monotonic() + 250)
        try:
            entries = await work.prepare()
            assert [e.split for e in entries] == ["unseen_family", "held_out_member"]
            await work.run_base(entries)
            results = await work.run(entries)
        finally:
            await verifier.aclose()
    assert results["splits"]["held_out_member"] == {"tasks": 1, "base": 0, "greedy": 0, "five": 1, "first": 0}
    assert results["splits"]["unseen_family"] == {"tasks": 1, "base": 0, "greedy": 0, "five": 1, "first": 1}
    assert json.loads((tmp_path / RESULTS).read_text()) == json.loads(json.dumps(results))
    lines = [json.loads(line) for line in (tmp_path / CANDIDATES).read_text().splitlines()]
    kept = [(e["phase"], e["task"].split("/")[0], e["turn"], e["status"]) for e in lines]
    assert ("greedy", "activation", 0, "no_code") in kept
    assert ("five", "axpy_shift", 1, "correct") in kept
    assert ("samples", "activation", 0, "correct") in kept
    assert all(e["source"] for e in lines if e["status"] == "correct")


async def test_a_phase_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    config = EvaluationConfig(turns=2, most=1, phase_seconds=0, phases=("five",))
    verifier = Verifier(gpu=None)

    async def run(policy: Stand) -> Evaluation:
        with Store(f"sqlite:///{tmp_path}/store.sqlite") as store:
            work = Evaluation(policy, verifier, store, tmp_path, config, time.monotonic() + 250)
            work.go_on()
            await work.run(await work.prepare())
            return work

    try:
        first = await run(Stand(turns=2))
        assert {e["phase"] for e in first.kept} == {"five"}
        lines = (tmp_path / CANDIDATES).read_text().splitlines()
        # The kill came while the last run was written: its task is done again, the other one is not.
        (tmp_path / CANDIDATES).write_text("\n".join([*lines[:-1], lines[-1][:40]]))
        counting = CountingStand(turns=2)
        again = await run(counting)
    finally:
        await verifier.aclose()
    last = json.loads(lines[-1])["task"]
    assert counting.asked == {last.partition("/")[0]}
    assert len(again.kept) == len(lines)
    assert again.results["splits"] == first.results["splits"]


class CountingStand(Stand):
    """Knows what it was asked for."""

    def __init__(self, turns: int) -> None:
        super().__init__(turns=turns)
        self.asked: set[str] = set()

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """Remember the task."""
        self.asked.add(request.task.name)
        return await super().propose(request)


async def test_what_the_time_cut_short_counts_neither_way(tmp_path: Path) -> None:
    config = EvaluationConfig(turns=2, most=1, phase_seconds=-99, phases=("five",))
    verifier = Verifier(gpu=None)
    with Store(f"sqlite:///{tmp_path}/store.sqlite") as store:
        # The run's one second is over before the second turn of the task that needs it.
        work = Evaluation(SlowStand(turns=2), verifier, store, tmp_path, config, time.monotonic() + 240)
        entries = await work.prepare()
        work.until = time.monotonic()
        await work.run(entries)
    await verifier.aclose()
    row = work.results["splits"]["held_out_member"]
    assert (row["tasks"], row["five"], row["five_of"]) == (1, 0, 0)


class SlowStand(Stand):
    """Takes all the time there is for its first answer, which has no code."""

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """After the run's time."""
        await asyncio.sleep(1.1)
        return [Proposal("Sorry.")]


async def test_no_phase_begins_after_the_time(tmp_path: Path) -> None:
    verifier = Verifier(gpu=None)
    with Store(f"sqlite:///{tmp_path}/store.sqlite") as store:
        work = Evaluation(Stand(), verifier, store, tmp_path, EvaluationConfig(), time.monotonic() - 1)
        results = await work.run([])
    await verifier.aclose()
    assert "greedy_seconds" not in results
    assert "samples_seconds" not in results


def test_the_card_tells_what_was_found(tmp_path: Path) -> None:
    write_facts(tmp_path, {"config": {"model": "smollm2"}, "training": {"steps": 7, "tokens": 2_000_000, "seconds": 3}})
    assert "Not evaluated yet." in (tmp_path / "README.md").read_text()
    found = {"judge": "the emulator", "splits": {"unseen_family": {"tasks": 8, "greedy": 2, "first": 3, "five": 4}}}
    write_facts(tmp_path, {"evaluation": found})
    text = (tmp_path / "README.md").read_text()
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in text
    assert "| unseen family | 8 | – | 25 % (2) | 38 % (3) | 50 % (4) |" in text
    assert "7 steps, 2.0 M tokens" in text
    assert "–" in card({"evaluation": {"splits": {"x": {"tasks": 3}}}})
