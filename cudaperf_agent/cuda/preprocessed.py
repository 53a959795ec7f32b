"""A candidate as the compiler of the host reads it: macros replaced, with the lines of its own text alone."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from cudaperf_agent.codegen.forms import without_noise
from cudaperf_agent.cuda.cheats import Finding, screen
from cudaperf_agent.cuda.compile import CANDIDATE_FILE, CompileConfig, confined, flags_for
from cudaperf_agent.cuda.toolchain import Nvcc
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.execution.native import Wrap

PREPROCESSED = "candidate.ii"
# Only these can make a name that the text does not have, or say what is assembled for the host.
_MAKES_NAMES = re.compile(r"##|%:%:|\b(?:asm|__asm__|__asm)\b|\b_+\w*(?:CONCAT|CAT|PASTE|JOIN)\w*")
_RENUMBERS = re.compile(r"^[^\S\n]*(?:#|%:)[^\S\n]*(?:line\b|\d)[^\n]*", re.M)
_MARKER = re.compile(r'# (?P<line>\d+) "(?P<file>(?:[^"\\]|\\.)*)"')


async def screen_preprocessed(place: Workplace, source: str, *, program: bool = False) -> Finding | None:
    """`cheats.screen` of what the preprocessor makes of the source, where that can differ from what is written."""
    if not _MAKES_NAMES.search(without_noise(source)) or len(source.encode()) > place.config.compile.source_bytes:
        return None
    async with place.compiling:
        text = await preprocessed(place.nvcc, source, config=place.config.compile, wrap=place.sandbox.wrap)
    return screen(text, program=program, replaced=True) if text is not None else None


async def preprocessed(
    nvcc: Nvcc, source: str, *, config: CompileConfig, wrap: Wrap | None, device: bool = False
) -> str | None:
    """The source with macros replaced, every line where it was; `None` where it cannot be preprocessed.

    As for the host: without ``__CUDA_ARCH__``, so that what is kept for devices alone is not in it; or as for a device.
    """
    folder = Path(tempfile.mkdtemp(prefix="cudaperf-screen-"))
    try:
        (folder / CANDIDATE_FILE).write_text(_keeping_its_lines(source))
        flags = [*flags_for(nvcc, "cubin", config)[:-1], "-E", *(() if device else ("-U__CUDA_ARCH__",))]
        child = await confined([str(nvcc.path), *flags, "-o", PREPROCESSED, CANDIDATE_FILE], folder, config, wrap)
        return read_lines(folder / PREPROCESSED, CANDIDATE_FILE) if child.ok else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_lines(made: Path, file: str) -> str | None:
    """`own_lines` of a file that a compiler wrote, if it did."""
    return own_lines(made.read_text(errors="replace"), file) if made.is_file() and not made.is_symlink() else None


def own_lines(text: str, file: str) -> str:
    """Of what a preprocessor wrote, what came of `file`, each line at its number."""
    lines: dict[int, str] = {}
    number, ours = 1, False
    for line in text.split("\n"):
        marker = _MARKER.match(line)
        if marker is not None:
            number, ours = int(marker["line"]), marker["file"] == file
            continue
        if ours and line.strip():
            lines[number] = f"{lines[number]} {line}" if number in lines else line
        number += 1
    return "\n".join(lines.get(n, "") for n in range(1, max(lines, default=0) + 1)) + "\n"


def _keeping_its_lines(source: str) -> str:
    """Without directives that say that a line is another one, or of another file."""
    parts, at = [], 0
    for match in _RENUMBERS.finditer(without_noise(source)):
        parts += [source[at : match.start()], re.sub(r"[^\n]", " ", source[match.start() : match.end()])]
        at = match.end()
    return "".join([*parts, source[at:]])
