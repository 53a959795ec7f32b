"""What came back of a PyTorch candidate's runs, read as what it is: bytes of a stranger."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.codegen.modules.loader import inserted_lines
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.judge import CaseRun, Problem
from cudaperf_agent.cuda.modules.budget import leaf_of
from cudaperf_agent.cuda.modules.operators import forbidden_operator, library_kernel
from cudaperf_agent.cuda.modules.reference import Answers
from cudaperf_agent.cuda.verdict import Report, Status
from cudaperf_agent.tasks.model import Value
from cudaperf_agent.tasks.modules.spec import ModuleSpec

_LAUNCH_WORDS = ("CUDA error", "invalid configuration", "too many resources")


class Reading:
    """Reads results; whatever is not as it should be is the candidate's doing, never an exception."""

    def __init__(
        self, file: ModuleFile, module: ModuleSpec, answers: Answers, chosen: Sequence[int], raw: bytes
    ) -> None:
        self._module = module
        self._answers = answers
        self._chosen = chosen
        self._raw = raw
        self._first_line = file.cuda[0].line if file.cuda else 1
        self._added = inserted_lines(file.source)
        self.stopped = False
        self.clock: dict[str, float] = {}

    def runs(self, lines: Sequence[bytes]) -> list[CaseRun]:
        """The cases that came back, in order."""
        found: list[CaseRun] = []
        problem: Problem | None = None
        for line in lines:
            try:
                result: dict[str, Any] = json.loads(line)
                stage = result["stage"]
                if stage in ("import", "build"):
                    self._stop(found, problem or self._raised(result))
                    break
                if stage == "state":
                    problem = problem or self._state_problem(result["state"])
                elif stage == "timeline" and found:
                    seen = library_kernel([str(n) for n in result["names"]], self._module.mode)
                    if seen is not None and found[-1].problem is None:
                        found[-1] = replace(found[-1], problem=Problem(Status.CHEAT, seen))
                elif stage == "clock":
                    self.clock = _seconds(result["seconds"])
                elif stage == "case" and len(found) < len(self._chosen):
                    found.append(self._case(result, problem))
            except (ValueError, KeyError, TypeError, AttributeError, IndexError):
                self._stop(found, Problem(Status.CRASH, "what the process wrote cannot be read"))
                break
        return found

    def _stop(self, found: list[CaseRun], problem: Problem) -> None:
        """No case will follow: what stopped them is wrong with each."""
        found += [CaseRun({}, 0.0, problem=problem)] * (len(self._chosen) - len(found))
        self.stopped = True

    def _case(self, result: dict[str, Any], problem: Problem | None) -> CaseRun:
        index = self._chosen[int(result["case"])]
        report = emulator.parse_report(str(result["report"]))
        outputs: dict[str, Value] = {}
        if "error" in result:
            problem = problem or self._raised(result)
        else:
            problem = problem or self._unlike(index, result["outputs"])
            for entry in result["outputs"] if problem is None else ():
                outputs[str(entry["name"])] = leaf_of(entry, self._raw)
            for entry in result["inputs"]:
                size, offset = int(entry["bytes"]), int(entry["offset"])
                outputs[f"input {int(entry['index'])}"] = np.frombuffer(self._raw, np.uint8, size, offset)
            problem = problem or self._changed(index, outputs)
        operators = {str(k): int(v) for k, v in result["operators"].items()}
        forbidden = forbidden_operator(operators, self._module.mode)
        if forbidden and (problem is None or problem.status is not Status.CHEAT):
            problem = Problem(Status.CHEAT, forbidden)
        return CaseRun(
            outputs,
            float(result.get("seconds", 0.0)),
            reports=tuple(self._placed(r) for r in report.reports),
            notes=tuple(self._placed(r) for r in report.notes if r.kind != "leak"),
            unsupported=report.unsupported,
            launches=report.stats.get("launches", 0),
            threads=report.stats.get("widest", 0),
            kernels=report.kernels,
            problem=problem,
        )

    def _placed(self, report: Report) -> Report:
        """Lines of the CUDA text as lines of the Python file."""
        return replace(report, line=report.line + self._first_line - 1) if report.line else report

    def _raised(self, result: dict[str, Any]) -> Problem:
        message = f"{result['error']}: {result['message']}"
        status = Status.LAUNCH_ERROR if any(w in str(result["message"]) for w in _LAUNCH_WORDS) else Status.CRASH
        line = int(result["line"])
        # Lines of the completed file as lines of the one that was handed in.
        line = line - self._added.count if line > self._added.at + self._added.count else line
        return Problem(status, message, line if line > 0 else None)

    def _state_problem(self, state: dict[str, Any]) -> Problem | None:
        wanted = {s.name: list(s.shape) for s in self._module.state}
        got = {str(name): [int(n) for n in about[1]] for name, about in state.items()}
        for name, shape in wanted.items():
            if name not in got:
                return Problem(Status.WRONG, f"the state_dict of ModelNew lacks `{name}`")
            if got[name] != shape:
                return Problem(Status.WRONG, f"`{name}` of ModelNew's state_dict has shape {got[name]}, not {shape}")
        extra = next((name for name in got if name not in wanted), None)
        return (
            Problem(Status.WRONG, f"the state_dict of ModelNew has `{extra}` besides the module's") if extra else None
        )

    def _unlike(self, index: int, entries: Sequence[dict[str, Any]]) -> Problem | None:
        """Outputs that are no plain tensors on the device of the right type and shape."""
        wanted = self._answers.outputs[index]
        names, right = [str(e["name"]) for e in entries], [str(w["name"]) for w in wanted]
        if names != right:
            return Problem(Status.WRONG, f"forward returns {', '.join(names) or 'nothing'}, not {', '.join(right)}")
        for entry, want in zip(entries, wanted, strict=True):
            name = want["name"]
            if "on_device" not in entry:
                return Problem(Status.WRONG, f"{name} is a {str(entry['type'])[:60]}, not a plain tensor")
            if not entry["on_device"]:
                return Problem(Status.WRONG, f"{name} is not on the GPU")
            if entry["dtype"] != want["dtype"]:
                return Problem(Status.WRONG, f"{name} has type {str(entry['dtype'])[:30]}, not {want['dtype']}")
            if entry["shape"] != want["shape"]:
                return Problem(Status.WRONG, f"{name} has shape {str(entry['shape'])[:80]}, not {want['shape']}")
        return None

    def _changed(self, index: int, outputs: dict[str, Value]) -> Problem | None:
        for expected in self._answers.expected[index].outputs:
            if expected.name.startswith("input "):
                got = outputs.get(expected.name)
                if got is None or not np.array_equal(got, expected.value):
                    return Problem(Status.WRONG, f"forward changes its {expected.name}, which the caller still needs")
        return None


def _seconds(said: Any) -> dict[str, float]:
    """Times that a stranger's process gives; for people only."""
    parts = ("device", "import", "cases", "timeline")
    found = {part: float(said[part]) for part in parts if part in said}
    return {f"run's {part}": seconds for part, seconds in found.items() if math.isfinite(seconds)}
