"""Kernels that a policy proposed, with their times, as a table: a transfer set that no template of ours shaped.

One JSON object a line: ``task`` (``family/member`` of our families, or any other name), ``source`` (the ``.cu``, null
where the answer had none), ``status`` (a verdict's) and ``seconds`` (median device time, null if not timed), or
``samples`` (s) in its place; ``naive`` (s) of the task's plain CUDA in the same measurement, if known. Verdicts as
`training.sft.evaluate` stores them become such lines by `timed_candidates`, once `measure` has timed them; evaluations
and exported runs by `training.dataset.sampled_runs`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cudaperf_agent.errors import ConfigError, reading_hint
from cudaperf_agent.features.model import ORDER
from training.dataset.table import EXTENDED, Table, from_rows, median_error, read_rows

ORIGIN = "policy"


class Candidate(BaseModel):
    """One answer of a policy with its verdict, and its times if it has any.

    Attributes:
        task: Name.
        source: The ``.cu``; `None` where the answer had none.
        status: Of the verdict on the visible cases.
        hidden: Of that on the hidden ones; `None` where those were not run.
        seconds, samples: Median and samples of its device time; s.
        naive: Seconds of the task's plain CUDA in the same measurement.
        phase, trajectory, turn: Where it comes from.
        family: Of the task; where left out, the task's name up to its last slash.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    task: str = Field(min_length=1)
    source: str | None
    status: str
    hidden: str | None = None
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    samples: tuple[float, ...] = ()
    naive: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    phase: str = ""
    trajectory: int = 0
    turn: int = 0
    family: str = ""

    @property
    def unit(self) -> str:
        """The family, which intervals resample."""
        return self.family or self.task.rpartition("/")[0] or self.task

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the source."""
        return hashlib.sha256((self.source or "").encode()).hexdigest()

    @property
    def timeable(self) -> bool:
        """Whether it was found correct everywhere it was run."""
        return self.source is not None and self.status == "correct" and self.hidden in (None, "correct")

    def times(self) -> tuple[float, ...]:
        """Its samples, or the one time that is known; s."""
        return self.samples or ((self.seconds,) if self.seconds else ())


def sampled_table(path: Path, naive: Mapping[str, float] | None = None) -> Table:
    """The correct, timed kernels of a file with their features; one of several with the same text.

    Args:
        path: JSON lines.
        naive: Seconds of the plain CUDA by task, measured on the same device, for rows that do not say theirs. Where a
            task has none, its gains are over the median of its own kernels: only differences within it mean something.

    Raises:
        ConfigError: The file cannot be read, a line is malformed, or nothing in it is correct and timed.
    """
    naive = naive or {}
    distinct: dict[tuple[str, str], Candidate] = {}
    for row in read_candidates(path):
        if row.source is not None and row.status == "correct" and row.times():
            distinct.setdefault((row.task, row.source), row)
    by_task: dict[str, list[Candidate]] = {}
    for row in distinct.values():
        by_task.setdefault(row.task, []).append(row)
    rows: list[dict[str, Any]] = []
    for task, group in by_task.items():
        own = [row.naive for row in group if row.naive is not None]
        base = median(own) if own else naive.get(task) or median(median(row.times()) for row in group)
        rows += [_row(row, base) for row in group]
    if not rows:
        raise ConfigError("no kernel in it is correct and timed", where=str(path), hint="time them on a GPU first")
    return from_rows(rows)


def naive_seconds(variants: Path) -> dict[str, float]:
    """Median seconds of the plain CUDA of each task of a ``variants.parquet``."""
    return {r["task"]: r["seconds"] for r in read_rows(variants) if r.get("naive") and r.get("status") == "correct"}


def timed_candidates(paths: Iterable[Path], measured: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Stored verdicts with the times of those that were measured, as lines of this module's form.

    A candidate that the measurement found wrong, at the timed size for instance, is wrong; one that was not measured
    keeps its verdict and has no time.

    Args:
        paths: Files of candidates.
        measured: Rows of `measure`, of any tasks.
    """
    rows = {(r["task"], r["variant"]): r for r in measured if "variant" in r}
    plain = [r for r in measured if r.get("naive") and r["status"] == "correct" and r["samples"]]
    naive = {r["task"]: median(r["samples"]) for r in plain}
    found = []
    for path in paths:
        for candidate in read_candidates(path):
            row = rows.get((candidate.task, candidate.digest)) if candidate.timeable else None
            line = candidate.model_dump(mode="json", exclude={"seconds", "samples", "naive"})
            if row is not None:
                samples = list(row.get("samples") or []) if row["status"] == "correct" else []
                line |= {"status": row["status"], "samples": samples, "naive": naive.get(candidate.task)}
                line["seconds"] = median(samples) if samples else None
            found.append(line)
    return found


def write_candidates(lines: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write them as JSON lines, compressed where the name ends in ``.gz``."""
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def read_candidates(path: Path) -> list[Candidate]:
    """Candidates of a file of JSON lines, which may be compressed (``.gz``).

    Raises:
        ConfigError: The file cannot be read, or a line is malformed.
    """
    hint = "one JSON object a line: task, source, status, seconds; `cudaperf dataset sampled` writes such files"
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = raw.decode("utf-8").splitlines()
    except (gzip.BadGzipFile, zlib.error, EOFError):
        told = "the answers cannot be read: no gzip file, or not a whole one"
        raise ConfigError(told, where=str(path), hint="copy it again, or take the suffix .gz off a plain one") from None
    except UnicodeDecodeError:
        raise ConfigError("the answers are not UTF-8 text", where=str(path), hint=hint) from None
    except OSError as error:
        told = f"the answers cannot be read: {(error.strerror or str(error)).lower()}"
        raise ConfigError(told, where=str(path), hint=reading_hint(error)) from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(Candidate.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"not a sampled kernel: {field} {first['msg']}".strip(), where=f"{path}:{number}", hint=hint
            ) from None
    return found


def _row(row: Candidate, base: float) -> dict[str, Any]:
    from cudaperf_agent.features.extract import extract

    assert row.source is not None
    features = extract(row.source)
    times = row.times()
    return {
        "task": row.task,
        "family": row.unit,
        "variant": row.digest,
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
