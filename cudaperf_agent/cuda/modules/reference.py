"""The module to translate, asked in a process of its own: what it takes (`described`), what it gives (`expected`)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cudaperf_agent.codegen import modules
from cudaperf_agent.cuda.modules import described
from cudaperf_agent.cuda.modules.budget import leaf_of, module_output
from cudaperf_agent.cuda.modules.config import MODULES, ModuleConfig
from cudaperf_agent.cuda.modules.python_child import require_torch, run_python
from cudaperf_agent.cuda.modules.remedies import REMEDIES
from cudaperf_agent.errors import BackendUnavailable, InputRefused
from cudaperf_agent.execution.child import ChildResult
from cudaperf_agent.execution.native import read_untrusted
from cudaperf_agent.execution.sandbox import Sandbox
from cudaperf_agent.tasks.budget import Expected, ExpectedOutput, Part
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.cases import ModuleCase
from cudaperf_agent.tasks.modules.find import GET_INPUTS, parse_inputs
from cudaperf_agent.tasks.modules.spec import Dimension, InputSpec, ModuleSpec, OutputSpec, StateSpec
from cudaperf_agent.tasks.parse import with_digest

MODULE_FILE = "module.py"
# What the generator of variants needs to know of a module is found out by a script of its own, in the same process.
TRACER = Path(modules.__file__).parent / "trace.py"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Cases and what a candidate must give for them.

    Attributes:
        cases: Those that the module itself takes.
        expected: What each must give.
        outputs: Name, element type and shape of each output of each case.
        inputs: Where each case's inputs lie in `inputs_raw`; `None` for one that is no tensor.
        inputs_raw: Bytes of all inputs.
        state: Where each tensor of the state lies in `state_raw`, by element type of the case and by name.
        state_raw: Bytes of the state.
    """

    cases: tuple[ModuleCase, ...]
    expected: tuple[Expected, ...]
    outputs: tuple[tuple[dict[str, Any], ...], ...]
    inputs: tuple[tuple[dict[str, Any] | None, ...], ...]
    inputs_raw: bytes
    state: dict[str, dict[str, Any]]
    state_raw: bytes


class Reference:
    """Runs the user's module.

    Args:
        sandbox: What confines it.
        config: Numbers.
    """

    def __init__(self, sandbox: Sandbox, config: ModuleConfig = MODULES) -> None:
        self._sandbox = sandbox
        self._config = config

    async def described(self, task: Task) -> Task:
        """The task with all that a run shows of its module; a run of an earlier process will do.

        Raises:
            InputRefused: The module cannot be made or run, or has inputs or results that cannot be compared.
            BackendUnavailable: torch is missing.
        """
        assert task.module is not None
        config = self._config
        limits = {name: getattr(config, name) for name in ("probe", "elements", "operations", "largest")}
        request = {"do": "describe", "seed": 0, "dtypes": list(task.module.dtypes), **limits}
        require_torch(config.python)
        asked = {**_about(task.module), **request}
        # Another interpreter may have another torch.
        place = None if config.python else await asyncio.to_thread(described.place_of, task.source, asked, TRACER)
        found = await asyncio.to_thread(described.recall, place)
        if found is None:
            async with self._asked(task, request) as answer:
                found = answer.response
            await asyncio.to_thread(described.keep, place, found)
        refused = [d for d in task.module.dtypes if d not in found["dtypes"]]
        if refused:
            raise InputRefused(
                f"{task.module.class_name} does not take {refused[0]} itself",
                where=task.path,
                hint="Leave --dtype out.",
            )
        return with_digest(replace(task, module=_spec(task.module, found)))

    async def expected(self, task: Task, cases: Sequence[ModuleCase], seed: int) -> Answers:
        """What a candidate must give.

        Args:
            task: A described task.
            cases: What to ask for; those that the module does not take are left out.
            seed: Of contents and state.

        Raises:
            InputRefused: The module takes none of them.
        """
        module = task.module
        assert module is not None
        request = {
            "do": "expect",
            "seed": seed,
            "moves": self._config.moves,
            "inputs": [asdict(i) for i in module.inputs],
            "cases": [asdict(c) for c in cases],
        }
        async with self._asked(task, request) as answer:
            raw = answer.file("expected.bin")
            kept = [(c, f) for c, f in zip(cases, answer.response["cases"], strict=True) if f is not None]
            if not kept:
                raise InputRefused(
                    f"{module.class_name} takes no inputs but the file's own",
                    where=_place(task),
                    hint="Let forward take its sizes from its inputs (x.shape), and inputs of any values.",
                )
            inputs = answer.file("inputs.bin")
            return Answers(
                tuple(c for c, _ in kept),
                tuple(_expected(c, f, raw, inputs) for c, f in kept),
                tuple(tuple(f["outputs"]["plain"]) for _, f in kept),
                tuple(tuple(f["inputs"]) for _, f in kept),
                inputs,
                answer.response["state"],
                answer.file("state.bin"),
            )

    @asynccontextmanager
    async def _asked(self, task: Task, request: dict[str, Any]) -> AsyncIterator[_Answer]:
        module = task.module
        assert module is not None
        folder = Path(tempfile.mkdtemp(prefix="cudaperf-module-"))
        try:
            (folder / MODULE_FILE).write_text(task.source, encoding="utf-8")
            if request["do"] == "describe" and TRACER.exists():
                shutil.copyfile(TRACER, folder / "tracer.py")
            (folder / "request.json").write_text(json.dumps({**_about(module), **request}))
            limits = self._config.reference
            threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
            child = await run_python(
                "reference",
                folder,
                sandbox=self._sandbox,
                limits=limits,
                python=self._config.python,
                env={"OMP_NUM_THREADS": threads},
            )
            yield _Answer(folder, _response(task, folder, child, limits.file_bytes), limits.file_bytes)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Answer:
    folder: Path
    response: dict[str, Any]
    most: int

    def file(self, name: str) -> bytes:
        return read_untrusted(self.folder / name, self.most)


def _about(module: ModuleSpec) -> dict[str, Any]:
    """What every request says of the module."""
    named = [] if module.inputs_from == GET_INPUTS else [[d, list(s)] for d, s in parse_inputs(module.inputs_from)]
    return {
        "class_name": module.class_name,
        "has_init_inputs": module.has_init_inputs,
        "named_inputs": named,
        "inputs_text": module.inputs_from if named else None,
    }


def _response(task: Task, folder: Path, child: ChildResult, most: int) -> dict[str, Any]:
    """What the child wrote.

    Raises:
        InputRefused: It said why the module cannot be run, or the module ended it.
    """
    raw = read_untrusted(folder / "response.json", most)
    if child.timed_out or child.out_of_memory:
        limit = f"{child.seconds:.0f} s" if child.timed_out else "its memory limit"
        raise InputRefused(f"running the module took more than {limit}", where=_place(task), hint=REMEDIES["memory"])
    if not raw:
        said = child.stderr.decode("utf-8", "replace").strip().splitlines()
        last = said[-1][:300] if said else _ended(child.returncode)
        if "Error" in last and "cudaperf_child" in child.stderr.decode("utf-8", "replace"):
            raise BackendUnavailable(f"the module cannot be examined: {last}")
        raise InputRefused(
            f"the module ends the process that runs it: {last}", where=_place(task), hint=REMEDIES["ended"]
        )
    response: dict[str, Any] = json.loads(raw)
    if "refused" in response:
        kind = str(response.get("kind"))
        where = "--inputs" if kind == "inputs_flag" else _place(task, response.get("line") or 0)
        raise InputRefused(str(response["refused"]), where=where, hint=REMEDIES.get(kind, REMEDIES["ended"]))
    return response


def _ended(status: int) -> str:
    # bubblewrap, like a shell, gives 128 + n for a signal of the process in it.
    number = -status if status < 0 else status - 128
    known = {int(s): s.name for s in signal.Signals}
    return f"signal {known[number]}" if number in known else f"exit status {status}"


def _place(task: Task, line: int = 0) -> str:
    """A line of the file; where none is known, that of the class."""
    return f"{task.path}:{line or task.first_line}"


def _spec(module: ModuleSpec, found: dict[str, Any]) -> ModuleSpec:
    def tensor(data: dict[str, Any]) -> InputSpec:
        lists: dict[str, Any] = {name: tuple(data[name]) for name in ("shape", "distinct") if name in data}
        return InputSpec(**{**data, **lists})

    return replace(
        module,
        init=found["init"],
        inputs=tuple(tensor(i) for i in found["inputs"]),
        state=tuple(StateSpec(s["name"], s["dtype"], tuple(s["shape"]), s["buffer"]) for s in found["state"]),
        outputs=tuple(OutputSpec(**o) for o in found["outputs"]),
        dimensions=tuple(
            Dimension(d["size"], tuple(tuple(p) for p in d["places"]), d["least"]) for d in found["dimensions"]
        ),
        strided=found["strided"],
        reduced=found["reduced"],
        graph=found["graph"],
        torch=found["torch"],
    )


def _expected(case: ModuleCase, found: dict[str, Any], raw: bytes, inputs: bytes) -> Expected:
    """The budget of every output, and the inputs themselves, which must not change."""
    builds = found["outputs"]
    outputs = []
    for index, entry in enumerate(builds["plain"]):

        def same(build: str, index: int = index) -> Any:
            leaves = builds.get(build)
            return leaf_of(leaves[index], raw) if leaves is not None and index < len(leaves) else None

        moved = [same(name) for name in builds if name.startswith("moved")]
        found_moved = [m for m in moved if m is not None]
        outputs.append(module_output(entry, leaf_of(entry, raw), same("wide"), found_moved, same("summed")))
    for index, entry in enumerate(found["inputs"]):
        if entry is not None:
            data = np.frombuffer(inputs, np.uint8, entry["bytes"], entry["offset"])
            outputs.append(ExpectedOutput(f"input {index}", data, (Part("", data, None),)))
    return Expected(case.name, tuple(outputs))
