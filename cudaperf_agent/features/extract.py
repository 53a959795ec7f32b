"""The one way in: source text to φ(y) with evidence; never raises on a bad source, never runs long."""

from __future__ import annotations

from cudaperf_agent.features.assemble import assemble, launch_of
from cudaperf_agent.features.clang_cuda import SourceTooComplex, Unit
from cudaperf_agent.features.expressions import Budget
from cudaperf_agent.features.functions import Definitions
from cudaperf_agent.features.model import LIMITS, ORDER, Features, Gap, Launch, Limits
from cudaperf_agent.features.reach import (
    KernelUse,
    find_entries,
    merge_launches,
    sort_functions,
    walk_host,
    walk_kernel,
)
from cudaperf_agent.features.recorder import Recorder


def extract_cuda(source: str, *, entry: str | None = None, limits: Limits = LIMITS) -> Features:
    """φ(y) of CUDA text, in this process."""
    gaps: list[Gap] = []
    flags: list[str] = []
    host = Recorder()
    kernels: list[Recorder] = []
    launches: list[Launch] = []
    budget = Budget(limits)
    try:
        unit = Unit(source, limits)
        for message, line in unit.errors:
            gaps.append(Gap(ORDER, f"does not parse: {message}", line or None))
        definitions = Definitions()
        functions = sort_functions(unit)
        names = (entry, f"{entry}_device") if entry else ()
        entries = find_entries(functions, names)
        host = walk_host(entries, definitions, budget)
        launches = [launch_of(site) for site in host.launches]
        uses = merge_launches(host.launches, definitions)
        if not functions.host and functions.kernels:
            flags.append("no host code: all kernels count")
            found = [definitions.of(k) for k in functions.kernels]
            nothing = (None, None, None)
            uses = tuple(KernelUse(d, nothing, nothing, (None,) * len(d.parameters)) for d in found if d is not None)
            gaps.append(Gap(("occ", "kernels", "tpb"), "no launch in the source"))
        elif not launches:
            gaps.append(Gap(ORDER, "no launch is reachable from the entry"))
        for use in uses:
            kernels.append(walk_kernel(use, definitions, budget))
    except SourceTooComplex as stop:
        gaps.append(Gap(ORDER, f"not read to the end: {stop}"))
    except RecursionError:
        gaps.append(Gap(ORDER, "not read to the end: nested too deeply"))
    gaps += [g for r in (host, *kernels) for g in r.gaps]
    return assemble(host, kernels, launches, gaps, flags)


def extract(source: str, *, ptxas: str | None = None, entry: str | None = None, limits: Limits = LIMITS) -> Features:
    """φ(y) of a candidate.

    Args:
        source: CUDA, or Python that holds CUDA in strings. Lines in the result are of this text.
        ptxas: What ``ptxas -v`` printed about it, for the extended set.
        entry: The entry's name, if known; else it is found.
        limits: Bounds on time and size.

    Returns:
        The features; a source that does not parse gives what could be told, with gaps that name what is missing.
    """
    return extract_cuda(source, entry=entry, limits=limits)
