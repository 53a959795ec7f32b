"""`cudaperf train`: teach a policy; `sft` is the warm start, `grpo` goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    """Warm start: fine-tune an adapter on generated translations, in the graph's own prompts."""
    from dataclasses import replace

    from training.sft.config import load_config
    from training.sft.run import plan_text, prepared, train

    chosen = load_config(config)
    if model is not None:
        chosen = replace(chosen, model=model)
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
    if as_json:
        put_json(facts)
    else:
        put(f"{ended.adapter}: {ended.steps} steps, {ended.seconds:.0f} s, loss {ended.loss:.4f}")
    return 0
