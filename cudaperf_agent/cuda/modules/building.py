"""A PyTorch candidate from text to compiled kernels, or to the verdict that says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudaperf_agent.codegen.modules.forms import CudaText, ModuleFile, NoModule, read_module_file
from cudaperf_agent.cuda.cheats import Finding, screen_linked
from cudaperf_agent.cuda.compile import Compiled, compile_cuda
from cudaperf_agent.cuda.emulated import Emulated, build_emulated
from cudaperf_agent.cuda.modules.runs import Kernels
from cudaperf_agent.cuda.modules.screen import screen_module
from cudaperf_agent.cuda.preprocessed import screen_preprocessed
from cudaperf_agent.cuda.same_text import differing_text
from cudaperf_agent.cuda.verdict import Diagnostic, Status, Verdict
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable

_STATUS = {"syntax": Status.COMPILE_ERROR, "class": Status.NO_CODE, "cuda": Status.CHEAT}
_INLINE = "load_inline compiles for a real GPU, so the file can only be judged on one; load_cuda can be emulated"
_SEVERAL = "it loads several CUDA texts, and the emulator runs one: put all kernels into one text"
_UNREAD = "the text that load_cuda gets is not a plain constant, so that it cannot be compiled ahead"


@dataclass(frozen=True, slots=True)
class BuiltModule:
    """A candidate whose CUDA compiles.

    Attributes:
        file: The candidate.
        real: Libraries that nvcc built; empty without a GPU.
        emulated: Libraries for the emulator.
        not_emulated: Why there is none, where there is none.
        diagnostics: Of nvcc.
        resources: Registers and so on of each kernel.
        seconds: Of nvcc.
    """

    file: ModuleFile
    real: Kernels
    emulated: Kernels
    not_emulated: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def there(self) -> bool:
        """Whether nothing of it was removed since."""
        return all(p.exists() for k in (self.real, self.emulated) for p in k.by_text.values())

    def verdict(self) -> Verdict:
        """What is known from compiling it."""
        return Verdict(
            Status.CORRECT,
            form=self.file.form,
            diagnostics=self.diagnostics,
            profile={"ptxas": self.resources} if self.resources else {},
            seconds={"compile": self.seconds},
        )


async def build_module(place: Workplace, source: str) -> BuiltModule | Verdict:
    """Read, screen and compile a candidate, with nvcc and for the emulator at once."""
    if not source.strip():
        return Verdict(Status.NO_CODE, "there is no code")
    if len(source.encode()) > place.config.compile.source_bytes:
        return Verdict(Status.COMPILE_ERROR, f"the source is longer than {place.config.compile.source_bytes >> 10} KiB")
    file = read_module_file(source)
    if isinstance(file, NoModule):
        where = f"line {file.line}: " if file.line else ""
        diagnostics = (Diagnostic("error", file.reason, file.line),) if file.kind == "syntax" else ()
        return Verdict(_STATUS[file.kind], where + file.reason, diagnostics=diagnostics)
    finding = screen_module(file)
    for part in file.cuda if finding is None else ():
        finding = finding or _in_file(await screen_preprocessed(place, part.text), part)
    if finding is not None:
        return _cheat(finding, file)
    for part in file.cuda if place.gpu is None else ():
        other = _in_file(await differing_text(place, part.text), part)
        if other is not None:
            message = f"line {other.line}: the emulator cannot judge this: {other.message}"
            return Verdict(Status.UNSUPPORTED, message, file.form)
    if file.form == "load_inline":
        if place.gpu is None:
            return Verdict(Status.UNSUPPORTED, _INLINE, file.form)
        return BuiltModule(file, Kernels({}), Kernels({}), _INLINE)
    if file.unread is not None and place.gpu is None:
        return Verdict(Status.UNSUPPORTED, f"line {file.unread}: {_UNREAD}", file.form)
    await place.note_build()
    return await _compiled(place, file)


async def _compiled(place: Workplace, file: ModuleFile) -> BuiltModule | Verdict:
    real: dict[str, Path] = {}
    emulating = asyncio.create_task(_emulated(place, file))
    diagnostics: list[Diagnostic] = []
    resources: dict[str, dict[str, int]] = {}
    seconds = 0.0
    linked: Finding | None = None
    try:
        for part in file.cuda:
            compiled = await _nvcc(place, part)
            diagnostics += _placed(compiled.diagnostics, part)
            if not compiled.ok:
                return replace(_errors(diagnostics, file.form), transient=compiled.limited)
            assert compiled.artefact is not None
            seconds += 0.0 if compiled.cached else compiled.seconds
            resources |= {
                r.readable: {"registers": r.registers, "shared_bytes": r.shared, "spill_stores": r.spill_stores}
                for r in compiled.resources
            }
            if place.gpu is not None:
                real[part.text] = compiled.artefact
            linked = linked or _in_file(screen_linked(part.text, compiled.reached), part)
        emulated = await emulating
    finally:
        emulating.cancel()
    for part, made in zip(file.cuda, emulated, strict=False):
        linked = linked or _in_file(screen_linked(part.text, made.reached), part)
    if linked is not None:
        return _cheat(linked, file)
    missing = _why_not_emulated(emulated, file)
    if missing is not None and place.gpu is None:
        unresolved = [d for e in emulated for d in e.diagnostics if "undefined reference" in d.message]
        if unresolved:
            return _errors(_placed(unresolved, file.cuda[0]), file.form)
        limited = any(e.limited for e in emulated)
        return Verdict(Status.UNSUPPORTED, f"the emulator cannot run this: {missing}", file.form, transient=limited)
    libraries = {p.text: e.artefact for p, e in zip(file.cuda, emulated, strict=False) if e.artefact is not None}
    kernels = Kernels(libraries) if missing is None else Kernels({})
    return BuiltModule(file, Kernels(real), kernels, missing, tuple(diagnostics), resources, seconds)


def _in_file(finding: Finding | None, part: CudaText) -> Finding | None:
    """A finding in the CUDA text with its line in the Python file."""
    return replace(finding, line=finding.line + part.line - 1) if finding and finding.line else finding


def _cheat(finding: Finding, file: ModuleFile) -> Verdict:
    where = f"line {finding.line}: " if finding.line else ""
    return Verdict(Status.CHEAT, where + finding.message, file.form)


def _why_not_emulated(emulated: Sequence[Emulated], file: ModuleFile) -> str | None:
    if file.unread is not None:
        return _UNREAD
    if len(file.cuda) > 1:
        return _SEVERAL
    if not emulated:
        return "it was not asked for"
    return next((_reason(e, file.cuda[0]) for e in emulated if e.artefact is None), None)


def _reason(emulated: Emulated, part: CudaText) -> str:
    reason = emulated.unsupported or next((d.message for d in emulated.diagnostics), "no reason is known")
    start, _, rest = reason.partition(": ")
    number = start.removeprefix("line ")
    return f"line {int(number) + part.line - 1}: {rest}" if start != number and number.isdigit() else reason


async def _nvcc(place: Workplace, part: CudaText) -> Compiled:
    async with place.compiling:
        return await compile_cuda(
            place.nvcc,
            part.text,
            "cubin" if place.gpu is None else "library",
            config=place.config.compile,
            wrap=place.sandbox.wrap,
        )


async def _emulated(place: Workplace, file: ModuleFile) -> list[Emulated]:
    if len(file.cuda) != 1 or file.unread is not None or (place.gpu is not None and not place.config.also_emulate):
        return []
    try:
        async with place.compiling:
            # Linked with an empty C file: without one it would be a program.
            limits = place.config.compile.limits
            return [await build_emulated(file.cuda[0].text, "", wrap=place.sandbox.wrap, limits=limits)]
    except BackendUnavailable as error:
        if place.gpu is None:
            raise
        return [Emulated(None, (), f"the emulator is not available: {error.message}", 0.0)]


def _placed(diagnostics: Sequence[Diagnostic], part: CudaText) -> list[Diagnostic]:
    """Lines of the CUDA text as lines of the Python file."""
    return [replace(d, line=d.line + part.line - 1) if d.line else d for d in diagnostics]


def _errors(diagnostics: Sequence[Diagnostic], form: str) -> Verdict:
    first = next((d for d in diagnostics if d.severity == "error"), None)
    where = f"line {first.line}: " if first and first.line else ""
    message = f"{where}{first.message}" if first else "its CUDA does not compile"
    return Verdict(Status.COMPILE_ERROR, message, form, tuple(diagnostics))
