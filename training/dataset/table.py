"""The measured data set as arrays: one row per correct, timed variant; read from and written to Parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.features.model import ORDER

EXTENDED = (
    "bank_conflict", "vector_loads", "load_reuse", "tensor_ops", "stride_bytes", "access_width", "grid_fill",
)  # fmt: skip
"""Of the extended set, what needs no compiler's output; a value that is not known is 0."""


@dataclass(frozen=True, slots=True)
class Table:
    """Correct, timed variants.

    Attributes:
        phi: φ of each, shape (rows, 11), in the paper's order.
        extended: `EXTENDED` of each, shape (rows, 7).
        gain: log2 of T_naive / T, shape (rows,); medians of the samples.
        error: Standard error of `gain`, shape (rows,).
        task, family, strategy, origin: Labels, shape (rows,).
        parameters: Of the strategy, as JSON text, shape (rows,).
        length: Characters of the source, shape (rows,).
        digest: SHA-256 (hex) of the data.
    """

    phi: NDArray[np.float64]
    extended: NDArray[np.float64]
    gain: NDArray[np.float64]
    error: NDArray[np.float64]
    task: NDArray[np.str_]
    family: NDArray[np.str_]
    strategy: NDArray[np.str_]
    origin: NDArray[np.str_]
    parameters: NDArray[np.str_]
    length: NDArray[np.float64]
    digest: str = ""

    def __len__(self) -> int:
        return int(self.gain.size)

    def take(self, rows: NDArray[Any]) -> Table:
        """Some rows, by index or by mask."""
        return Table(
            self.phi[rows], self.extended[rows], self.gain[rows], self.error[rows], self.task[rows], self.family[rows],
            self.strategy[rows], self.origin[rows], self.parameters[rows], self.length[rows], self.digest,
        )  # fmt: skip

    def tasks(self) -> list[NDArray[np.intp]]:
        """Row numbers of each task, tasks in alphabetical order."""
        names, index = np.unique(self.task, return_inverse=True)
        order = np.argsort(index, kind="stable")
        return np.split(order, np.cumsum(np.bincount(index, minlength=names.size))[:-1])


def median_error(samples: Sequence[float]) -> float:
    """Standard error of log2 of the median of `samples`: 1.253 σ/√n, σ from the median absolute deviation."""
    logs = np.log2(np.asarray(samples, dtype=np.float64))
    deviation = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
    return 1.253 * deviation / float(np.sqrt(max(1, logs.size)))


def timed(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that a table has: correct, with a time, of a task with a naive time."""
    return [r for r in rows if r["status"] == "correct" and r["samples"] and r["gain"] is not None]


def from_rows(rows: Iterable[dict[str, Any]]) -> Table:
    """From rows as `export.merged` makes them; those without a time or of a task without a naive time are left out."""
    kept = timed(rows)
    if not kept:
        raise ConfigError(
            "the data set has no timed variants", hint="run `cudaperf dataset measure` on a GPU, then export"
        )

    def text(name: str) -> NDArray[np.str_]:
        return np.array([str(r[name]) for r in kept])

    def numbers(names: Sequence[str]) -> NDArray[np.float64]:
        return np.array([[float(r[n]) if r[n] is not None else 0.0 for n in names] for r in kept], dtype=np.float64)

    digest = hashlib.sha256()
    for r in sorted(kept, key=lambda r: (r["task"], r["variant"])):
        digest.update(json.dumps([r["task"], r["variant"], list(r["samples"])]).encode())
    return Table(
        numbers(ORDER),
        numbers([f"x_{n}" for n in EXTENDED]),
        numbers(["gain"])[:, 0],
        numbers(["gain_error"])[:, 0],
        text("task"),
        text("family"),
        text("strategy"),
        text("origin"),
        text("parameters"),
        numbers(["length"])[:, 0],
        digest.hexdigest(),
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a Parquet file.

    Raises:
        ConfigError: There is none.
        BackendUnavailable: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise BackendUnavailable(
            "reading Parquet needs pyarrow, which is not installed",
            hint='Install it with: pip install "cudaperf-agent[training]"',
        ) from missing
    if not path.is_file():
        raise ConfigError(
            "the measured data are not there", where=str(path), hint="`cudaperf dataset export` makes them"
        )
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def write_rows(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write rows as Parquet, compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path, compression="zstd", compression_level=19)


def load_table(path: Path) -> Table:
    """The table of a Parquet file."""
    return from_rows(read_rows(path))
