"""What a warm-started adapter is worth: held-out members and unseen families through the graph, judged for real.

Meant for the machine that trains: everything slow is prepared while training runs, then the adapter is awaited. Every
candidate is kept with its verdict as it comes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cudaperf_agent.errors import CudaPerfError
from cudaperf_agent.policies.base import Policy
from cudaperf_agent.policies.sampling import SamplingConfig
from cudaperf_agent.tasks.model import Task
from training.dataset.families import all_programs
from training.splits import Split, split_of

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.store.repository import Store
    from graph.context import Deps
    from graph.results import RunResult

CANDIDATES, RESULTS = "candidates.jsonl", "evaluation.json"


class Switchable(Policy, Protocol):
    """A policy whose adapter and sampling can be changed."""

    def use_adapter(self, folder: Path | None) -> None:
        """From the next request on."""
        ...

    def use_sampling(self, sampling: SamplingConfig) -> None:
        """From the next request on."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """What is run.

    Attributes:
        splits: Sets of tasks.
        turns: Of the longer trajectories.
        temperature, top_p: Of the longer trajectories; the greedy ones have one turn.
        samples: Answers to each of `sampled_tasks` tasks of each split, at temperature 1, for the ranker's study.
        sampled_tasks: Tasks of each split that are sampled.
        max_tokens: Of one answer.
        most: Tasks of each split at most; `None` takes all.
        wait_step: Seconds between looks for the adapter.
        phase_seconds: Least time left for which another phase is begun.
    """

    splits: tuple[Split, ...] = ("held_out_member", "unseen_family")
    turns: int = 5
    temperature: float = 0.8
    top_p: float = 0.95
    samples: int = 16
    sampled_tasks: int = 12
    max_tokens: int = 1100
    most: int | None = None
    wait_step: float = 0.5
    phase_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A task of an evaluation set."""

    name: str
    split: Split
    task: Task


@dataclass(slots=True)
class Evaluation:
    """A policy at work on the sets.

    Attributes:
        policy, verifier, store: Parts of every run.
        out: Folder of the results.
        config: What is run.
        until: Time (`time.monotonic`) after which no phase is begun.
        adapter: Whose card tells the results, once it is there.
        results: What is known so far.
    """

    policy: Switchable
    verifier: Verifier
    store: Store
    out: Path
    config: EvaluationConfig
    until: float
    adapter: Path | None = None
    results: dict[str, Any] = field(default_factory=dict)

    async def prepare(self) -> list[Entry]:
        """The tasks, their C run under the sanitizers; those that are refused are left out and told."""
        from cudaperf_agent.cuda import emulator
        from cudaperf_agent.tasks.parse import load_task
        from cudaperf_agent.tasks.prepare import prepare

        await asyncio.to_thread(emulator.runtime_library)
        counts: dict[str, int] = {}
        chosen = []
        for program in all_programs():
            split = split_of(program.family, program.member)
            if split in self.config.splits and counts.get(split, 0) < (self.config.most or 1 << 30):
                counts[split] = counts.get(split, 0) + 1
                chosen.append((program, split))
        free = asyncio.Semaphore(_processors())

        async def one(program: Any, split: Split) -> Entry | None:
            async with free:
                try:
                    task = await asyncio.to_thread(load_task, source=program.source, entry=program.entry)
                    task = await prepare(task, wrap=self.verifier.place.sandbox.wrap)
                except CudaPerfError as error:
                    say(f"{program.name}: {error.message}")
                    return None
                return Entry(program.name, split, task)

        made = await asyncio.gather(*(one(*pair) for pair in chosen))
        return [entry for entry in made if entry is not None]

    async def run_base(self, entries: Sequence[Entry]) -> None:
        """The bare model, greedy, one turn: what there was before."""
        await self._counted(entries, "base", SamplingConfig(0.0, 1.0, self.config.max_tokens), 1)

    async def run(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """All phases that the time allows; the results so far are on disk after each."""
        config = self.config
        await self._counted(entries, "greedy", SamplingConfig(0.0, 1.0, config.max_tokens), 1)
        drawn = SamplingConfig(config.temperature, config.top_p, config.max_tokens)
        await self._counted(entries, "five", drawn, config.turns)
        await self._sampled(entries, self.results)
        return self.results

    async def _counted(self, entries: Sequence[Entry], phase: str, sampling: SamplingConfig, turns: int) -> None:
        """One phase, and how many tasks of each split it got right."""
        if time.monotonic() + self.config.phase_seconds > self.until:
            say(f"no time left for {phase}")
            return
        self.results.setdefault("judge", f"the {self.verifier.backend}")
        self.results.setdefault("config", asdict(self.config))
        splits: dict[str, dict[str, int]] = self.results.setdefault("splits", {})
        self.policy.use_sampling(sampling)
        began = time.monotonic()
        ended = await self._phase(entries, phase, turns)
        for split in self.config.splits:
            of_split = [r for e, r in zip(entries, ended, strict=True) if e.split == split]
            row = splits.setdefault(split, {"tasks": len(of_split)})
            row[phase] = sum(result.best is not None for result in of_split)
            if turns > 1:
                row["first"] = sum(result.best is not None and result.best.turn == 0 for result in of_split)
        self.results[f"{phase}_seconds"] = round(time.monotonic() - began, 1)
        self._write(self.results)
        say(f"{phase}: {json.dumps(splits)} in {self.results[f'{phase}_seconds']} s")

    async def _phase(self, entries: Sequence[Entry], phase: str, turns: int) -> list[RunResult]:
        from graph.config import GraphConfig
        from graph.runner import run_task

        deps = self._deps()

        async def one(number: int, entry: Entry) -> RunResult:
            left = max(1.0, self.until - time.monotonic())
            settings = GraphConfig(turns=turns, seed=number, seconds=left, checkpointing=False)
            result = await run_task(entry.task, deps, settings, origin="evaluation")
            self._keep(entry, phase, result)
            return result

        return list(await asyncio.gather(*(one(n, e) for n, e in enumerate(entries))))

    async def _sampled(self, entries: Sequence[Entry], results: dict[str, Any]) -> None:
        """Many answers of one turn to a few tasks of each split."""
        from graph.config import GraphConfig
        from graph.runner import run_task

        config = self.config
        if not config.samples or time.monotonic() + config.phase_seconds > self.until:
            say("no time left for samples")
            return
        self.policy.use_sampling(SamplingConfig(1.0, 1.0, config.max_tokens))
        chosen: list[Entry] = []
        for split in config.splits:
            of_split = [e for e in entries if e.split == split]
            step = max(1, len(of_split) // max(1, config.sampled_tasks))
            chosen += of_split[::step][: config.sampled_tasks]
        deps = self._deps()

        async def one(number: int, entry: Entry) -> None:
            left = max(1.0, self.until - time.monotonic())
            settings = GraphConfig(
                turns=1, trajectories=config.samples, seed=1000 * number, seconds=left, checkpointing=False
            )
            self._keep(entry, "samples", await run_task(entry.task, deps, settings, origin="evaluation"))

        began = time.monotonic()
        await asyncio.gather(*(one(n, e) for n, e in enumerate(chosen)))
        results["samples_seconds"] = round(time.monotonic() - began, 1)
        self._write(results)
        say(f"{config.samples} samples of {len(chosen)} tasks in {results['samples_seconds']} s")

    def _keep(self, entry: Entry, phase: str, result: RunResult) -> None:
        with (self.out / CANDIDATES).open("a", encoding="utf-8") as file:
            for attempt in result.attempts:
                verdict, hidden = attempt.verdict, attempt.hidden_verdict
                line = {
                    "task": entry.name, "split": entry.split, "phase": phase, "trajectory": attempt.trajectory,
                    "turn": attempt.turn, "status": attempt.status, "message": verdict.message if verdict else "",
                    "passed": verdict.passed if verdict else 0, "total": verdict.total if verdict else 0,
                    "hidden": str(hidden.status) if hidden else None, "finish_reason": attempt.finish_reason,
                    "tokens": attempt.usage.get("completion_tokens"), "source": attempt.source,
                }  # fmt: skip
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
            if result.error:
                say(f"{entry.name}: {result.error.get('message')}")

    def _write(self, results: dict[str, Any]) -> None:
        if self.adapter is not None:
            from training.sft.adapters import write_facts

            write_facts(self.adapter, {"evaluation": {k: v for k, v in results.items() if k != "config"}})
        (self.out / RESULTS).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")

    def _deps(self) -> Deps:
        from cudaperf_agent.policies.parse_answer import parse_answer
        from cudaperf_agent.policies.prompts import PromptConfig, build_messages
        from graph.assessing import assess, write_feedback
        from graph.context import Deps

        return Deps(
            policy=self.policy,
            verifier=self.verifier,
            store=self.store,
            build_messages=partial(build_messages, config=PromptConfig.compact()),
            parse_answer=parse_answer,
            assess=assess,
            write_feedback=write_feedback,
        )


def say(text: str) -> None:
    """Progress on stderr, at once, with the time."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _processors() -> int:
    import os

    return len(os.sched_getaffinity(0))


async def evaluate(arguments: argparse.Namespace, config: EvaluationConfig) -> dict[str, Any]:
    """Prepare, wait for the adapter, run, and tell its card."""
    from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
    from cudaperf_agent.store.repository import Store

    started = time.monotonic()
    policy = _policy(arguments)
    verifier = Verifier(VerifierConfig(remembered_tasks=1024), gpu=None)
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/evaluation.sqlite") as store:
        work = Evaluation(policy, verifier, store, arguments.out, config, started + arguments.seconds)
        try:
            entries = await work.prepare()
            say(f"{len(entries)} tasks prepared")
            await _warm(policy, entries)
            say("the engine is up")
            await work.run_base(entries)
            adapter: Path | None = arguments.adapter
            while adapter and not (adapter / "adapter_model.safetensors").exists():
                if time.monotonic() > work.until:
                    say("no adapter came")
                    return {}
                await asyncio.sleep(config.wait_step)
            if adapter:
                policy.use_adapter(adapter)
                work.adapter = adapter
            return await work.run(entries)
        finally:
            await policy.aclose()
            await verifier.aclose()


async def _warm(policy: Switchable, entries: Sequence[Entry]) -> None:
    """One short answer, so that the engine is up before the adapter is there."""
    from cudaperf_agent.policies.base import ProposalRequest
    from cudaperf_agent.policies.prompts import PromptConfig, build_messages

    policy.use_sampling(SamplingConfig(0.0, 1.0, 4))
    for entry in entries[:1]:
        messages = build_messages(entry.task, config=PromptConfig.compact())
        await policy.propose(ProposalRequest(messages, entry.task))


def _policy(arguments: argparse.Namespace) -> Switchable:
    from training.sft.run import model_folder

    model = model_folder(arguments.model, arguments.out)
    if arguments.engine == "local":
        from cudaperf_agent.policies.local import LocalConfig, LocalPolicy

        return LocalPolicy(LocalConfig(model=model))
    from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy

    return VllmPolicy(
        VllmConfig(
            model=str(model),
            lora_rank=arguments.rank,
            memory_share=arguments.memory_share,
            cache_bytes=int(arguments.cache_gib * 2**30),
            max_model_len=arguments.context,
            max_sequences=arguments.sequences,
        )
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Command line of the evaluation on the training machine."""
    defaults = EvaluationConfig()
    parser = argparse.ArgumentParser(prog="python -m training.sft.evaluate", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, help="awaited, if it is not there yet")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--engine", choices=("vllm", "local"), default="vllm")
    parser.add_argument("--seconds", type=float, default=300.0, help="from now; no phase begins later")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--memory-share", type=float, default=0.15)
    parser.add_argument("--cache-gib", type=float, default=16.0, help="of the engine's key-value cache")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--turns", type=int, default=defaults.turns)
    parser.add_argument("--samples", type=int, default=defaults.samples)
    parser.add_argument("--most", type=int, help="tasks of each split")
    parser.add_argument("--max-tokens", type=int, default=defaults.max_tokens)
    arguments = parser.parse_args(argv)
    config = EvaluationConfig(
        turns=arguments.turns, samples=arguments.samples, most=arguments.most, max_tokens=arguments.max_tokens
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(evaluate(arguments, config))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
