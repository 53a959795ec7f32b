"""A benchmark's own cases: C++ snippets that call ``wrapper(NAME, arguments…)``, made into cases of a task.

The snippets are compiled with a ``wrapper`` of ours that writes its arguments down, and run in the sandbox: these are
the inputs of a case. A snippet that does not compile, passes pointers whose length cannot be seen, or does not fit the
task's parameters is left out, and the number of those that stay is reported.
"""

from __future__ import annotations

import asyncio
import shutil
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cudaperf_agent.cuda.given_cases import legal_cases, run_given
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.tasks.model import Case, Parameter, Task, Value
from cudaperf_agent.tasks.sizes import count_of
from training.evaluation.suite import Item

_LIMITS = Limits(seconds=30.0, memory=2 << 30, file_bytes=64 << 20, output=64 << 20)
_KINDS = {b"f": "f", b"i": "i", b"u": "u"}
_PRELUDE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>
using namespace std;
template <class T> static void put(const T *values, uint64_t count, bool array)
{
    static_assert(is_arithmetic<T>::value, "numbers only");
    char kind = is_floating_point<T>::value ? 'f' : is_signed<T>::value ? 'i' : 'u';
    uint64_t size = sizeof(T);
    fputc(array ? 'A' : 'S', stdout), fputc(kind, stdout);
    fwrite(&size, 8, 1, stdout), fwrite(&count, 8, 1, stdout), fwrite(values, sizeof(T), count, stdout);
}
template <class T, size_t N> static void one(T (&values)[N]) { put(values, N, true); }
template <class T> static enable_if_t<is_arithmetic<T>::value> one(const T &value) { put(&value, 1, false); }
template <class... A> static void wrapper(int, A &&...arguments)
{
    fputc('C', stdout);
    (one(arguments), ...);
    fputc('E', stdout);
}
"""


@dataclass(frozen=True, slots=True)
class GivenResult:
    """A candidate on a benchmark's own cases."""

    status: str
    passed: int
    total: int

    @property
    def correct(self) -> bool:
        """Whether it passed all of them."""
        return self.status == "correct"


class GivenCases:
    """Judges candidates by the cases that come with the items of a suite.

    Args:
        place: Tools of a verifier.
    """

    def __init__(self, place: Workplace) -> None:
        self._place = place

    async def cases(self, item: Item, task: Task) -> tuple[Case, ...]:
        """The item's own cases that can be run: read from its snippets, and such that the C gets through them."""
        drawn = await asyncio.gather(*(self._drawn(text, item, task) for text in item.given))
        found = [c for c in drawn if c is not None]
        return await legal_cases(self._place, task, found)

    async def judge(self, task: Task, source: str, cases: Sequence[Case]) -> GivenResult:
        """The candidate on them."""
        verdict = await run_given(self._place, task, source, cases)
        return GivenResult(verdict.status.value, verdict.passed, verdict.total)

    async def _drawn(self, snippet: str, item: Item, task: Task) -> Case | None:
        compiler = shutil.which("g++")
        if compiler is None:
            raise BackendUnavailable("there is no g++", hint="install g++")
        program = f"{_PRELUDE}static const int {item.called} = 0;\nint main()\n{{\n{snippet}\n}}\n"
        wrap = self._place.sandbox.wrap
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "case.cpp").write_text(program, encoding="utf-8", errors="replace")
            # What the snippet leaves unset is zero, so that the case is the same again.
            flags = ["-std=c++17", "-w", "-O0", "-ftrivial-auto-var-init=zero"]
            made = [compiler, *flags, str(folder / "case.cpp"), "-o", str(folder / "case")]
            async with self._place.compiling:
                built = await run_child(wrap(made, folder), limits=_LIMITS, cwd=folder)
            if not built.ok:
                return None
            async with self._place.running:
                ran = await run_child(wrap([str(folder / "case")], folder), limits=_LIMITS, cwd=folder)
        return case_of(ran.stdout, task) if ran.ok else None


def case_of(written: bytes, task: Task) -> Case | None:
    """What a snippet's program wrote as a case of the task; `None` if it does not fit its parameters."""
    arguments = _arguments(written)
    if arguments is None or len(arguments) != len(task.parameters):
        return None
    values: dict[str, Value] = {}
    for parameter, (array, value) in zip(task.parameters, arguments, strict=True):
        wanted = parameter.type.dtype
        if array != parameter.pointer or wanted.kind not in "fiub":
            return None
        if array and (value.dtype.kind != wanted.kind or value.dtype.itemsize != wanted.itemsize):
            return None
        values[parameter.name] = value.astype(wanted) if array else value[0].astype(wanted)
        values[parameter.name] = np.asarray(values[parameter.name])
    if any(not _fits(p, values) for p in task.buffers):
        return None
    shown = " ".join(f"{p.name}={values[p.name]}" for p in task.scalars)[:120]
    return Case(f"its own {shown}", values)


def _fits(parameter: Parameter, values: Mapping[str, Value]) -> bool:
    """Whether the buffer is as long as a caller of the task has to make it."""
    sizes = {name: int(v) for name, v in values.items() if v.ndim == 0 and v.dtype.kind in "iu"}
    needed = count_of(parameter.extent.expr, sizes) if parameter.extent is not None else None
    return needed is not None and values[parameter.name].size >= needed


def _arguments(written: bytes) -> list[tuple[bool, Value]] | None:
    """The arguments of the first call."""
    if not written.startswith(b"C"):
        return None
    found, at = [], 1
    while written[at : at + 1] in (b"A", b"S"):
        kind = _KINDS.get(written[at + 1 : at + 2])
        if kind is None or len(written) < at + 18:
            return None
        size, count = struct.unpack_from("<QQ", written, at + 2)
        end = at + 18 + size * count
        if end > len(written) or (kind, size) == ("f", 16):
            return None
        found.append((written[at : at + 1] == b"A", np.frombuffer(written[at + 18 : end], f"{kind}{size}").copy()))
        at = end
    return found if written[at : at + 1] == b"E" else None
