"""What a warm start is run with: one TOML file, every key checked before anything is loaded."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cudaperf_agent.errors import ConfigError
from training.config_file import no_such_key, not_a_table, read_toml, wrong_value
from training.sft.rows import RowsConfig


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """The adapter.

    Attributes:
        rank, alpha: Of LoRA, on all linear layers. At rank 24 the adapter of SmolLM2-135M takes 14 MB in bf16.
        dropout: On the adapter's input.
        four_bit: QLoRA: the base in NF4 with double quantisation.
    """

    rank: int = 24
    alpha: int = 48
    dropout: float = 0.0
    four_bit: bool = False


@dataclass(frozen=True, slots=True)
class OptimiserSettings:
    """How it learns.

    Attributes:
        learning_rate: At its peak; then a cosine down to `floor` of it.
        warmup: Share of the run in which it rises.
        floor: Share of the peak at the end.
        weight_decay, clip: Of AdamW; of the gradient's norm.
        batch: Rows of one step on one device.
        accumulate: Steps whose gradients are added up.
        epochs: Passes over the rows, if the time allows.
        seconds: Training time after which it ends, wherever it is; the schedule goes by what comes first. `None`: no
            limit.
        seed: Of the rows' order and of the adapter.
    """

    learning_rate: float = 1.5e-3
    warmup: float = 0.03
    floor: float = 0.02
    weight_decay: float = 0.0
    clip: float = 1.0
    batch: int = 32
    accumulate: int = 1
    epochs: int = 2
    seconds: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SftConfig:
    """A warm start.

    Attributes:
        model: Hugging Face folder; ``smollm2`` is the model in the box, ``tiny`` a random one for trying things out.
        context: Rows that are longer, in tokens, are left out.
        rows_file: Where rows are read from, and written to if it is not there; `None`: ``rows.jsonl.gz`` in the
            folder of the run.
        workers: Processes that make rows.
        precision: ``bf16`` or ``fp32``.
        save_steps: Steps between checkpoints; 0 keeps only the last.
        rows, lora, optimiser: Tables of the file.
    """

    model: str = "smollm2"
    context: int = 2048
    rows_file: str | None = None
    workers: int = 2
    precision: Literal["bf16", "fp32"] = "bf16"
    save_steps: int = 0
    rows: RowsConfig = field(default_factory=RowsConfig)
    lora: LoraSettings = field(default_factory=LoraSettings)
    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a file would hold them."""
        return dataclasses.asdict(self)


def load_config(path: Path) -> SftConfig:
    """Read a file.

    Raises:
        ConfigError: It cannot be read, has a key that does not exist, or a value of the wrong type.
    """
    data = read_toml(path, "sft")
    return _filled(SftConfig, data, str(path), "")


_Made = typing.TypeVar("_Made")


def _filled(kind: type[_Made], data: dict[str, Any], where: str, prefix: str) -> _Made:
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in hints:
            raise no_such_key(prefix + key, hints, where)
        wanted = hints[key]
        if dataclasses.is_dataclass(wanted):
            if not isinstance(value, dict):
                raise not_a_table(prefix + key, where)
            values[key] = _filled(typing.cast(type, wanted), value, where, f"{prefix}{key}.")
        else:
            values[key] = _checked(wanted, value, where, prefix + key, getattr(kind(), key))
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error.message}", where=where, hint=error.hint) from None


# As pydantic words them, which checks the other method's files.
_WORDS = {int: "a valid integer", float: "a valid number", str: "a valid string", bool: "a valid boolean"}


def _checked(wanted: Any, value: Any, where: str, name: str, default: object) -> Any:
    if typing.get_origin(wanted) is Literal:
        if value in typing.get_args(wanted):
            return value
        choices = " or ".join(repr(choice) for choice in typing.get_args(wanted))
        raise wrong_value(name, choices, value, default, where)
    kinds = typing.get_args(wanted) or (wanted,)
    if float in kinds and type(value) is int:
        return float(value)
    if type(value) not in kinds:
        told = " or ".join(_WORDS[k] for k in kinds if k is not type(None))
        raise wrong_value(name, told, value, default, where)
    return value
