"""Runs of a PyTorch candidate in its own process; `reading` reads what came back."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.judge import CaseRuns
from cudaperf_agent.cuda.modules.python_child import run_python
from cudaperf_agent.cuda.modules.reading import Reading
from cudaperf_agent.cuda.modules.reference import Answers
from cudaperf_agent.cuda.modules.waiting import WaitingPython, WaitingPythons
from cudaperf_agent.cuda.trials import EVERY_KERNEL, FIRST_POISON
from cudaperf_agent.execution.child import ChildResult, Limits
from cudaperf_agent.execution.native import read_untrusted
from cudaperf_agent.execution.sandbox import Sandbox
from cudaperf_agent.tasks.modules.spec import ModuleSpec

CANDIDATE_FILE = "model_new.py"
EXTENSIONS = "extensions"
# Kernels that a process is given time for, where it runs without each in turn.
_EACH_KERNEL = 4


@dataclass(frozen=True, slots=True)
class Kernels:
    """Compiled CUDA of a candidate: artefacts by the very text they were made of."""

    by_text: dict[str, Path]


def link_kernels(folder: Path, kernels: Kernels, *, copied: bool = False) -> None:
    """Put compiled kernels where the loader of a light-form file looks for them; copies, where no more can be shown."""
    made = folder / "kernels"
    made.mkdir()
    for text, artefact in kernels.by_text.items():
        place = made / f"{hashlib.sha256(text.encode()).hexdigest()}.so"
        if copied:
            shutil.copyfile(artefact, place)
        else:
            place.symlink_to(artefact)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a candidate runs.

    Attributes:
        on_emulator: Else on the GPU.
        sandbox: What confines it.
        limits: Of a run (its time) and of all runs of a process (the rest).
        python: The interpreter; this one where `None`.
        device: Of torch, where it is not the emulator; ``cpu`` only to try this out.
        waiting: Processes that are ready already, where there are any.
        start_seconds: What importing torch may take besides.
        env: More variables.
        keep: A folder to run in that stays, where ``load_inline`` is not to compile anew each time.
    """

    on_emulator: bool
    sandbox: Sandbox
    limits: Limits
    python: str | None = None
    device: str = "cuda:0"
    waiting: WaitingPythons | None = None
    start_seconds: float = 30.0
    env: dict[str, str] = field(default_factory=dict)
    keep: Path | None = None


@contextmanager
def run_folder(keep: Path | None, prefix: str) -> Iterator[Path]:
    """A folder for a candidate's process, empty but for the extensions that it built earlier; then gone, or emptied."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)) if keep is None else keep
    folder.mkdir(exist_ok=True)
    try:
        _emptied(folder)
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            _emptied(folder)


def _emptied(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if entry.name != EXTENSIONS:
                shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


class ModuleRuns:
    """The runs of one candidate over a set of cases; those that are surely asked for share one import of torch.

    Args:
        file: The candidate.
        kernels: Of the emulator, or of nvcc.
        module: The module it is for.
        answers: All cases.
        bench: Where it runs.
        ahead: Plans that will follow the first.
        each_kernel: A plan to run without each kernel in turn, too.
    """

    def __init__(
        self,
        file: ModuleFile,
        kernels: Kernels,
        module: ModuleSpec,
        answers: Answers,
        bench: Bench,
        ahead: Sequence[RunPlan] = (),
        each_kernel: RunPlan | None = None,
    ) -> None:
        self._file = file
        self._kernels = kernels
        self._module = module
        self._answers = answers
        self._bench = bench
        self._ahead = list(ahead)
        self._each_kernel = each_kernel
        self._workers: list[WaitingPython] = []
        self._done: dict[tuple[int, str, str | None], CaseRuns] = {}
        self.seconds: dict[str, float] = {}
        """What took how long: of all runs of the first process, and of parts of its first run, by its own clock."""

    async def reserve(self) -> None:
        """Have processes that wait for the first runs, where they can be had; `aclose` lets them go."""
        bench = self._bench
        if bench.waiting is None or bench.keep is not None or self._each_kernel or self._done or self._workers:
            return
        self._workers = await bench.waiting.take(1 + len(self._ahead))

    async def aclose(self) -> None:
        """Let go what was reserved, used or not."""
        workers, self._workers = self._workers, []
        for worker in workers:
            await worker.discard()
        if self._bench.waiting is not None:
            self._bench.waiting.fill()

    async def run(self, chosen: Sequence[int], plan: RunPlan) -> CaseRuns:
        """Cases, by their positions, in one process."""
        everything = [i for i, case in enumerate(self._answers.cases) if not case.probe]
        known = self._done.get(_key(plan)) if set(chosen) <= set(everything) else None
        if known is None and list(chosen) == everything:
            # Without a process namespace of its own, what a run leaves behind could not be found.
            together = self._bench.sandbox.kind in ("bubblewrap", "unshare")
            each_kernel = self._each_kernel if together else None
            done = await self._side_by_side(chosen, [plan, *self._ahead])
            if not done:
                done = await self._process(chosen, [plan, *(self._ahead if together else [])], each_kernel)
            self._done |= done
            self._ahead, self._each_kernel = [], None
            known = self._done[_key(plan)]
        if known is None:
            return (await self._process(chosen, [plan], None))[_key(plan)]
        taken = [known.runs[i] for i in chosen if i < len(known.runs)]
        child = known.child if len(taken) < len(chosen) else replace(known.child, returncode=0)
        return CaseRuns(tuple(taken), None, child)

    async def _side_by_side(
        self, chosen: Sequence[int], plans: Sequence[RunPlan]
    ) -> dict[tuple[int, str, str | None], CaseRuns]:
        """Every plan at once, each in a process that waited for it; nothing where that cannot be done.

        Where the first stops early the verdict is made, and the others are of no use.
        """
        workers, self._workers = self._workers, []
        if not workers:
            return {}
        jobs = [asyncio.create_task(self._waited(w, chosen, p)) for w, p in zip(workers, plans, strict=True)]
        try:
            first = await jobs[0]
            if first is None:
                return {}
            if len(first.runs) < len(chosen) or first.child.returncode:
                return {_key(plans[0]): first}
            others = await asyncio.gather(*jobs[1:])
            found = dict(zip(map(_key, plans), [first, *others], strict=True))
            # One that is missing is run when it is asked for.
            return {key: runs for key, runs in found.items() if runs is not None}
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            for worker in workers:
                await worker.discard()

    async def _waited(self, worker: WaitingPython, chosen: Sequence[int], plan: RunPlan) -> CaseRuns | None:
        """What came back of a plan from a process that waited; `None` if that process failed, not the candidate."""
        bench = self._bench
        seconds = bench.limits.seconds if plan.seconds is None else min(bench.limits.seconds, plan.seconds)
        request = {**self._request(chosen, worker.folder), **self._settings(seconds, [plan]), "each_kernel": None}
        await asyncio.to_thread(self._filled, worker.folder, request, copied=True)
        child = await worker.answer(replace(bench.limits, seconds=seconds + bench.start_seconds))
        if not (child.ok or child.timed_out or child.out_of_memory):
            return None
        found = await asyncio.to_thread(self._read, worker.folder, child, chosen, [plan])
        return found[_key(plan)]

    def _settings(self, seconds: float, plans: Sequence[RunPlan]) -> dict[str, Any]:
        kind = self._bench.sandbox.kind
        return {
            "seconds": seconds,
            "alone": kind in ("bubblewrap", "unshare"),
            "private_tmp": kind == "bubblewrap",
            "plans": [self._plan(p) for p in plans],
        }

    async def _process(
        self, chosen: Sequence[int], plans: Sequence[RunPlan], each_kernel: RunPlan | None
    ) -> dict[tuple[int, str, str | None], CaseRuns]:
        bench = self._bench
        # Where launches are only counted, most of the time goes into the start of the process, not into the cases.
        shorter = [p.seconds for p in plans if p.seconds is not None and p.suppress != EVERY_KERNEL]
        seconds = min([bench.limits.seconds, *shorter])
        most = seconds * (len(plans) + (_EACH_KERNEL if each_kernel else 0)) + bench.start_seconds
        with run_folder(bench.keep, "cudaperf-candidate-") as folder:
            request = {
                **self._request(chosen, folder),
                **self._settings(seconds, plans),
                "each_kernel": self._plan(each_kernel) if each_kernel else None,
            }
            await asyncio.to_thread(self._filled, folder, request)
            readable = [*self._kernels.by_text.values()]
            child = await run_python(
                "supervise",
                folder,
                sandbox=bench.sandbox,
                limits=replace(bench.limits, seconds=most),
                python=bench.python,
                readable=[*readable, *([emulator.runtime_library()] if bench.on_emulator else [])],
                env=bench.env,
            )
            return await asyncio.to_thread(self._read, folder, child, chosen, plans)

    def _filled(self, folder: Path, request: dict[str, Any], copied: bool = False) -> None:
        (folder / CANDIDATE_FILE).write_text(self._file.complete, encoding="utf-8")
        (folder / "inputs.bin").write_bytes(self._answers.inputs_raw)
        (folder / "state.bin").write_bytes(self._answers.state_raw)
        (folder / "request.json").write_text(json.dumps(request))
        link_kernels(folder, self._kernels, copied=copied)
        if copied:  # the process that waits may run as another user
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)

    def _plan(self, plan: RunPlan) -> dict[str, Any]:
        order = emulator.environment(plan.order, plan.seed) if self._bench.on_emulator else {}
        # What runs on the device is looked at once: the profiler takes longer than the cases.
        timeline = not self._bench.on_emulator and plan.fill == FIRST_POISON
        told = {"fill": plan.fill, "order": plan.order, "suppress": plan.suppress}
        return {**told, "environment": order, "timeline": timeline}

    def _request(self, chosen: Sequence[int], folder: Path) -> dict[str, Any]:
        answers, emulated = self._answers, self._bench.on_emulator
        cases = []
        for number, index in enumerate(chosen):
            case = asdict(answers.cases[index])
            case.pop("name")  # nothing that a candidate could go by
            # What is written over the case before is new memory where that one is left out.
            case["over_previous"] &= number > 0 and _alike(answers, chosen[number - 1], index)
            values = [_value(i.value) for i in self._module.inputs]
            cases.append({**case, "inputs": list(answers.inputs[index]), "values": values})
        return {
            "kernels": str(folder / "kernels"),
            "device": self._bench.device,
            "runtime": str(emulator.runtime_library()) if emulated else None,
            "libraries": [str(p) for p in self._kernels.by_text.values()] if emulated else [],
            "init": json.loads(self._module.init),
            "state": answers.state,
            "cases": cases,
        }

    def _read(
        self, folder: Path, child: ChildResult, chosen: Sequence[int], plans: Sequence[RunPlan]
    ) -> dict[tuple[int, str, str | None], CaseRuns]:
        """What came back of every plan; of one that nothing came back of, how the whole process ended."""
        most = self._bench.limits.file_bytes
        found: dict[tuple[int, str, str | None], CaseRuns] = {}
        try:
            ended = json.loads(read_untrusted(folder / "ended.json", most))
            for number, end in enumerate(ended):
                key = (int(end["fill"]), str(end["order"]), None if end["suppress"] is None else str(end["suppress"]))
                raw = read_untrusted(folder / f"{number}.outputs.bin", most)
                lines = read_untrusted(folder / f"{number}.results.jsonl", most).splitlines()
                reading = Reading(self._file, self._module, self._answers, chosen, raw)
                runs = reading.runs(lines)
                if number == 0 and plans[0].fill == FIRST_POISON and not self.seconds:
                    self.seconds = {**reading.clock, "process": child.seconds, "first run": float(end["seconds"])}
                code = 0 if reading.stopped else int(end["returncode"])
                one = ChildResult(
                    code,
                    bool(end["timed_out"]),
                    False,
                    False,
                    b"",
                    str(end["stderr"]).encode(),
                    float(end["seconds"]),
                )
                found[key] = CaseRuns(tuple(runs), None, one)
        except (ValueError, KeyError, TypeError, AttributeError):
            if child.ok:
                child = replace(child, returncode=1)
        for plan in plans:
            found.setdefault(_key(plan), CaseRuns((), None, child))
        return found


def _key(plan: RunPlan) -> tuple[int, str, str | None]:
    return plan.fill, plan.order, plan.suppress


def _alike(answers: Answers, first: int, second: int) -> bool:
    one, other = answers.cases[first], answers.cases[second]
    return (one.shapes, one.dtype, one.layout) == (other.shapes, other.dtype, other.layout)


def _value(text: str) -> Any:
    return json.loads(text) if text else None
