"""`cudaperf train grpo`: GRPO by the same graph, from a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.destination import check_out_folder
from cudaperf_agent.cli.output import JsonFlag, put, put_json, say

if TYPE_CHECKING:
    from training.grpo.config import GrpoConfig


def grpo(
    config: Annotated[
        Path, typer.Option("--config", help="TOML file of the run; shipped ones are in training/configs.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of checkpoints, logs and the adapter.")] = Path("grpo"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint in the folder.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print configuration, memory estimate and plan; train nothing.")
    ] = False,
    adapter: Annotated[Path | None, typer.Option(help="LoRA folder to begin with, instead of the file's.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimiser steps, instead of the file's.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after so many seconds, resumable.")] = None,
    engine: Annotated[str | None, typer.Option(help="vllm or transformers, instead of the file's.")] = None,
    report_to: Annotated[
        list[str] | None, typer.Option(help="tensorboard or trackio, beside metrics.jsonl; `none`: neither.")
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE of the file, VALUE as in TOML; may be repeated.")
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Train the policy by multi-turn GRPO: the graph rolls out, the verdicts reward, every trajectory is stored."""
    import os
    import time

    started = time.monotonic()
    from training.grpo.config import load_config

    given = {"model.adapter": adapter, "run.steps": steps, "run.seconds": seconds, "rollout.engine": engine}
    overrides: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if report_to:
        overrides["run.report_to"] = [name for name in report_to if name != "none"]
    for text in change or ():
        key, value = _assignment(text)
        overrides[key] = value
    made = load_config(config, overrides)
    if dry_run:
        return _dry_run(made, as_json)
    check_out_folder(out)
    from cudaperf_agent.cli.outcome import RunEnded
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.cli.signals import termination_interrupts
    from cudaperf_agent.settings import load_settings
    from training.grpo.run import newest_checkpoint, train

    again = f"go on with: cudaperf train grpo --config {config} --out {out} --resume"
    try:
        with termination_interrupts(), open_store(load_settings().settings) as store:
            done = train(made, out, store=store, say=say, resume=resume, started=started)
    except KeyboardInterrupt:
        hint = again if newest_checkpoint(out) else "there is no checkpoint yet: the same command begins anew"
        raise RunEnded("interrupted", "interrupted", where=str(out), hint=hint) from None
    if os.environ.get("RANK", "0") != "0":
        return 0
    facts = {
        "steps": done.steps, "planned": done.planned, "finished": done.finished,
        "adapter": str(done.adapter), "checkpoint": str(done.checkpoint) if done.checkpoint else None,
    }  # fmt: skip
    if as_json:
        put_json(facts)
    else:
        rest = "" if done.finished else f"; {again}"
        put(f"{done.steps} of {done.planned} steps, adapter in {done.adapter}{rest}")
    return 0


def _dry_run(config: GrpoConfig, as_json: bool) -> int:
    from dataclasses import asdict

    from training.grpo.plan import estimate_memory, layout_of, model_shape, step_plan, world_size
    from training.grpo.tasks import make_schedule, training_tasks

    world = world_size()
    layout = layout_of(config, world)
    tasks = training_tasks(config.run)
    schedule = make_schedule(list(tasks), config.run, config.rollout.tasks_per_step)
    shape = model_shape(config.model)
    memory = asdict(estimate_memory(config, shape, _device_bytes())) if shape else None
    told: dict[str, Any] = {
        "config": config.model_dump(mode="json"),
        "memory_gib": memory,
        "plan": step_plan(config, layout, world, len(tasks), schedule.steps),
        "first_step": list(schedule.of_step(0)),
    }
    if as_json:
        put_json(told)
        return 0
    for section, values in told["config"].items():
        for key, value in values.items() if isinstance(values, dict) else (("", values),):
            put(f"{section}.{key} = {value}" if key else f"{section} = {value}")
    put("")
    if memory is None:
        put("memory: unknown, the model is not on this machine")
    else:
        put("memory of one device, GiB: " + ", ".join(f"{k} {v}" for k, v in memory.items() if v is not None))
    for key, value in told["plan"].items():
        put(f"{key.replace('_', ' ')}: {value}")
    put("tasks of the first step: " + ", ".join(told["first_step"]))
    return 0


def _device_bytes() -> int | None:
    from cudaperf_agent.cuda.gpu import find_gpu

    gpu = find_gpu()
    return gpu.memory if gpu else None


def _assignment(text: str) -> tuple[str, Any]:
    import tomllib

    from cudaperf_agent.errors import UsageError

    key, sign, value = text.partition("=")
    key = key.strip()
    if not sign or "." not in key:
        raise UsageError(f"--set takes SECTION.KEY=VALUE, not {text!r}", hint="for instance --set rollout.turns=2")
    try:
        return key, tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value.strip()
