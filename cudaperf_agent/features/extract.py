"""The one way in: source text to φ(y) with evidence; never raises on a bad source, never runs long."""

from __future__ import annotations

import atexit
import re
from dataclasses import replace
from functools import lru_cache

from cudaperf_agent.features.model import LIMITS, ORDER, Features, Gap, Limits
from cudaperf_agent.features.worker import Worker

_OUTSIDE_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(_next)?[ \t]*["<][ \t]*(/|[^">\n]*\.\.)[^\n]*', re.MULTILINE)
_PIECE_END = re.compile(r"[;{},]|(?<!\\)\n(?=\s*#)")


def extract(source: str, *, ptxas: str | None = None, entry: str | None = None) -> Features:
    """φ(y) of a candidate, parsed in a child process that a bad source cannot take us down with.

    Args:
        source: CUDA, or Python that holds CUDA in strings. Lines in the result are of this text.
        ptxas: What ``ptxas -v`` printed about it, for the extended set.
        entry: The entry's name, if known; else it is found.

    Returns:
        The features; a source that does not parse gives what could be told, with gaps that name what is missing.

    Raises:
        BackendUnavailable: The child cannot be started: the installation is broken, not the source.
    """
    refused = too_complex(source)
    if refused:
        return nothing(refused)
    answer = _worker().ask({"source": source, "ptxas": ptxas, "entry": entry})
    return nothing(answer.reason) if answer.features is None else Features.from_dict(answer.features)


@lru_cache(maxsize=1)
def _worker() -> Worker:
    worker = Worker()
    atexit.register(worker.close)
    return worker


def too_complex(source: str, limits: Limits = LIMITS) -> str:
    """Why a source is not handed to the parser at all, ``""`` if it is."""
    if len(source) > limits.source_bytes:
        return f"longer than {limits.source_bytes} characters"
    longest = max((len(part) for part in _PIECE_END.split(source)), default=0)
    if longest > limits.statement_bytes:
        return f"one expression is longer than {limits.statement_bytes} characters"
    return ""


def nothing(reason: str) -> Features:
    """Features of a source of which nothing could be told."""
    return Features(dict.fromkeys(ORDER, 0.0), gaps=(Gap(ORDER, reason),))


def extract_here(
    source: str, *, ptxas: str | None = None, entry: str | None = None, limits: Limits = LIMITS
) -> Features:
    """`extract` within this process: no start-up, but a source that crashes the parser crashes the caller."""
    from cudaperf_agent.features.analysis import analyse
    from cudaperf_agent.features.ptxas import parse_ptxas
    from cudaperf_agent.features.pysource import embedded_cuda, is_python

    refused = too_complex(source, limits)
    if refused:
        return nothing(refused)
    resources = parse_ptxas(ptxas) if ptxas else ()
    source = source.replace("\0", " ")
    outside = [source.count("\n", 0, m.start()) + 1 for m in _OUTSIDE_INCLUDE.finditer(source)]
    if outside:
        source = _OUTSIDE_INCLUDE.sub("", source)
        found = extract_here(source, ptxas=ptxas, entry=entry, limits=limits)
        gaps = tuple(Gap(ORDER, "an #include of a path outside of the source is not followed", n) for n in outside)
        return replace(found, gaps=gaps + found.gaps)
    if not is_python(source):
        return analyse(source, entries=_entries(entry), resources=resources, limits=limits)
    embedded = embedded_cuda(source)
    if embedded is None:
        return nothing("the Python around the CUDA does not parse")
    found = analyse(embedded.text, entries=_entries(entry) or embedded.entries, resources=resources, limits=limits)
    gaps = tuple(Gap(ORDER, "CUDA in an f-string is not read", line) for line in embedded.gaps)
    if not embedded.text.strip():
        gaps += (Gap(ORDER, "no CUDA in the strings of this Python source"),)
    return replace(found, gaps=gaps + found.gaps)


def _entries(entry: str | None) -> tuple[str, ...]:
    return (f"{entry}_device", entry) if entry else ()
