"""From the text of a `.cu` file to a library (or program) that runs on the CPU."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.cuda.emulator import compiler
from cudaperf_agent.cuda.emulator.compiler import Mode
from cudaperf_agent.cuda.emulator.refuse import find_unsupported
from cudaperf_agent.cuda.emulator.rewrite import RewriteError, rewrite
from cudaperf_agent.cuda.reach import traced
from cudaperf_agent.cuda.verdict import Diagnostic
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.execution.native import Wrap


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """Limits of one compilation."""

    seconds: float = 60.0
    memory: int = 2 << 30


@dataclass(frozen=True, slots=True)
class EmulatorBuild:
    """What came of a build.

    Attributes:
        library: Shared object, for a library build that worked.
        program: Executable, for a program build that worked.
        diagnostics: What g++ said about the candidate, lines as handed in.
        unsupported: Set whenever neither artefact is there: the reason with its line. The emulator's compiler refusing
            a text does not make it bad CUDA: that is nvcc's to say.
        seconds: Wall time of the compiler.
        reached: Traced names that the candidate refers to or defines (`reach.traced`).
    """

    library: Path | None = None
    program: Path | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    unsupported: str | None = None
    seconds: float = 0.0
    reached: tuple[str, ...] = ()


async def build(
    source: str,
    *,
    path_name: str,
    folder: Path,
    extra: Sequence[Path] = (),
    mode: Mode = "check",
    program: bool = False,
    wrap: Wrap | None = None,
    limits: BuildLimits = BuildLimits(),
) -> EmulatorBuild:
    """Compile `source` for the CPU.

    Args:
        source: The text of a `.cu` file.
        path_name: The file's name in messages, e.g. ``saxpy.cu``.
        folder: Existing folder for the results; the only one written to.
        extra: Objects (``.o``) to link in, e.g. the compiled call stub.
        mode: ``check`` instruments every access; ``fast`` only runs.
        program: Make an executable; `main` is in `source` or `extra`.
        wrap: The sandbox for the compiler; `None` runs it bare.
        limits: Of the compiler.

    Raises:
        BackendUnavailable: There is no g++, or the runtime cannot be built.
    """
    refusal = find_unsupported(source)
    if refusal:
        return EmulatorBuild(unsupported=str(refusal))
    try:
        text = rewrite(source)
    except RewriteError as error:
        return EmulatorBuild(unsupported=str(error))
    stem = re.sub(r"\W", "_", Path(path_name).stem) or "candidate"
    name = path_name.replace("\\", "\\\\").replace('"', '\\"')
    rewritten = folder / f"{stem}.emulated.cpp"
    rewritten.write_text(f'EMU_MODULE("{name}")\n#line 1 "{name}"\n{text}\n')
    output = folder / (stem if program else f"{stem}.so")
    command = await asyncio.to_thread(
        compiler.compile_command, mode, rewritten, output, extra, program=program
    )  # the first one builds the runtime
    child = await run_child(
        wrap(command, folder) if wrap else command,
        limits=Limits(seconds=limits.seconds, memory=limits.memory),
        cwd=folder,
        env={
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LC_ALL": "C",
        },
    )
    reached, messages = traced(child.stderr.decode("utf-8", "replace"), [e.name for e in extra])
    diagnostics = _diagnostics(messages, path_name)
    if child.output_cut:
        return EmulatorBuild(
            unsupported="its compiler prints too much for what it reaches to be seen", seconds=child.seconds
        )
    if child.ok and output.exists():
        return EmulatorBuild(
            library=None if program else output,
            program=output if program else None,
            diagnostics=diagnostics,
            seconds=child.seconds,
            reached=reached,
        )
    return EmulatorBuild(
        diagnostics=diagnostics, unsupported=_reason(diagnostics, messages, child.timed_out), seconds=child.seconds
    )


_MESSAGE = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>error|fatal error|warning): (?P<text>.*)$", re.M
)
_UNDEFINED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+): (?P<text>undefined reference to .*)$", re.M)


def _diagnostics(messages: str, path_name: str) -> tuple[Diagnostic, ...]:
    found = []
    for pattern in (_MESSAGE, _UNDEFINED):
        for match in pattern.finditer(messages):
            groups = match.groupdict()
            ours = Path(groups["file"]).name == Path(path_name).name
            column = groups.get("column")
            found.append(
                Diagnostic(
                    severity="warning" if groups.get("kind") == "warning" else "error",
                    message=groups["text"],
                    line=int(groups["line"]) if ours else None,
                    column=int(column) if ours and column else None,
                )
            )
    return tuple(found)


def _reason(diagnostics: Sequence[Diagnostic], messages: str, timed_out: bool) -> str:
    if timed_out:
        return "the emulator's compiler took too long"
    first = next((d for d in diagnostics if d.severity == "error" and d.line), None)
    first = first or next((d for d in diagnostics if d.severity == "error"), None)
    if first is None:
        return f"the emulator's compiler failed: {messages.strip()[-300:] or 'it said nothing'}"
    place = f"line {first.line}: " if first.line else ""
    return f"{place}the emulator's compiler says: {first.message}"
