"""The phases of a warm start's evaluation: each a set of tasks through the graph, every candidate kept as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
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
from training.evaluation.ahead import make_ready
from training.splits import Split, split_of

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.store.repository import Store
    from graph.context import Deps
    from graph.results import RunResult

CANDIDATES, RESULTS = "candidates.jsonl", "evaluation.json"
PHASES = ("base", "greedy", "five", "samples")
ENDED_BY_TIME = "budget"


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
        phases: Which of `PHASES` are run.
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
    phases: tuple[str, ...] = PHASES


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
        kept: Lines of the candidates' file, an earlier process's too.
    """

    policy: Switchable
    verifier: Verifier
    store: Store
    out: Path
    config: EvaluationConfig
    until: float
    adapter: Path | None = None
    results: dict[str, Any] = field(default_factory=dict)
    kept: list[dict[str, Any]] = field(default_factory=list)

    def go_on(self) -> None:
        """Take up what an earlier process left in the folder."""
        if (self.out / RESULTS).exists():
            self.results = json.loads((self.out / RESULTS).read_text(encoding="utf-8"))
        if (self.out / CANDIDATES).exists():
            self.kept = whole_lines(self.out / CANDIDATES)
            say(
                f"going on with {len(self.kept)} candidates of {len({(e['phase'], e['task']) for e in self.kept})} runs"
            )

    async def prepare(self) -> list[Entry]:
        """The tasks, their C run under the sanitizers; those that are refused are left out and told."""
        from cudaperf_agent.tasks.parse import load_task

        counts: dict[str, int] = {}
        chosen = []
        for program in all_programs():
            split = split_of(program.family, program.member)
            if split in self.config.splits and counts.get(split, 0) < (self.config.most or 1 << 30):
                counts[split] = counts.get(split, 0) + 1
                chosen.append((program, split))
        made: dict[int, Entry] = {}

        def ready(number: int, loaded: Task, task: Task) -> None:
            program, split = chosen[number]
            made[number] = Entry(program.name, split, task)

        def refused(number: int, error: CudaPerfError) -> None:
            say(f"{chosen[number][0].name}: {error.message}")

        loaders = [partial(load_task, source=p.source, entry=p.entry) for p, _ in chosen]
        await make_ready(loaders, self.verifier.place.sandbox.wrap, ready, refused)
        return [made[number] for number in sorted(made)]

    async def run_base(self, entries: Sequence[Entry]) -> None:
        """The bare model, greedy, one turn: what there was before."""
        await self._phase(entries, "base", SamplingConfig(0.0, 1.0, self.config.max_tokens), 1)

    async def run(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """All phases that the time allows; the results so far are on disk after each."""
        config = self.config
        await self._phase(entries, "greedy", SamplingConfig(0.0, 1.0, config.max_tokens), 1)
        drawn = SamplingConfig(config.temperature, config.top_p, config.max_tokens)
        await self._phase(entries, "five", drawn, config.turns)
        if config.samples:
            few: list[Entry] = []
            for split in config.splits:
                of_split = [e for e in entries if e.split == split]
                step = max(1, len(of_split) // max(1, config.sampled_tasks))
                few += of_split[::step][: config.sampled_tasks]
            free = SamplingConfig(1.0, 1.0, config.max_tokens)
            await self._phase(few, "samples", free, 1, trajectories=config.samples)
        return self.results

    async def _phase(
        self, entries: Sequence[Entry], phase: str, sampling: SamplingConfig, turns: int, *, trajectories: int = 1
    ) -> None:
        """One phase: what is left of it, as far as the time goes."""
        from graph.config import GraphConfig
        from graph.runner import run_task

        if phase not in self.config.phases:
            return
        if time.monotonic() + self.config.phase_seconds > self.until:
            say(f"no time left for {phase}")
            return
        self.results.setdefault("judge", f"the {self.verifier.backend}")
        self.results.setdefault("config", asdict(self.config))
        self.policy.use_sampling(sampling)
        done = {e["task"] for e in self.kept if e["phase"] == phase}
        deps, began = self._deps(), time.monotonic()

        async def one(number: int, entry: Entry) -> None:
            settings = GraphConfig(
                turns=turns,
                trajectories=trajectories,
                seed=number if trajectories == 1 else 1000 * number,
                seconds=max(1.0, self.until - time.monotonic()),
                checkpointing=False,
            )
            self._keep(entry, phase, await run_task(entry.task, deps, settings, origin="evaluation"))

        await asyncio.gather(*(one(n, e) for n, e in enumerate(entries) if e.name not in done))
        seconds = f"{phase}_seconds"
        self.results[seconds] = round(self.results.get(seconds, 0.0) + time.monotonic() - began, 1)
        if phase != "samples":
            self._count(entries, phase, turns)
        self._write(self.results)
        say(f"{phase}: {json.dumps(self.results.get('splits', {}))} in {self.results[seconds]} s")

    def _count(self, entries: Sequence[Entry], phase: str, turns: int) -> None:
        """How many tasks of each split a phase got right."""
        splits: dict[str, dict[str, int]] = self.results.setdefault("splits", {})
        for split in self.config.splits:
            of_split = {e.name for e in entries if e.split == split}
            found = [e for e in self.kept if e["phase"] == phase and e["task"] in of_split]
            row = splits.setdefault(split, {"tasks": len(of_split)})
            row[phase] = len({e["task"] for e in found if e["best"]})
            if turns > 1:
                row["first"] = len({e["task"] for e in found if e["best"] and e["turn"] == 0})
            known = len({e["task"] for e in found})
            if known < row["tasks"]:
                row[f"{phase}_of"] = known
            else:
                row.pop(f"{phase}_of", None)

    def _keep(self, entry: Entry, phase: str, result: RunResult) -> None:
        if result.error:
            say(f"{entry.name}: {result.error.get('message')}")
        if any(t.reason == ENDED_BY_TIME for t in result.trajectories):
            return  # it would have gone on: it counts neither as right nor as wrong
        best = result.best.attempt if result.best else None
        lines = []
        for attempt in result.attempts:
            verdict, hidden = attempt.verdict, attempt.hidden_verdict
            lines.append({
                "task": entry.name, "split": entry.split, "phase": phase, "trajectory": attempt.trajectory,
                "turn": attempt.turn, "status": attempt.status, "message": verdict.message if verdict else "",
                "passed": verdict.passed if verdict else 0, "total": verdict.total if verdict else 0,
                "hidden": str(hidden.status) if hidden else None, "finish_reason": attempt.finish_reason,
                "best": attempt == best, "attempts": len(result.attempts),
                "tokens": attempt.usage.get("completion_tokens"), "source": attempt.source,
            })  # fmt: skip
        self.kept += lines
        with (self.out / CANDIDATES).open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

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


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The candidates of a file; runs that a kill cut short are taken out of it, to be done again."""
    lines: list[dict[str, Any]] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            lines.append(json.loads(text))
    counts = Counter((line["phase"], line["task"]) for line in lines)
    lines = [line for line in lines if counts[line["phase"], line["task"]] == line["attempts"]]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return lines


def say(text: str) -> None:
    """Progress on stderr, at once, with the time."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()
