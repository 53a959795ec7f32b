"""The measured data set and a second measurement of it, row by row; the second is kept in short and never learned from.

In short, a variant is a row of `COLUMNS`: ``task``; ``variant``, the first `DIGITS` hex digits of its source's digest;
``status``; ``worst_error`` in budgets; ``seconds``, the median of the samples; ``error``, the standard error of its
log2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from training.dataset.export import DATA, measured_rows
from training.dataset.table import Table, from_rows, median_error, read_rows, timed

AGAIN = DATA / "variants-again.parquet"
"""The second measurement of ``variants.parquet``."""
COLUMNS = ("task", "variant", "status", "worst_error", "seconds", "error")
DIGITS = 16


@dataclass(frozen=True, slots=True)
class Twice:
    """What was measured twice.

    Attributes:
        table: All of the first measurement.
        rows: Which of its rows were measured again and are correct in both, shape (both,).
        first, second: Those rows with the times of the one and of the other; gains are over its own naive times.
        seconds, again: Their median seconds in the one and in the other, shape (both,).
        matched: Variants that both measurements have, correct or not.
        changed: Those whose status differs: ``task``, ``strategy``, ``first``, ``second``, and ``worst_first``,
            ``worst_second`` in budgets.
    """

    table: Table
    rows: NDArray[np.intp]
    first: Table
    second: Table
    seconds: NDArray[np.float64]
    again: NDArray[np.float64]
    matched: int
    changed: tuple[dict[str, Any], ...]


def in_short(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of measured slices or of an export in short, in the order of their tasks; the last of a variant counts."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if "variant" not in row:
            continue
        samples, worst = row.get("samples") or [], row.get("worst_error")
        short = {
            "task": row["task"],
            "variant": row["variant"][:DIGITS],
            "status": row["status"],
            "worst_error": None if worst is None else float(worst),
            "seconds": median(samples) if samples else None,
            "error": round(median_error(samples), 5) if samples else None,
        }
        found[short["task"], short["variant"]] = short
    return [found[key] for key in sorted(found)]


def read_again(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """A second measurement in short: Parquet, kept in short or an export, or measured slices (files or folders).

    Raises:
        ConfigError: A file is not there or is no measurement.
    """
    found: list[dict[str, Any]] = []
    for path in paths:
        if not path.exists():
            raise ConfigError("there is no second measurement", where=str(path), hint="name one with --again")
        try:
            rows = read_rows(path) if path.suffix == ".parquet" else measured_rows([path])
            short = bool(rows) and set(COLUMNS) <= rows[0].keys()
            found += rows if short else in_short(rows)
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            hint = "name slices of `cudaperf dataset measure`, or what --keep wrote"
            raise ConfigError(f"this is no measurement: {error}", where=str(path), hint=hint) from None
    return found


def measured_twice(rows: Sequence[dict[str, Any]], again: Iterable[dict[str, Any]]) -> Twice:
    """Join the rows of ``variants.parquet`` with a second measurement in short.

    A task whose naive variant has no time in one of the two has no gains there, and is left out.

    Raises:
        ConfigError: No variant is correct in both.
    """
    other = {(row["task"], row["variant"]): row for row in again}

    def second_of(row: dict[str, Any]) -> dict[str, Any] | None:
        return other.get((row["task"], row["variant"][:DIGITS]))

    naive = {
        row["task"]: found["seconds"]
        for row in rows
        if row["naive"] and (found := second_of(row)) and found["status"] == "correct"
    }
    matched, chosen, times, changed = 0, [], [], []
    for row in rows:
        if (found := second_of(row)) is None:
            continue
        matched += 1
        if row["status"] != found["status"]:
            worst = {"worst_first": row["worst_error"], "worst_second": found["worst_error"]}
            states = {"first": row["status"], "second": found["status"]}
            changed.append({"task": row["task"], "strategy": row["strategy"], **states, **worst})
    kept = timed(rows)
    for number, row in enumerate(kept):
        found = second_of(row)
        if found and found["status"] == "correct" and found["seconds"] and row["task"] in naive:
            chosen.append(number)
            gain = float(np.log2(naive[row["task"]] / found["seconds"]))
            times.append((median(row["samples"]), found["seconds"], gain, found["error"]))
    if not chosen:
        raise ConfigError(
            "no variant is correct and timed in both measurements",
            hint="measure the same variants again: run `cudaperf dataset measure` with another --out",
        )
    table, index = from_rows(kept), np.array(chosen, dtype=np.intp)
    first, values = table.take(index), np.array(times, dtype=np.float64)
    second = replace(first, gain=values[:, 2], error=values[:, 3])
    return Twice(table, index, first, second, values[:, 0], values[:, 1], matched, tuple(changed))
