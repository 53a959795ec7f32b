"""What a candidate may not do, whatever its output: reach for the harness, use no GPU, or use one thread of it.

Three checks. `screen` reads the source for names that a translation has no use for and that only serve to look into, or
talk to, the process around it, and `screen_linked` takes what the linker saw of them; they are a fence, not a proof.
`unlaunched` and `grows` look at what was launched. The third, suppressing each kernel in turn, is `Verifier`'s, since
it runs the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cudaperf_agent.codegen.forms import without_noise
from cudaperf_agent.cuda.host_assembly import host_assembly
from cudaperf_agent.cuda.reach import CALLS, may, refused

_REACHES = {
    **CALLS,
    r"cudaperf_\w+": "a name of the test harness",
    r"__tsan_\w+|__asan_\w+|__sanitizer_\w+": "a hook of the memory checker",
    r"cuptiSubscribe|cuptiActivity\w*": "the clock or the profiler",
}
# `name(` that is no member access and no declaration of a method, and `(name)(` that is no argument: the same call.
_NAMED = r"(?:::\s*)?(?:std\s*::\s*)?({names})"
_CALLED = [
    (re.compile(pattern.replace("{names}", names)), why)
    for names, why in _REACHES.items()
    for pattern in (
        rf"(?<![\w.>:]){_NAMED}\s*\(",
        rf"\([&*(\s]{{0,9}}{_NAMED}[)\s]{{0,9}}\)\s{{0,9}}\(",
    )
]
_BEFORE = frozenset(("", "return", "else", "do", "case", "throw"))
_ALWAYS = re.compile(
    r"\b(cudaperf_\w+|__(?:tsan|asan|ubsan|sanitizer|wrap|real)_\w+|__SANITIZE_\w+|(?:__)?no_sanitize\w*"
    r"|LD_PRELOAD|ucontext_t)\b"
)
_EMULATORS = re.compile(r"\b((?:emu|EMU)_\w+)\b")
_THREADS = re.compile(r"\bstd\s*::\s*(thread|jthread|async)\b")
_ASM_HOST = re.compile(r"\b(?:__asm__|asm)\b[^;]*\bsyscall\b")
_PROC = re.compile(r'(?:"|R"[^\s()\\]{0,16}\()/(?:proc|dev/shm)/[^"\n]*"')


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a candidate is declined, with the line where one is to blame."""

    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class GrowthRule:
    """When launches count as ones that use the GPU.

    Attributes:
        wide: Threads of one launch that are plenty whatever the input is (a grid sized to the device).
        elements: A case needs this many elements in its largest buffer to be judged by.
        fixed: Threads of one launch that are enough for a task whose sizes are all constants, or have declared ends so
            low that no buffer has more than `wide` elements.
        probes: Values that each size takes in turn, the others staying small, if the tests do not show growth.
        probe_elements: Most elements of the largest buffer of a probe; 2,500 rows of a square matrix fit.
        idle_share: A kernel that never has 1/`idle_share` of the threads of the widest launch of all may be idle.
        probe_seconds: Time of all probes together; what did not come back by then is not judged.
        idle_probes: Probes at most on which a kernel that looks idle is tried again.
    """

    wide: int = 2048
    elements: int = 512
    fixed: int = 32
    probes: tuple[int, ...] = (300, 600, 1100, 2500, 10_000, 65_536)
    probe_elements: int = 1 << 23
    idle_share: int = 8
    probe_seconds: float = 3.0
    idle_probes: int = 4


GROWTH = GrowthRule()


@dataclass(frozen=True, slots=True)
class CaseLaunches:
    """What one case launched.

    Attributes:
        elements: In the largest buffer of the case.
        launches: Kernel launches.
        threads: Of the widest launch.
        written: Whether the case has any output to write.
    """

    elements: int
    launches: int
    threads: int
    written: bool = True


def screen(source: str, *, program: bool = False, replaced: bool = False) -> Finding | None:
    """The first name in the source that reaches out of the computation, `None` if there is none.

    Args:
        source: The candidate.
        program: It is a whole program.
        replaced: Its macros are replaced, so that assembly for the host can be told from that for the device.
    """
    code = without_noise(source)
    found: list[Finding] = []
    # Written out, the emulator's names are what it does not support; pasted together they would pass there.
    own = (*_ALWAYS.finditer(code), *(_EMULATORS.finditer(code) if replaced else ()))
    for match in own:
        found.append(_finding(code, match.start(), match.group(1), "a name of the test harness or its checker"))
    for pattern, why in _CALLED:
        for match in pattern.finditer(code):
            called = match.group()[0] != "(" or _begins(code, match.start())
            if called and not may(match.group(1), program=program):
                found.append(_finding(code, match.start(1), match.group(1), why))
    for match in _THREADS.finditer(code):
        found.append(_finding(code, match.start(), f"std::{match.group(1)}", "threads of the host"))
    for match in (*_PROC.finditer(source), *_ASM_HOST.finditer(source)):
        if match.re is _PROC or not code[match.start() : match.end()].isspace():
            found.append(_finding(source, match.start(), match.group()[:40], "the process around it"))
    for at in host_assembly(source, code) if replaced else ():
        found.append(_finding(code, at, "asm", "assembly and names of the linker's for the host"))
    return min(found, key=lambda f: f.line or 0) if found else None


def _begins(code: str, at: int) -> bool:
    """Whether a parenthesis begins an expression, rather than arguments or a condition."""
    while at and code[at - 1].isspace():
        at -= 1
    word = re.search(r"(\w*)\Z", code[max(0, at - 8) : at])
    return code[at - 1 : at] not in (")", "]", ">") and (word is None or word[1] in _BEFORE)


def screen_linked(source: str, reached: Sequence[str], *, program: bool = False) -> Finding | None:
    """The same by what the linker saw (`reach.traced`), with a line where the text has the name at all."""
    found = refused(reached, program=program)
    if found is None:
        return None
    name, why = found
    named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", without_noise(source))
    if named is not None:
        return _finding(source, named.start(), name, why)
    return Finding(f"a translation has no use for `{name}` ({why}), which it reaches under another name")


def _finding(code: str, at: int, name: str, why: str) -> Finding:
    line = code.count("\n", 0, at) + 1
    return Finding(f"a translation has no use for `{name}` ({why})", line)


def unlaunched(cases: Sequence[CaseLaunches]) -> Finding | None:
    """Whether anything is launched at all, and for the largest case in particular."""
    judged = sorted((c for c in cases if c.written and c.elements > 0), key=lambda c: c.elements)
    if judged and all(c.launches == 0 for c in judged):
        return Finding("no kernel is launched: the result is computed on the CPU or not at all")
    if judged and judged[-1].launches == 0:
        return Finding("no kernel is launched for the largest case: the result is computed on the CPU")
    return None


def grows(cases: Sequence[CaseLaunches], rule: GrowthRule = GROWTH) -> bool:
    """Whether the widest launch is wider for some inputs than for others, or wide whatever the input is.

    True too where no case has more elements than threads, since then nothing can be told.
    """
    judged = [c for c in cases if c.written and c.elements > 0 and c.launches > 0]
    widest = max((c.threads for c in judged), default=0)
    if widest >= rule.wide or any(c.threads < widest for c in judged):
        return True
    largest = max((c.elements for c in judged), default=0)
    return largest < rule.elements or widest >= largest


def narrow(cases: Sequence[CaseLaunches]) -> Finding:
    """What is said of a candidate whose launches do not grow."""
    widest = max((c.threads for c in cases), default=0)
    threads = "a single thread" if widest == 1 else f"{widest} threads"
    return Finding(
        f"every case is computed by {threads}, however large the input is: "
        "spread the work over blocks whose number grows with it"
    )
