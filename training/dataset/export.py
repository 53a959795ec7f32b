"""Joins what was built with what was measured, and says what the data set has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from training.dataset.build import read_lines
from training.dataset.kept import check_kept
from training.dataset.table import EXTENDED, median_error, read_rows, write_rows
from training.dataset.transfer import is_hand_written, transfer_lines

DATA = Path(__file__).resolve().parent.parent / "data"
"""Where the data lie that the ranker is trained on: ``variants.parquet`` and ``tasks.parquet``."""
VARIANTS, TASKS = "variants.parquet", "tasks.parquet"
TRANSFER = "transfer.parquet"
"""The hand-written kernels beside them, which nothing is trained on."""


@dataclass(frozen=True, slots=True)
class SizeWindow:
    """When a task's timed size is right.

    Attributes:
        shortest, longest: Seconds that its naive kernel takes.
    """

    shortest: float = 30e-6
    longest: float = 5e-3


def merged(built: Iterable[dict[str, Any]], measured: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per built variant with its measurement, if there is one. The last measurement of a variant counts."""
    times: dict[tuple[str, str], dict[str, Any]] = {}
    machines: dict[str, dict[str, Any]] = {}
    for row in measured:
        if row.get("done"):
            machines[row["task"]] = row
        elif "variant" in row:
            times[row["task"], row["variant"]] = row
    found = []
    for line in built:
        plain = next((times.get((line["task"], v["variant"])) for v in line["variants"] if v["naive"]), None)
        naive = list(plain["samples"]) if plain and plain["status"] == "correct" and plain.get("samples") else None
        for variant in line["variants"]:
            found.append(_row(line, variant, times.get((line["task"], variant["variant"])), naive, machines))
    return found


def _row(
    line: dict[str, Any],
    variant: dict[str, Any],
    timed: dict[str, Any] | None,
    naive: list[float] | None,
    machines: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    samples = list(timed.get("samples") or []) if timed else []
    gain = error = None
    if naive and samples and timed is not None and timed["status"] == "correct":
        gain = float(np.log2(median(naive) / median(samples)))
        # The naive time is common to all pairs of a task, so it is no part of a variant's own error.
        error = median_error(samples)
    machine = machines.get(line["task"], {})
    return {
        "task": line["task"],
        "family": line["family"],
        "area": line["area"],
        "variant": variant["variant"],
        "strategy": variant["strategy"],
        "parameters": json.dumps(variant["parameters"], sort_keys=True),
        "origin": variant["origin"],
        "base": variant["base"],
        "naive": variant["naive"],
        "length": len(variant["source"]),
        **dict(zip(ORDER, (float(v) for v in variant["phi"]), strict=True)),
        **{f"x_{name}": variant["extended"].get(name) for name in EXTENDED},
        "missing": ",".join(variant["missing"]),
        "status": timed["status"] if timed else "not_measured",
        "message": timed.get("message", "") if timed else "",
        "worst_error": timed.get("worst_error") if timed else None,
        "seconds": median(samples) if samples else None,
        "samples": samples,
        "gain": gain,
        "gain_error": error,
        "device": machine.get("device", ""),
        "bytes": machine.get("bytes", 0),
        "source": variant["source"],
    }


def measured_rows(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Rows of measured slices: files, or folders of ``*.jsonl``."""
    found: list[dict[str, Any]] = []
    for path in paths:
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            found += list(read_lines(file))
    return found


Export = dict[str, list[dict[str, Any]]]
"""Rows of Parquet files by the files' names."""


def family_export(built: list[dict[str, Any]], measured: list[dict[str, Any]]) -> Export:
    """``variants.parquet`` (measured variants, failed ones too) and ``tasks.parquet`` (their C).

    Raises:
        ConfigError: None was measured.
    """
    rows = [r for r in merged(built, measured) if r["status"] != "not_measured"]
    if not rows:
        raise ConfigError("nothing of what was built is measured", hint="run `cudaperf dataset measure` on a GPU")
    names = {r["task"] for r in rows}
    return {VARIANTS: rows, TASKS: [_task_row(line) for line in built if line["task"] in names]}


def transfer_export(measured: list[dict[str, Any]]) -> Export:
    """``transfer.parquet``: the hand-written kernels that were measured, failed ones too.

    Raises:
        ConfigError: None was measured.
    """
    names = sorted({row["task"] for row in measured if is_hand_written(row["task"])})
    rows = [r for r in merged(transfer_lines(names), measured) if r["status"] != "not_measured"]
    if not rows:
        raise ConfigError("no hand-written kernel is measured", hint="run `cudaperf dataset measure --transfer`")
    return {TRANSFER: rows}


def write_export(export: Export, folder: Path, *, replace: bool = False) -> tuple[Path, ...]:
    """Write the files; where one of them would lose rows that an earlier export or a merge put there, none.

    Args:
        export: What to write.
        folder: Of the files.
        replace: Lose such rows.

    Raises:
        ConfigError: Rows would be lost, or a file that is there cannot be read.
    """
    if not replace:
        for name, rows in export.items():
            _check_kept(rows, folder / name)
    for name, rows in export.items():
        write_rows(rows, folder / name)
    return tuple(folder / name for name in export)


def _check_kept(rows: list[dict[str, Any]], path: Path) -> None:
    now = {_key(row) for row in rows}
    check_kept(
        path,
        lambda row: _key(row) in now,
        lambda lost: f"{len(lost)} of the rows that are there, such as one of {lost[0]['task']},",
        what="export",
        remedy="`cudaperf dataset merge` adds to these files and keeps what is there",
    )


@dataclass(frozen=True, slots=True)
class Added:
    """What a merge did.

    Attributes:
        paths: Files that were written.
        variants, tasks: How many were new.
        apart: log2 gain of this measurement less that in the file, of the variants that both have.
    """

    paths: tuple[Path, Path]
    variants: int
    tasks: int
    apart: tuple[float, ...]


def add_measured(plan: list[dict[str, Any]], measured: list[dict[str, Any]], folder: Path) -> Added:
    """Add the variants of a later measurement to ``variants.parquet`` and ``tasks.parquet``; what is there stays.

    Args:
        plan: What was measured (`plan.read_plan`).
        measured: Rows of that measurement alone: gains are over its own naive times.
        folder: Of the files.

    Raises:
        ConfigError: Nothing of the plan was measured.
    """
    found = [r for r in merged(plan, measured) if r["status"] != "not_measured"]
    if not found:
        raise ConfigError("nothing of the plan is measured", hint="run `cudaperf dataset measure --plan` on a GPU")
    variants, tasks = folder / VARIANTS, folder / TASKS
    old, old_tasks = read_rows(variants), read_rows(tasks)
    known = {(r["task"], r["variant"]): r for r in old}
    new = [r for r in found if (r["task"], r["variant"]) not in known]
    again = [(r, known[r["task"], r["variant"]]) for r in found if (r["task"], r["variant"]) in known]
    apart = [
        r["gain"] - o["gain"] for r, o in again if r["gain"] is not None and o["gain"] is not None and not r["naive"]
    ]
    have, named = {r["task"] for r in old_tasks}, {r["task"] for r in new}
    lines = [_task_row(line) for line in plan if line["task"] in named - have]
    write_rows([*old, *new], variants)
    write_rows([*old_tasks, *lines], tasks)
    return Added((variants, tasks), len(new), len(lines), tuple(apart))


def _key(row: dict[str, Any]) -> tuple[str, str | None]:
    """What a row is of: a variant of a task, or a task."""
    return row["task"], row.get("variant")


def _task_row(line: dict[str, Any]) -> dict[str, Any]:
    kept = {k: line[k] for k in ("task", "family", "member", "area", "entry", "source", "digest")}
    return {**kept, "sizes": json.dumps(line["sizes"])}


def statistics(rows: Iterable[dict[str, Any]], window: SizeWindow | None = None) -> dict[str, Any]:
    """What the data set has: counts, statuses, spreads of speed, tasks whose size is out of the window."""
    window = window or SizeWindow()
    rows = list(rows)
    timed = [r for r in rows if r["gain"] is not None]
    by_task: dict[str, list[dict[str, Any]]] = {}
    for row in timed:
        by_task.setdefault(row["task"], []).append(row)
    naive = {r["task"]: r["seconds"] for r in timed if r["naive"]}
    outside = sorted(t for t, s in naive.items() if not window.shortest <= s <= window.longest)
    best = {t: max(r["gain"] for r in group) for t, group in by_task.items()}
    spread = [max(r["gain"] for r in g) - min(r["gain"] for r in g) for g in by_task.values()]
    return {
        "families": len({r["family"] for r in rows}),
        "tasks": len({r["task"] for r in rows}),
        "variants": len(rows),
        "measured_families": len({r["family"] for r in timed}),
        "measured_tasks": len(by_task),
        "measured_variants": len(timed),
        "status": dict(Counter(r["status"] for r in rows)),
        "origin": dict(Counter(r["origin"] for r in rows)),
        "strategies": dict(Counter(r["strategy"] for r in rows).most_common()),
        "one_parameter_share": sum(r["origin"] == "series" for r in rows) / max(1, len(rows)),
        "tasks_with_best_over_1.5x_naive": sum(b >= np.log2(1.5) for b in best.values()),
        "median_spread_log2": float(np.median(spread)) if spread else None,
        "median_error_log2": float(np.median([r["gain_error"] for r in timed])) if timed else None,
        "naive_outside_window": outside,
        "devices": sorted({r["device"] for r in timed if r["device"]}),
    }
