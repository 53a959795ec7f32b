"""A warm start from its configuration to an adapter folder: rows, tokens, training, adapter, model card."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable, UsageError
from training.sft.config import SftConfig
from training.sft.rows import Row, build_rows, read_rows, shipped_attempts, write_rows
from training.sft.tokens import Encoded, encode, learning_order

METRICS = "metrics.jsonl"
ADAPTER = "adapter"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do.

    Attributes:
        rows, kinds: Rows that fit, and how many of each kind.
        left_out: Rows that are longer than the context.
        tokens: Of one pass, padding included.
        steps: Of the whole run, if its time suffices.
        longest: Tokens of the longest row.
    """

    rows: int
    kinds: dict[str, int]
    left_out: int
    tokens: int
    steps: int
    longest: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Trained:
    """How a run ended.

    Attributes:
        adapter: Its folder.
        steps, seconds, tokens: Of training; tokens without padding.
        loss: Mean of the last ten steps.
        finished: Whether it reached the end of its schedule; else its time was over, or it was told to stop.
        interrupted: Whether it was told to stop.
    """

    adapter: Path
    steps: int
    seconds: float
    tokens: int
    loss: float
    finished: bool
    interrupted: bool


def load_rows(config: SftConfig, out: Path, say: Callable[[str], None]) -> list[Row]:
    """The rows of a run; made first, and kept, where its file is not there."""
    path = Path(config.rows_file) if config.rows_file else out / "rows.jsonl.gz"
    if not path.exists():
        started = time.monotonic()
        say(f"making rows of {config.rows.programs} programs in {config.workers} processes")
        made = write_rows(path, build_rows(config.rows, shipped_attempts(), workers=config.workers, say=say))
        say(f"{path}: {made} rows, {path.stat().st_size / 1e6:.1f} MB, {time.monotonic() - started:.0f} s")
    return read_rows(path)


_OF_A_MODEL = {
    "config.json": ("config.json",),
    "tokenizer": ("tokenizer.json", "tokenizer_config.json"),
    "weights": ("*.safetensors", "*.bin"),
}
"""What a Hugging Face folder has, and by which files."""


def check_model(name: str) -> None:
    """Find out quickly whether there is a model of this name, before the work that comes first.

    Raises:
        BackendUnavailable: The weights in the box are not installed.
        UsageError: There is no such folder, or it lacks something.
    """
    if name == "smollm2":
        from cudaperf_agent.policies.smollm2 import check_smollm2

        check_smollm2()
    elif name != "tiny":
        folder = Path(name).expanduser()
        lacking = [
            what for what, files in _OF_A_MODEL.items() if not any(True for file in files for _ in folder.glob(file))
        ]
        if lacking:
            raise UsageError(
                f"{name} is no Hugging Face model folder (it has no {lacking[0]})",
                where="model",
                hint="name a folder that is one, or `smollm2`, the model in the box, or `tiny`, to try things out",
            )


def model_folder(name: str, out: Path) -> Path:
    """The folder of a model by its name in a configuration.

    Raises:
        BackendUnavailable: A library or the weights are missing.
        UsageError: There is no such folder.
    """
    check_model(name)
    if name == "smollm2":
        from cudaperf_agent.policies.smollm2 import smollm2_folder

        return smollm2_folder()
    if name == "tiny":
        from training.sft.tiny import tiny_model

        return tiny_model(out / "tiny-model")
    return Path(name).expanduser()


def plan(config: SftConfig, rows: list[Row], encoded: list[Encoded]) -> Plan:
    """What training on these rows comes to."""
    kinds: dict[str, int] = {}
    for row in rows:
        kinds[row.kind] = kinds.get(row.kind, 0) + 1
    settings = config.optimiser
    lengths = [len(one.ids) for one in encoded]
    order = learning_order(lengths, settings.batch, 1, settings.seed)
    padded = sum(
        max(lengths[i] for i in order[k : k + settings.batch]) * settings.batch
        for k in range(0, len(order), settings.batch)
    )
    steps = len(order) // settings.batch * settings.epochs // settings.accumulate
    return Plan(len(encoded), kinds, len(rows) - len(encoded), padded, steps, max(lengths, default=0))


def prepared(config: SftConfig, out: Path, say: Callable[[str], None]) -> tuple[Plan, list[Encoded], Any, Path]:
    """Plan, encoded rows, tokenizer and model folder of a run.

    Raises:
        BackendUnavailable: transformers is not installed, or the weights are not.
        UsageError: There is no such model, or there are fewer rows than one batch takes.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise BackendUnavailable(
            f"{error.name or 'transformers'} is not installed", hint='pip install "cudaperf-agent[training]"'
        ) from error
    check_model(config.model)
    out.mkdir(parents=True, exist_ok=True)
    rows = load_rows(config, out, say)
    folder = model_folder(config.model, out)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = encode(rows, tokenizer, config.context)
    if len(encoded) < config.optimiser.batch:
        raise UsageError(
            f"{len(encoded)} rows fit into {config.context} tokens, a batch takes {config.optimiser.batch}",
            where="context",
            hint="make more rows (rows.programs), or a smaller batch (optimiser.batch)",
        )
    return plan(config, rows, encoded), encoded, tokenizer, folder


def train(
    config: SftConfig, out: Path, *, resume: bool = False, report_to: str = "none", say: Callable[[str], None]
) -> Trained:
    """Run the warm start; the adapter is in ``out/adapter`` when it returns, however it ended.

    Raises:
        BackendUnavailable: A library is missing.
        UsageError: There is nothing to resume, no such model, or there are too few rows.
    """
    checkpoint = _checkpoint(out) if resume else None
    planned, encoded, tokenizer, folder = prepared(config, out, say)
    try:
        from datasets import Dataset
        from peft.helpers import disable_input_dtype_casting
        from transformers import PrinterCallback

        from training.sft.model import load_base, lora_config
        from training.sft.trainer import Narrator, Progress, RightPadded, WarmStartTrainer, trl_config
    except ImportError as error:
        raise BackendUnavailable(
            f"{error.name or 'trl'} is not installed", hint='pip install "cudaperf-agent[training]"'
        ) from error
    import torch

    settings = config.optimiser
    cpu = not torch.cuda.is_available()
    say(f"{planned.rows} rows, {planned.tokens / 1e6:.1f} M tokens a pass, {planned.steps} steps at most")
    order = learning_order([len(one.ids) for one in encoded], settings.batch, settings.epochs, settings.seed)
    data = Dataset.from_dict(
        {"input_ids": [one.ids for one in encoded], "labels": [one.labels for one in encoded]}
    ).select(order)
    torch.manual_seed(settings.seed)
    progress = Progress(planned.steps, settings.seconds)
    narrator = Narrator(out / METRICS, progress, settings, say)
    WarmStartTrainer.progress, WarmStartTrainer.settings = progress, settings
    if not resume:
        (out / METRICS).unlink(missing_ok=True)
    trainer = WarmStartTrainer(
        model=load_base(folder, config),
        args=trl_config(
            out,
            settings,
            bf16=config.precision == "bf16",
            save_steps=config.save_steps,
            cpu=cpu,
            steps=planned.steps,
            report_to=report_to,
        ),
        train_dataset=data,
        data_collator=RightPadded(tokenizer.pad_token_id),
        processing_class=tokenizer,
        peft_config=lora_config(config),
        callbacks=[narrator],
    )
    # It prints to stdout, which is for data.
    trainer.remove_callback(PrinterCallback)
    # Autocast gives the adapter its inputs as it wants them; without this peft would copy each to fp32 first.
    with narrator.listening(), disable_input_dtype_casting(trainer.model, config.precision == "bf16"):
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    steps = int(trainer.state.global_step)
    seen = sum(len(encoded[i].ids) for i in order[: steps * settings.batch * settings.accumulate])
    losses = [float(line["loss"]) for line in trainer.state.log_history if "loss" in line][-10:]
    finished = steps >= planned.steps
    ended = Trained(
        adapter=out / ADAPTER,
        steps=steps,
        seconds=progress.elapsed,
        tokens=seen,
        loss=sum(losses) / max(1, len(losses)),
        finished=finished,
        interrupted=narrator.asked_to_stop and not finished,
    )
    from training.sft.adapters import save_adapter

    save_adapter(trainer.model, ended.adapter, facts=_facts(config, planned, ended))
    say(
        f"{ended.adapter}: {steps} steps, {ended.seconds:.0f} s, {seen / max(1e-9, ended.seconds):,.0f} tokens a second"
    )
    return ended


def _facts(config: SftConfig, planned: Plan, ended: Trained) -> dict[str, Any]:
    told = {**asdict(ended), "adapter": ADAPTER}
    # Names, not places: where a file lay on the machine that trained says nothing to others.
    rows = Path(config.rows_file).name if config.rows_file else None
    named = {**config.to_dict(), "model": Path(config.model).name, "rows_file": rows}
    return {"config": named, "plan": planned.to_dict(), "training": told}


def _checkpoint(out: Path) -> Path:
    found = sorted(out.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2]))
    if not found:
        raise UsageError("there is no checkpoint to resume", where=str(out), hint="run without --resume")
    return found[-1]


def plan_text(config: SftConfig, planned: Plan) -> str:
    """The dry run's answer, for people."""
    return json.dumps({"config": config.to_dict(), "plan": planned.to_dict()}, indent=2)
