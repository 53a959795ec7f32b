"""Compares what a candidate returned with what it must: every element in its budget, inputs unchanged."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cudaperf_agent.tasks.budget import Expected, ExpectedOutput, Part, leaves
from cudaperf_agent.tasks.model import Case, Comparison, Mismatch, Task, Value
from cudaperf_agent.tasks.printed import Word, words


class PartResult(NamedTuple):
    """One component: its worst error ÷ allowance, which elements are wrong, and the absolute errors (floats)."""

    worst: float
    wrong: Value
    errors: Value | None


def compare(task: Task, case: Case, expected: Expected, outputs: dict[str, Value]) -> Comparison:
    """Whether one call gave the right result.

    Args:
        task: The task.
        case: The call's inputs.
        expected: From `oracle.Oracle`.
        outputs: Buffers after the call by parameter name, and ``return`` (`stub.outputs_by_name`). Buffers that are
            only read are checked for unwanted change. In program mode ``stdout`` holds the bytes as `uint8`, and
            ``exit`` the exit status, where it is known.
    """
    if task.mode == "program":
        printed = compare_stdout(expected, np.asarray(outputs["stdout"]).tobytes())
        status = int(outputs["exit"]) if "exit" in outputs else expected.status
        if printed.ok and status != expected.status:
            return Comparison(False, np.inf, Mismatch("exit", 0, f"exit status {expected.status}", f"{status}"))
        return printed
    worst = 0.0
    for parameter in task.inputs():
        if parameter.pointer and not parameter.written and parameter.name in outputs:
            changed = _unwanted_change(parameter.name, case.values[parameter.name], outputs[parameter.name])
            if changed is not None:
                return Comparison(False, np.inf, changed)
    for output in expected.outputs:
        got = outputs.get(output.name)
        if got is None or got.size != output.value.size or got.dtype != output.value.dtype:
            return Comparison(False, np.inf, _missing(output, got))
        result = _compare_output(output, got)
        worst = max(worst, result.worst_error)
        if not result.ok:
            return Comparison(False, worst, result.mismatch)
    return Comparison(True, worst)


def _unwanted_change(name: str, before: Value, after: Value) -> Mismatch | None:
    """The first element of a read-only buffer that is not bitwise what it was."""
    before, after = np.ascontiguousarray(before).reshape(-1), np.ascontiguousarray(after).reshape(-1)
    if before.dtype != after.dtype or before.size != after.size:
        return Mismatch(name, 0, f"{before.size} elements", f"{after.size} elements", total=before.size)
    if before.tobytes() == after.tobytes():
        return None
    old = before.view(np.uint8).reshape(before.size, -1)
    new = after.view(np.uint8).reshape(before.size, -1)
    rows = np.flatnonzero((old != new).any(axis=1))
    first = int(rows[0])
    expected = f"{text(before[first])} (an input that must not change)"
    return Mismatch(name, first, expected, text(after[first]), count=int(rows.size), total=before.size)


def _missing(output: ExpectedOutput, got: Value | None) -> Mismatch:
    size = output.value.size
    have = "nothing" if got is None else f"{got.size} elements of {got.dtype}"
    return Mismatch(output.name, 0, f"{size} elements of {output.value.dtype}", have, count=max(1, size), total=size)


def _compare_output(output: ExpectedOutput, got: Value) -> Comparison:
    worst = 0.0
    for part, leaf in zip(output.parts, leaves(got), strict=True):
        result = compare_part(part, leaf.values)
        worst = max(worst, result.worst)
        if result.wrong.any():
            return Comparison(False, worst, mismatch_of(output.name, output.value.size, part, leaf.values, result))
    return Comparison(True, worst)


def compare_part(part: Part, got: Value) -> PartResult:
    """Compare one component element by element."""
    if part.allowed is None:
        wrong = got != part.reference
        for other in part.others:
            wrong &= got != other
        count = int(np.count_nonzero(wrong))
        unsure = part.unsure is not None and not (wrong & ~part.unsure).any()
        most = max(part.slack, part.floor if unsure else 0)
        if count and count <= most:
            return PartResult(count / most, np.zeros(got.shape, bool), None)
        return PartResult(np.inf if count else 0.0, wrong, None)
    with np.errstate(all="ignore"):
        finite = np.isfinite(part.reference)
        # Near values subtract exactly in their own type, but floats are compared in double for the ends of their range.
        working = np.float64 if part.reference.dtype.itemsize <= 8 else np.longdouble
        errors = np.abs(got.astype(working) - part.reference.astype(working))
        for other in part.others:
            nearer = np.abs(got.astype(working) - other.astype(working))
            errors = np.where(np.isfinite(nearer), np.fmin(errors, nearer), errors)
        # Not finite: the very same infinity, or a NaN for a NaN; nothing else, and nowhere else.
        same = (got == part.reference) | (np.isnan(got) & np.isnan(part.reference))
        wrong = np.where(finite, ~np.isfinite(got) | ~(errors <= part.allowed), ~same)
        for other in part.undecided:
            split = np.isfinite(other) != finite
            near = np.abs(got.astype(working) - other.astype(working)) <= part.share * np.abs(other)
            alike = np.where(np.isfinite(other), near, (got == other) | (np.isnan(got) & np.isnan(other)))
            wrong &= ~(split & alike)
        ratio = np.where(finite & np.isfinite(got), errors / np.maximum(part.allowed, np.finfo(np.float64).tiny), 0)
        ratio = np.where(wrong & ~(finite & np.isfinite(got)), np.inf, ratio)
    return PartResult(float(ratio.max()) if ratio.size else 0.0, wrong, errors)


def mismatch_of(output: str, total: int, part: Part, got: Value, result: PartResult) -> Mismatch:
    """The first wrong element of a component, as a report shows it; `total` is the output's number of elements."""
    at = int(np.flatnonzero(result.wrong)[0])
    inner = max(1, part.reference.size // max(1, total))
    error = None if result.errors is None or not np.isfinite(result.errors[at]) else float(result.errors[at])
    member = f"{part.path[1:]}=" if part.path else ""
    return Mismatch(
        output,
        at // inner,
        f"{member}{text(part.reference[at])}",
        f"{member}{text(got[at])}",
        error=error,
        allowed=None if part.allowed is None else float(part.allowed[at]),
        count=int(np.count_nonzero(result.wrong)),
        total=part.reference.size,
    )


def text(value: object) -> str:
    """A value as a report shows it: floats with as many digits as their type distinguishes."""
    if isinstance(value, np.floating):
        return f"{value:.{9 if value.dtype.itemsize <= 4 else 17}g}"
    return str(value.item()) if isinstance(value, np.generic) and value.dtype.names is None else str(value)


def compare_stdout(expected: Expected, stdout: bytes) -> Comparison:
    """Whether a program printed the right text: line by line and word by word, numbers by value.

    White space within a line, at line ends and at the end of the text does not matter.
    """
    want, got = words(expected.stdout), words(stdout)
    worst, count, slot = 0.0, 0, 0
    first: Mismatch | None = None
    for left, right in zip_longest(want, got):
        allowed = 0.0
        if left is not None and left.number is not None:
            if expected.numbers is not None and expected.numbers.allowed is not None:
                allowed = float(expected.numbers.allowed[slot])
            slot += 1
        result = _compare_word(left, right, allowed)
        worst = max(worst, result.worst)
        if not result.same:
            count += 1
            first = first or _stdout_mismatch(left, right, len(stdout), result.error, allowed)
    if first is None:
        return Comparison(True, worst)
    return Comparison(False, np.inf, replace(first, count=count, total=len(want)))


class _WordResult(NamedTuple):
    same: bool
    worst: float
    error: float | None


def _compare_word(left: Word | None, right: Word | None, allowed: float) -> _WordResult:
    if left is None or right is None or left.line != right.line:
        return _WordResult(False, np.inf, None)
    if left.text == right.text:
        return _WordResult(True, 0.0, 0.0)
    if left.number is None or right.number is None:
        return _WordResult(False, np.inf, None)
    if left.exact and right.exact and not allowed:
        return _WordResult(left.number == right.number, 0.0, None)  # whole numbers of any size, exactly
    error = abs(float(left.number) - float(right.number))
    same_form = left.exact == right.exact
    return _WordResult(same_form and error <= allowed, error / allowed if allowed else np.inf, error)


def _stdout_mismatch(left: Word | None, right: Word | None, end: int, error: float | None, allowed: float) -> Mismatch:
    expected = f"{left.text} (line {left.line + 1})" if left else "the end of the output"
    got = f"{right.text} (line {right.line + 1})" if right else "the end of the output"
    known = error is not None and bool(np.isfinite(error))
    at = right.offset if right else end
    return Mismatch("stdout", at, expected, got, error if known else None, allowed if known else None)
