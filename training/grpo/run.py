"""Puts a GRPO run together from its configuration, and trains.

Order matters on one GPU: the engine starts before the trainer takes memory. The rollouts run on the process's one
event loop, the trainer in the calling thread, which waits meanwhile; so nothing is timed while something trains.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.base import CandidateVerifier
from cudaperf_agent.cuda.gpu import chosen_gpu
from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from graph import loop
from graph.batching import BatchingPolicy, BatchPolicy
from graph.context import Deps
from training.beside_engine import judging_jobs
from training.grpo.config import GrpoConfig
from training.grpo.engines import Engine
from training.grpo.plan import layout_of, world_size
from training.grpo.step_time import GpuTurns, StepMeter
from training.grpo.tasks import make_schedule, training_tasks

_BATCH_SECONDS = 0.02
_BATCH = 4096

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrainResult:
    """How a run, or a slice of it, ended.

    Attributes:
        steps: Optimiser steps done, over all slices.
        planned: Of the whole run.
        finished: Whether there is nothing left to resume.
        adapter: The newest adapter, in bfloat16.
        checkpoint: What a next slice goes on from.
    """

    steps: int
    planned: int
    finished: bool
    adapter: Path
    checkpoint: Path | None


def train(
    config: GrpoConfig,
    out: Path,
    *,
    store: Store,
    say: Say,
    resume: bool = False,
    verifier: CandidateVerifier | None = None,
    started: float | None = None,
) -> TrainResult:
    """Train by the graph.

    Args:
        config: The run.
        out: Folder of checkpoints, logs and the adapter.
        store: Where trajectories go (origin ``grpo``).
        say: Progress.
        resume: Go on from the newest checkpoint in `out`; from the beginning where there is none.
        verifier: Who judges; made from the configuration where `None`.
        started: `time.monotonic` from which ``run.seconds`` count; now where `None`.

    Raises:
        BackendUnavailable: A library, a model or the compiler is missing, or the engine fails.
        ConfigError: The configuration does not fit the machine or the tasks.
    """
    started = time.monotonic() if started is None else started
    _require_libraries()
    from training.grpo import learner

    learner.check_release()
    if learner.rank():
        say = _silent
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = newest_checkpoint(out) if resume else None
    if not resume and newest_checkpoint(out) is not None:
        raise ConfigError(
            f"{out} holds a run already", where=str(out), hint="go on with --resume, or name another folder"
        )
    tasks = training_tasks(config.run)
    world = world_size()
    layout = layout_of(config, world)
    schedule = make_schedule(list(tasks), config.run, config.rollout.tasks_per_step)
    meter = StepMeter()
    verifier = verifier or _verifier(config)
    turns = GpuTurns() if verifier.backend == "gpu" and config.verify.timing and shares_gpu() else None
    tokenizer = learner.load_tokenizer(config.model)
    engine = _engine(config, tokenizer, out / "engine" / f"rank-{learner.rank()}")
    try:
        say(f"starting the {config.rollout.engine} engine")
        loop.run(engine.start())
        deps = _deps(config, engine, verifier, store, meter, turns)
        collect = partial(_collect, config=config, tasks=tasks, deps=deps, out=out, rank=learner.rank(), say=say)
        model = learner.load_model(config.model, seed=config.run.seed)
        say(f"{len(tasks)} tasks, {schedule.steps} steps; {world} device(s), {layout.trajectories} trajectories each")
        (out / "config.json").write_text(config.model_dump_json(indent=1) + "\n", encoding="utf-8")
        done = learner.learn(
            config,
            out,
            model=model,
            tokenizer=tokenizer,
            schedule=schedule,
            layout=layout,
            collect=collect,
            follow=engine.follow,
            meter=meter,
            checkpoint=checkpoint,
            until=None if config.run.seconds is None else started + config.run.seconds,
            say=say,
        )
    finally:
        loop.run(_close(engine, verifier))
    return TrainResult(done, schedule.steps, done >= schedule.steps, out / "adapter", newest_checkpoint(out))


def newest_checkpoint(out: Path) -> Path | None:
    """The newest whole checkpoint of a run's folder; a checkpoint that was cut short by a kill has no trainer state."""
    found = [p for p in out.glob("checkpoint-*") if (p / "trainer_state.json").exists()]
    return max(found, key=lambda p: int(p.name.rpartition("-")[2]), default=None)


def _require_libraries() -> None:
    import importlib.util

    for name in ("torch", "transformers", "peft", "trl", "accelerate", "datasets"):
        if importlib.util.find_spec(name) is None:
            raise BackendUnavailable(
                f"{name} is not installed", hint='Install it with: pip install "cudaperf-agent[training]"'
            )


def shares_gpu() -> bool:
    """Whether this process generates and learns on the GPU that candidates are timed on.

    With two GPUs, ``CUDA_VISIBLE_DEVICES=1 CUDAPERF_GPU=0`` leaves the first one to timing.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    ours = visible[local].strip() if len(visible) > local and visible[local].strip() else str(local)
    timed = chosen_gpu() or "0"
    # A number and a UUID may be the same device, and a UUID may be cut short.
    return ours == timed or ours.isdigit() != timed.isdigit() or _same_uuid(ours, timed)


def _same_uuid(one: str, other: str) -> bool:
    return not one.isdigit() and (one.startswith(other) or other.startswith(one))


def _verifier(config: GrpoConfig) -> CandidateVerifier:
    from cudaperf_agent.cuda.timing import TIMING
    from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
    from cudaperf_agent.cuda.workplace import EMULATED_LIMITS

    wanted = config.verify
    fewest = min(TIMING.fewest_contents, wanted.contents)
    timing = replace(TIMING, samples=wanted.samples, contents=wanted.contents, fewest_contents=fewest)
    spared = wanted.spared_processors if config.rollout.engine == "vllm" else 0
    jobs = judging_jobs(spared)
    numbers = VerifierConfig(
        seed=wanted.seed,
        also_emulate=wanted.emulate,
        emulated=replace(EMULATED_LIMITS, seconds=wanted.test_seconds),
        timing=timing,
        compile_jobs=jobs,
        run_jobs=jobs,
    )
    return Verifier(numbers, gpu=None) if wanted.backend == "emulator" else Verifier(numbers)


def _engine(config: GrpoConfig, tokenizer: Any, folder: Path) -> Engine:
    from training.grpo.engines import ModelEngine, VllmEngine

    if config.rollout.engine == "vllm":
        return VllmEngine(config.model, config.rollout, folder)
    name = Path(config.model.base).name if config.model.base else "smollm2-135m-instruct"
    return ModelEngine(name, tokenizer, config.rollout)


def _deps(
    config: GrpoConfig,
    engine: Engine,
    verifier: CandidateVerifier,
    store: Store,
    meter: StepMeter,
    turns: GpuTurns | None,
) -> Deps:
    from cudaperf_agent.policies.model_spec import small_model
    from cudaperf_agent.policies.parse_answer import parse_answer
    from cudaperf_agent.policies.prompts import PromptConfig, build_messages
    from graph.assessing import write_feedback
    from training.grpo.judging import MeteredPolicy, SharedVerifier
    from training.grpo.rewards import make_assess

    policy: Any = engine.policy
    if isinstance(policy, BatchPolicy):
        policy = BatchingPolicy(policy, seconds=_BATCH_SECONDS, size=_BATCH)
    form = config.rollout.prompt
    compact = small_model(config.model.base) if form == "auto" else form == "compact"
    return Deps(
        policy=MeteredPolicy(policy, meter, turns),
        verifier=SharedVerifier(verifier, meter, turns, timing=config.verify.timing),
        store=store,
        build_messages=partial(build_messages, config=PromptConfig.compact() if compact else PromptConfig()),
        parse_answer=parse_answer,
        assess=make_assess(config.reward),
        write_feedback=write_feedback,
    )


def _collect(
    step: int,
    names: Sequence[str],
    planned: int,
    micro_batches: int,
    *,
    config: GrpoConfig,
    tasks: Mapping[str, Task],
    deps: Deps,
    out: Path,
    rank: int,
    say: Say,
) -> Any:
    """The rows of one step: rollouts, rewards, advantages, and what the log says about them."""
    from training.grpo.batch import training_rows
    from training.grpo.metrics import rollout_metrics
    from training.grpo.rollouts import roll_out
    from training.grpo.rows import make_groups, permute_structural
    from training.grpo.trl_adapter import StepRows

    seed = (config.run.seed * 1_000_003 + step) % 2**31
    rollout = loop.run(roll_out(tasks, names, deps, config.rollout, seed))
    if rollout.errors:
        say(f"step {step + 1}: {len(rollout.errors)} trajectories failed: {rollout.errors[0]}")
    if not rollout.turns and rollout.errors:
        raise BackendUnavailable(f"every trajectory of the step failed: {rollout.errors[0]}")
    turns = list(rollout.turns)
    if config.reward.structural == "permuted":
        turns = permute_structural(turns, seed)
    groups = make_groups(
        turns,
        config.credit.rule,
        config.rollout.turns,
        mask_truncated=config.optimise.mask_truncated,
        shared_history=config.rollout.grouping == "same_history",
    )
    trained = [t for g in groups for t in g.turns]
    _log_rows(out / ("rows.jsonl" if rank == 0 else f"rows-{rank}.jsonl"), step, trained)
    return StepRows(
        training_rows(trained, planned, micro_batches), rollout_metrics(rollout, groups, config.rollout.turns)
    )


def _log_rows(path: Path, step: int, turns: Sequence[Any]) -> None:
    """What each row was credited with, one line a step: the store has the rest."""
    rows = [
        [
            t.run,
            t.trajectory,
            t.turn,
            t.status,
            t.reward,
            t.credit,
            round(t.advantage, 6),
            len(t.ids),
            t.source_key[:12],
        ]
        for t in turns
    ]
    columns = ["run", "trajectory", "turn", "status", "reward", "credit", "advantage", "tokens", "source"]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step + 1, "columns": columns, "rows": rows}) + "\n")


def _silent(_: str) -> None:
    """Of several processes, one speaks."""


async def _close(engine: Engine, verifier: CandidateVerifier) -> None:
    await asyncio.gather(engine.policy.aclose(), verifier.aclose())
