"""`cudaperf train`: teach a policy; `sft` is the warm start, `grpo` goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cudaperf_agent.cli.destination import check_out_folder
from cudaperf_agent.cli.output import JsonFlag, put, put_json, say
from cudaperf_agent.cli.train_grpo import grpo

app = typer.Typer(help="Train policies.", no_args_is_help=True)
app.command()(grpo)


@app.command()
def sft(
    config: Annotated[Path, typer.Option(help="TOML file; training/configs/ has examples.")],
    out: Annotated[Path, typer.Option(help="Folder of the run: rows, metrics, checkpoints, the adapter.")] = Path(
        "train-sft"
    ),
    model: Annotated[str | None, typer.Option(help="Instead of the file's: a folder, `smollm2` or `tiny`.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Make the rows, print config and plan, end.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in the folder.")] = False,
    report_to: Annotated[str, typer.Option(help="`tensorboard` as well as metrics.jsonl.")] = "none",
    as_json: JsonFlag = False,
) -> int:
    """Warm start: fine-tune an adapter on generated translations, in the graph's own prompts.

    Ctrl-C or SIGTERM ends it after the step at work, with the adapter as it then is; `--resume` goes on from there.
    """
    from cudaperf_agent.cli.outcome import RunEnded
    from cudaperf_agent.cli.signals import termination_interrupts

    try:
        with termination_interrupts():
            return _sft(config, out, model, dry_run, resume, report_to, as_json)
    except KeyboardInterrupt:
        raise RunEnded("interrupted", "interrupted", where=str(out), hint=_going_on(config, out)) from None


def _sft(config: Path, out: Path, model: str | None, dry_run: bool, resume: bool, report_to: str, as_json: bool) -> int:
    from dataclasses import replace

    from cudaperf_agent.cli.outcome import RunEnded
    from training.sft.config import load_config
    from training.sft.run import plan_text, prepared, train

    chosen = load_config(config)
    if model is not None:
        chosen = replace(chosen, model=model)
    check_out_folder(out)
    if dry_run:
        planned = prepared(chosen, out, say)[0]
        if as_json:
            put_json({"config": chosen.to_dict(), "plan": planned.to_dict()})
        else:
            put(plan_text(chosen, planned))
        return 0
    ended = train(chosen, out, resume=resume, report_to=report_to, say=say)
    facts = {
        "adapter": str(ended.adapter), "steps": ended.steps, "seconds": ended.seconds, "tokens": ended.tokens,
        "loss": ended.loss, "finished": ended.finished,
    }  # fmt: skip
    if ended.interrupted:
        told = RunEnded(
            "interrupted", f"interrupted after {ended.steps} steps", where=str(out), hint=_going_on(config, out)
        )
        told.report = facts
        raise told
    if as_json:
        put_json(facts)
    else:
        put(f"{ended.adapter}: {ended.steps} steps, {ended.seconds:.0f} s, loss {ended.loss:.4f}")
    return 0


def _going_on(config: Path, out: Path) -> str:
    """What is to be done after an interruption."""
    # The trainer's own state comes last: a checkpoint without it was cut short.
    if any(out.glob("checkpoint-*/trainer_state.json")):
        return f"go on with: cudaperf train sft --config {config} --out {out} --resume"
    return "there is no checkpoint yet: the same command begins anew"
