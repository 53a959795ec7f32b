"""Whether the emulator runs what nvcc would compile: a verdict on the emulator must not be of other code.

Text can depend on who reads it. The emulator reads a file once, as for a device, where nvcc reads it for the host, too:
what ``__CUDA_ARCH__`` changes in a function of the host alone the emulator cannot see. And some macros only one of the
two has.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

from cudaperf_agent.codegen.forms import without_comments, without_noise
from cudaperf_agent.cuda.cheats import Finding
from cudaperf_agent.cuda.compile import CANDIDATE_FILE, LINKED_FILE, LINKED_OBJECT, confined
from cudaperf_agent.cuda.emulator.compiler import preprocess_command
from cudaperf_agent.cuda.host_assembly import blocks
from cudaperf_agent.cuda.preprocessed import PREPROCESSED, preprocessed, read_lines
from cudaperf_agent.cuda.workplace import Workplace

_DIRECTIVE = re.compile(r"\s*(?:#|%:)")
_CONDITION = re.compile(r"^[^\S\n]*(?:#|%:)[^\S\n]*(?:el)?if", re.M)
_MARK = "cudaperf_line"
_EMULATED_FILE = "candidate.emulated.cpp"  # as the emulator calls it


async def differing_text(place: Workplace, source: str) -> Finding | None:
    """The first line that the emulator would not run as nvcc compiles it; `None` if there is none, or none is found."""
    if not _CONDITION.search(without_noise(source)) or len(source.encode()) > place.config.compile.source_bytes:
        return None
    async with place.compiling:
        return await _for_the_host(place, source) or await _for_the_emulator(place, source)


async def _for_the_host(place: Workplace, source: str) -> Finding | None:
    config, wrap = place.config.compile, place.sandbox.wrap
    host = await preprocessed(place.nvcc, source, config=config, wrap=wrap)
    device = await preprocessed(place.nvcc, source, config=config, wrap=wrap, device=True)
    if host is None or device is None:
        return None
    line = first_difference(of_the_host(host), of_the_host(device))
    if line is None:
        return None
    return Finding("code of the host depends on __CUDA_ARCH__, which is for code of the device", line)


async def _for_the_emulator(place: Workplace, source: str) -> Finding | None:
    text = conditions(source)
    nvcc = await preprocessed(place.nvcc, text, config=place.config.compile, wrap=place.sandbox.wrap, device=True)
    folder = Path(tempfile.mkdtemp(prefix="cudaperf-screen-"))
    try:
        for name in (LINKED_FILE, LINKED_OBJECT):  # what is there beside a candidate
            (folder / name).touch()
        (folder / _EMULATED_FILE).write_text(f'#line 1 "{CANDIDATE_FILE}"\n{text}')
        argv = await asyncio.to_thread(
            preprocess_command, "check", folder / _EMULATED_FILE, folder / PREPROCESSED
        )  # the first one asks the compiler
        child = await confined(argv, folder, place.config.compile, place.sandbox.wrap)
        emulated = read_lines(folder / PREPROCESSED, CANDIDATE_FILE) if child.ok else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if nvcc is None or emulated is None:
        return None
    apart = {int(n) for n in re.findall(rf"{_MARK}_(\d+)", nvcc)} ^ {
        int(n) for n in re.findall(rf"{_MARK}_(\d+)", emulated)
    }
    return Finding("it is there for nvcc or for the emulator alone, by a macro", min(apart)) if apart else None


def conditions(source: str) -> str:
    """Directives alone, and in place of every other line that has code on it a mark with its number."""
    lines, directive, spliced = [], False, False
    both = zip(without_noise(source).split("\n"), without_comments(source).split("\n"), strict=True)
    for number, (code, line) in enumerate(both, 1):
        directive = directive if spliced else _DIRECTIVE.match(code) is not None
        spliced = line.rstrip().endswith("\\")
        lines.append(line if directive else f"{_MARK}_{number}" if code.strip() else "")
    return "\n".join(lines)


def of_the_host(text: str) -> list[tuple[str, int]]:
    """Tokens, each with its line, of preprocessed text without the functions that are for the device."""
    kept, at = [], 0
    for block in sorted((b for b in blocks(without_noise(text)) if b.on_device), key=lambda b: b.start):
        kept += [text[at : block.start], re.sub(r"[^\n]", " ", text[max(at, block.start) : block.end])]
        at = max(at, block.end)
    lines = "".join([*kept, text[at:]]).split("\n")
    return [(token, number) for number, line in enumerate(lines, 1) for token in re.findall(r"\w+|\S", line)]


def first_difference(one: list[tuple[str, int]], other: list[tuple[str, int]]) -> int | None:
    """The line of the first token that only one of the texts has; `None` if they are the same."""
    for (token, line), (beside, there) in zip(one, other, strict=False):
        if token != beside:
            return min(line, there)
    longer = max(one, other, key=len)
    return longer[min(len(one), len(other))][1] if len(one) != len(other) else None
