"""What a translation came to: the files in the user's folder, the report as data, and the few lines that sum it up."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudaperf_agent import __version__
from cudaperf_agent.cli.destination import check_out_folder, writing_folder
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from cudaperf_agent.cli.compose import Translation
    from cudaperf_agent.cuda.verdict import Verdict
    from cudaperf_agent.store.records import StoredAttempt
    from cudaperf_agent.tasks.model import Parameter, Task
    from cudaperf_agent.tasks.modules.spec import ModuleSpec

# How the parser words an extent that the file does not state.
_EXTENT = re.compile(r"(?P<name>\w+) has (?P<extent>.+) elements?, by (?P<why>.+)")


@dataclass(frozen=True, slots=True)
class FileNames:
    """Where the files of a task go in a folder."""

    cu: Path
    host_c: Path
    report: Path


def file_names(task: Task, folder: Path) -> FileNames:
    """``NAME.cu``, ``NAME_host.c`` and ``NAME.report.json``; a program takes its file's name.

    For a PyTorch module ``model_new.py`` (after its class) and ``model_new.report.json``.
    """
    name = task.name
    if task.module is not None:
        stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() + "_new"
        return FileNames(folder / f"{stem}.py", folder / f"{stem}_host.c", folder / f"{stem}.report.json")
    if task.mode == "program":
        stem = Path(task.path).stem
        name = stem if stem.isidentifier() else "program"
    return FileNames(folder / f"{name}.cu", folder / f"{name}_host.c", folder / f"{name}.report.json")


def check_folder(task: Task, folder: Path) -> None:
    """Refuse early what could not be written, and to overwrite what no translation of ours wrote or left so.

    Raises:
        UsageError: Such a file is there, or the folder cannot be written to.
    """
    names = file_names(task, folder)
    check_out_folder(folder, names=(names.cu.name, names.host_c.name, names.report.name))
    ours = _recorded(names.report)
    with writing_folder(folder):
        changed = next((p for p in (names.cu, names.host_c) if p.exists() and ours.get(p.name) != _digest(p)), None)
    if changed is not None:
        raise UsageError(
            "this file is not as a translation left it and would be overwritten",
            where=str(changed),
            hint="move it away, or name another folder with --out",
        )


def write_files(translation: Translation, folder: Path) -> dict[str, Path]:
    """Write the linkable files and the report; the ``NAME_host.c`` of an earlier translation goes where none is needed.

    Returns:
        The files written: ``cu``, ``host_c`` where it is needed, and ``report``.

    Raises:
        UsageError: The folder cannot be written to.
    """
    names = file_names(translation.task, folder)
    written: dict[str, Path] = {}
    with writing_folder(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if translation.files is not None:
            names.cu.write_text(translation.files.cu, encoding="utf-8")
            written["cu"] = names.cu
            if translation.files.host_c is not None:
                names.host_c.write_text(translation.files.host_c, encoding="utf-8")
                written["host_c"] = names.host_c
            elif names.host_c.exists() and _recorded(names.report).get(names.host_c.name) == _digest(names.host_c):
                names.host_c.unlink()
        report = build_report(translation, written)
        names.report.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")
    return {**written, "report": names.report}


def build_report(translation: Translation, written: dict[str, Path]) -> dict[str, Any]:
    """The report as JSON-ready data: what was verified, where, what was assumed, every attempt in a line."""
    task, result = translation.task, translation.result
    best = result.best
    return {
        "cudaperf": __version__,
        "run": result.run,
        "status": result.status.value,
        "reason": result.reason,
        "policy": translation.policy,
        "backend": result.summary.backend,
        "task": _task(task),
        "assumptions": list(assumptions(task)),
        "candidate": None
        if best is None
        else {
            "trajectory": best.trajectory,
            "turn": best.turn,
            "strategy": best.attempt.strategy,
            "model": best.attempt.model,
            "form": translation.files.form if translation.files else None,
        },
        "verdict": best.verdict.to_dict() if best else None,
        "search_verdict": best.search_verdict.to_dict() if best else None,
        "files": {p.name: {"path": str(p), "sha256": _digest(p)} for key, p in written.items() if key != "report"},
        "sandbox": translation.sandbox,
        "attempts": [_attempt(a) for a in result.attempts],
    }


def summary(translation: Translation, written: dict[str, Path]) -> str:
    """A few lines for a person: what, verified how and where, assumed what, how fast, written where."""
    task, best = translation.task, translation.result.best
    assert best is not None
    by = translation.policy + (f" ({best.attempt.strategy})" if best.attempt.strategy else "")
    rows = [
        ("made", f"{task.name} of {task.path}, by {by}, turn {best.turn + 1}"),
        ("verified", verified_text(best.verdict)),
        *(("assumed", text) for text in _grouped(assumptions(task)) or ["nothing that the file does not say"]),
        *speed_rows(best.verdict),
        ("files", ", ".join(str(p) for p in written.values())),
    ]
    first = next((t.first_choice for t in translation.result.trajectories if t.number == best.trajectory), None)
    if first is not None and first != best.turn:
        note = f"turn {first + 1} was the first choice and failed the hidden cases; this is the next best"
        rows.insert(1, ("note", note))
    return lined_up(rows)


def lined_up(rows: list[tuple[str, str]]) -> str:
    """Labelled lines; a label that is repeated is not written again."""
    labels = [f"{name}:" if at == 0 or rows[at - 1][0] != name else "" for at, (name, _) in enumerate(rows)]
    return "\n".join(f"{label:<10}{text}" for label, (_, text) in zip(labels, rows, strict=True))


def _grouped(sentences: tuple[str, ...]) -> list[str]:
    """The sentences with those on extents put together by their reason."""
    extents: dict[str, list[str]] = {}
    others = []
    for sentence in sentences:
        found = _EXTENT.fullmatch(sentence.rstrip("."))
        if found:
            extents.setdefault(found["why"], []).append(f"{found['name']}[{found['extent']}]")
        else:
            others.append(sentence.rstrip("."))
    return [f"sizes by {why}: {', '.join(names)}" for why, names in extents.items()] + others


def assumptions(task: Task) -> tuple[str, ...]:
    """What was taken for granted though the file does not say it: of the task, and of how the drop-in copies."""
    if task.module is not None:
        return (*task.assumptions, *_module_assumptions(task.module))
    written = [p.name for p in task.buffers if p.written]
    if len(task.buffers) < 2 or not written:
        return task.assumptions
    return (*task.assumptions, f"what {' and '.join(written)} points to does not overlap the other buffers")


def _module_assumptions(module: ModuleSpec) -> tuple[str, ...]:
    free = [f"input {w}, dimension {d}" for dim in module.dimensions for w, d in dim.places]
    sizes = f"sizes may change of {'; '.join(free)}" if free else "no size of the inputs may change"
    types = ", ".join(module.element_types)
    if module.converted_dtypes:
        types += f" (the file's own {' and '.join(module.converted_dtypes)} is converted to it)"
    layouts = "contiguous and other" if module.strided else "contiguous"
    return (
        "the module is used for inference: in evaluation mode, without gradients",
        f"{sizes}; {layouts} layouts; element types {types}",
        f"what a candidate may call: {module.mode}",
    )


def verified_text(verdict: Verdict) -> str:
    """What was verified and where, in one sentence."""
    where = f"on {verdict.device or 'the GPU'}" if verdict.backend == "gpu" else "on the CPU emulator"
    nvcc = verdict.versions.get("nvcc")
    compiled = f"compiles with nvcc {nvcc}" if nvcc else "compiles with nvcc"
    cases = verdict.profile.get("cases", {})
    whom = "the C" if "mode" not in cases else "the module"
    text = f"{compiled}; {verdict.passed} of {verdict.total} hidden cases agree with {whom}, {where}"
    if cases.get("reduced"):
        text += f" ({cases['reduced']})"
    if verdict.worst_error > 0:
        text += f" (largest error {verdict.worst_error:.2g} of what is allowed)"
    return text


def speed_rows(verdict: Verdict) -> list[tuple[str, str]]:
    """How fast, by label and text; or that nothing could be measured. And what was left out, where something was."""
    if not verdict.measured:
        return [("speed", "not measured: there is no GPU here"), *_work_rows(verdict), *_trust_rows(verdict)]
    from cudaperf_agent.cuda.measure import best_of_c

    best = best_of_c(verdict.speedups)
    rows = [
        (
            "speed",
            f"{s.value:.2f} times as fast as {s.baseline}{', the best of the C' if s is best else ''} "
            f"(95 %: {s.low:.2f} to {s.high:.2f})",
        )
        for s in verdict.speedups
    ]
    for kind in ("device", "end_to_end", "resident"):
        timing = verdict.timing(kind)
        if timing is not None:
            note = f"; {timing.note}" if timing.note else ""
            rows.append(("time", f"{kind} {timing.median * 1e3:.4g} ms for {timing.case}{note}"))
    return [*rows, *_work_rows(verdict), *_trust_rows(verdict)]


def _work_rows(verdict: Verdict) -> list[tuple[str, str]]:
    from cudaperf_agent.cuda.work import Work

    work = Work.of(verdict)
    return [("work", sentence) for sentence in work.sentences()] if work is not None else []


def _trust_rows(verdict: Verdict) -> list[tuple[str, str]]:
    if verdict.trust != "own":
        return []
    return [("trust", "own: nothing looked for cheats, races or memory errors, and cases ran once")]


def _task(task: Task) -> dict[str, Any]:
    return {
        "entry": task.name,
        "path": task.path,
        "mode": task.mode,
        "digest": task.digest,
        **({"module": _module(task.module)} if task.module else {}),
        "parameters": [_parameter(p) for p in task.parameters],
        "tables": [{"name": t.name, "type": t.type.spelling, "elements": t.count, "line": t.line} for t in task.tables],
        "kept_functions": list(task.kept_functions),
    }


def _module(module: ModuleSpec) -> dict[str, Any]:
    return {
        "class": module.class_name,
        "inputs": [
            {"dtype": i.dtype, "shape": list(i.shape)} if i.dtype else {"value": i.value} for i in module.inputs
        ],
        "outputs": [{"name": o.name, "dtype": o.dtype} for o in module.outputs],
        "state": [{"name": s.name, "dtype": s.dtype, "shape": list(s.shape)} for s in module.state],
        "mode": module.mode,
        "dtypes": list(module.element_types),
        "torch": module.torch,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    extent, values = parameter.extent, parameter.range
    return {
        "name": parameter.name,
        "type": parameter.type.spelling,
        "role": parameter.role.value,
        "role_from": parameter.role_origin.value,
        "extent": extent.expr if extent else None,
        "extent_from": extent.origin.value if extent else None,
        "range": [values.low, values.high],
        "range_from": values.origin.value,
    }


def _attempt(attempt: StoredAttempt) -> dict[str, Any]:
    verdict = attempt.verdict
    hidden = attempt.hidden_verdict
    return {
        "trajectory": attempt.trajectory,
        "turn": attempt.turn,
        "strategy": attempt.strategy,
        "status": _status(attempt),
        "message": attempt.declined or (verdict.message if verdict else ""),
        "passed": verdict.passed if verdict else 0,
        "total": verdict.total if verdict else 0,
        "hidden": hidden.status.value if hidden else None,
    }


def _status(attempt: StoredAttempt) -> str:
    verdict = attempt.verdict
    if verdict is None or verdict.untested:
        return "declined" if attempt.declined else "unfinished"
    return verdict.status.value


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _recorded(report: Path) -> dict[str, str]:
    """Digests of the files that an earlier translation wrote, by name."""
    try:
        data = json.loads(report.read_text(encoding="utf-8"))
        return {name: str(entry["sha256"]) for name, entry in data["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
