"""From a candidate's source to something that can be run, or to the verdict that says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.dropin import DropIn, device_prototype, edited_dropin, kernels_of, make_dropin
from cudaperf_agent.cuda.cheats import Finding, screen, screen_linked
from cudaperf_agent.cuda.compile import Compiled, Kind, compile_cuda
from cudaperf_agent.cuda.emulated import Emulated, build_emulated
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.preprocessed import screen_preprocessed
from cudaperf_agent.cuda.same_text import differing_text
from cudaperf_agent.cuda.verdict import Diagnostic, Status, Verdict
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.stub import entry_prototype


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate that compiles: what a user would link, and what can be run."""

    dropin: DropIn
    compiled: Compiled
    emulated: Emulated

    @property
    def there(self) -> bool:
        """Whether nothing of it was removed since (the cache has a size), and no limit of a compiler was met."""
        made = [a for a in (self.compiled.artefact, self.emulated.artefact) if a is not None]
        return not self.emulated.limited and all(a.exists() for a in made)

    def verdict(self) -> Verdict:
        """What is known from compiling it."""
        kernels = {
            r.readable: {
                "registers": r.registers,
                "shared_bytes": r.shared,
                "stack_bytes": r.stack,
                "spill_stores": r.spill_stores,
                "spill_loads": r.spill_loads,
            }
            for r in self.compiled.resources
        }
        return Verdict(
            Status.CORRECT,
            form=self.dropin.form,
            diagnostics=self.compiled.diagnostics,
            profile={"ptxas": kernels} if kernels else {},
            seconds={"compile": 0.0 if self.compiled.cached else self.compiled.seconds},
        )


async def build_candidate(place: Workplace, task: Task, source: str) -> Built | Verdict:
    """Screen, wrap and compile a candidate, with nvcc and for the emulator at once."""
    if not source.strip():
        return Verdict(Status.NO_CODE, "there is no code")
    lines = source.count("\n") + 1
    dropin = make_dropin(task, source)
    if dropin is None:
        compiled = await _nvcc(place, source, lines)
        return Verdict(Status.NO_CODE, _missing_entry(task)) if compiled.ok else _compile_error(compiled)
    theirs, program = kernels_of(task, source), dropin.form == "program"
    finding = screen(theirs, program=program) or await screen_preprocessed(place, theirs, program=program)
    if finding is not None:
        return _cheat(finding, dropin.form, _of_the_dropin(task, source))
    other = await differing_text(place, theirs) if place.gpu is None else None
    if other is not None:
        return Verdict(
            Status.UNSUPPORTED, f"line {other.line}: the emulator cannot judge this: {other.message}", dropin.form
        )
    linked = None if program else linked_c(task, dropin)
    await place.note_build()
    emulating = asyncio.create_task(_emulated(place, dropin.cu, linked))
    try:
        compiled = await _nvcc(place, dropin.cu, lines, linked, dropin.form)
        if not compiled.ok:
            return _compile_error(compiled, dropin.form)
        emulated = await emulating
    finally:
        emulating.cancel()  # what nvcc refuses need not be built
    reached = (*compiled.reached, *emulated.reached)
    finding = screen_linked(theirs, reached, program=program)
    if finding is not None:
        return _cheat(finding, dropin.form)
    if emulated.artefact is None and place.gpu is None:
        return _not_emulated(emulated, dropin.form)
    return Built(dropin, compiled, emulated)


async def build_own(place: Workplace, task: Task, source: str) -> Emulated | None:
    """A device-form source of our generator, for the emulator alone; `None` where it cannot be built."""
    dropin = make_dropin(task, source)
    if dropin is None:
        return None
    await place.note_build()
    built = await _emulated(place, dropin.cu, linked_c(task, dropin))
    return built if built.artefact is not None else None


async def _nvcc(place: Workplace, text: str, lines: int, linked: str | None = None, form: str = "") -> Compiled:
    # Without a GPU nothing that nvcc makes is run: a cubin is the quick way to what it accepts.
    kind: Kind = "cubin" if place.gpu is None or not form else "program" if form == "program" else "library"
    async with place.compiling:
        return await compile_cuda(
            place.nvcc,
            text,
            kind,
            linked=linked if kind == "library" else None,
            lines=lines,
            config=place.config.compile,
            wrap=place.sandbox.wrap,
        )


async def _emulated(place: Workplace, text: str, linked: str | None) -> Emulated:
    if place.gpu is not None and (not place.config.also_emulate or place.trust == "own"):
        return Emulated(None, (), None, 0.0)
    if len(text.encode()) > place.config.compile.source_bytes:
        return Emulated(None, (), "the source is too long", 0.0)
    try:
        async with place.compiling:
            return await build_emulated(text, linked, wrap=place.sandbox.wrap, limits=place.config.compile.limits)
    except BackendUnavailable as error:
        if place.gpu is None:
            raise
        # The GPU decides; what the emulator would have seen besides goes unseen, and the verdict can say so.
        return Emulated(None, (), f"the emulator is not available: {error.message}", 0.0)


def _cheat(finding: Finding, form: str, remedy: str = "") -> Verdict:
    where = f"line {finding.line}: " if finding.line else ""
    return Verdict(Status.CHEAT, where + finding.message + remedy, form)


def _of_the_dropin(task: Task, source: str) -> str:
    """What to do where the names that are refused may be those of our own drop-in, edited."""
    line = edited_dropin(task, source)
    if line is None:
        return ""
    return (
        f"; the drop-in at the end is not as `cudaperf translate` writes it, see line {line}: leave it out and it is "
        "written anew, or restore it (layout and comments are free), or write a host function with names of your own"
    )


def _missing_entry(task: Task) -> str:
    if task.mode == "program":
        return "the file does not define `main`"
    return f"the file defines neither `{device_prototype(task)}` nor `{entry_prototype(task)}`"


def _compile_error(compiled: Compiled, form: str = "") -> Verdict:
    return replace(_errors(compiled.diagnostics, form), transient=compiled.limited)


def _errors(diagnostics: Sequence[Diagnostic], form: str) -> Verdict:
    first = next((d for d in diagnostics if d.severity == "error"), None)
    where = f"line {first.line}: " if first and first.line else ""
    message = f"{where}{first.message}" if first else "it does not compile"
    return Verdict(Status.COMPILE_ERROR, message, form, tuple(diagnostics))


def _not_emulated(emulated: Emulated, form: str) -> Verdict:
    """nvcc takes it, the emulator does not: a missing symbol is the candidate's fault, anything else is not."""
    unresolved = [d for d in emulated.diagnostics if "undefined reference" in d.message]
    if unresolved:
        return _errors(unresolved, form)
    reason = emulated.unsupported or next((d.message for d in emulated.diagnostics), "no reason is known")
    return Verdict(
        Status.UNSUPPORTED,
        f"the emulator cannot run this: {reason}",
        form,
        emulated.diagnostics,
        transient=emulated.limited,
    )
