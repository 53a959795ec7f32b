"""Kernels that a policy proposed, with their times, as a table: a transfer set that no template of ours shaped.

One JSON object a line: ``task`` (``family/member`` of our families, or any other name), ``source`` (the ``.cu``),
``status`` (a verdict's) and ``seconds`` (median device time, null if not timed), or ``samples`` (s) in its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from training.dataset.table import EXTENDED, Table, from_rows, median_error, read_rows

ORIGIN = "policy"


class _Sampled(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    task: str = Field(min_length=1)
    source: str
    status: str
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    samples: tuple[float, ...] = ()

    def times(self) -> tuple[float, ...]:
        return self.samples or ((self.seconds,) if self.seconds else ())


def sampled_table(path: Path, naive: Mapping[str, float] | None = None) -> Table:
    """The correct, timed kernels of a file with their features; one of several with the same text.

    Args:
        path: JSON lines.
        naive: Seconds of the plain CUDA by task, measured on the same device. Where a task has none, its gains are over
            the median of its own kernels: only differences within it mean something.

    Raises:
        ConfigError: The file cannot be read, a line is malformed, or nothing in it is correct and timed.
    """
    naive = naive or {}
    distinct: dict[tuple[str, str], _Sampled] = {}
    for row in _read(path):
        if row.status == "correct" and row.times():
            distinct.setdefault((row.task, row.source), row)
    by_task: dict[str, list[_Sampled]] = {}
    for row in distinct.values():
        by_task.setdefault(row.task, []).append(row)
    rows: list[dict[str, Any]] = []
    for task, group in by_task.items():
        base = naive.get(task) or median(median(row.times()) for row in group)
        rows += [_row(row, base) for row in group]
    if not rows:
        raise ConfigError("no kernel in it is correct and timed", where=str(path), hint="time them on a GPU first")
    return from_rows(rows)


def naive_seconds(variants: Path) -> dict[str, float]:
    """Median seconds of the plain CUDA of each task of a ``variants.parquet``."""
    return {r["task"]: r["seconds"] for r in read_rows(variants) if r.get("naive") and r.get("status") == "correct"}


def _read(path: Path) -> list[_Sampled]:
    hint = "one JSON object a line: task, source, status, seconds"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the sampled kernels cannot be read: {error}", where=str(path), hint=hint) from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_Sampled.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"not a sampled kernel: {field} {first['msg']}".strip(), where=f"{path}:{number}", hint=hint
            ) from None
    return found


def _row(row: _Sampled, base: float) -> dict[str, Any]:
    from cudaperf_agent.features.extract import extract

    features = extract(row.source)
    times = row.times()
    return {
        "task": row.task,
        "family": row.task.rpartition("/")[0] or row.task,
        "variant": hashlib.sha256(row.source.encode()).hexdigest(),
        "strategy": ORIGIN,
        "parameters": json.dumps({}),
        "origin": ORIGIN,
        "length": len(row.source),
        **dict(zip(ORDER, features.vector, strict=True)),
        **{f"x_{name}": features.extended.get(name) for name in EXTENDED},
        "status": row.status,
        "samples": list(times),
        "gain": float(np.log2(base / median(times))),
        "gain_error": median_error(times),
    }
