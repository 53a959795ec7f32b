"""One CUDA text through parser, host walk and kernel walks to `Features`; what stops on the way becomes a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.features.assemble import assemble, launch_of
from cudaperf_agent.features.clang_cuda import SourceTooComplex, Unit
from cudaperf_agent.features.environment import Budget
from cudaperf_agent.features.extended import extended
from cudaperf_agent.features.functions import Definitions
from cudaperf_agent.features.model import LIMITS, ORDER, Features, Gap, Launch, Limits
from cudaperf_agent.features.ptxas import KernelResources
from cudaperf_agent.features.reach import (
    Functions,
    KernelUse,
    find_entries,
    merge_launches,
    sort_functions,
    walk_host,
    walk_kernel,
)  # fmt: skip
from cudaperf_agent.features.recorder import Recorder

_MOST_ERRORS = 8


def analyse(
    source: str,
    *,
    entries: Sequence[str] = (),
    resources: Sequence[KernelResources] = (),
    limits: Limits = LIMITS,
) -> Features:
    """φ(y) of CUDA text.

    Args:
        source: The text.
        entries: Names of entries, if known; those that the source lacks are passed over.
        resources: What ``ptxas -v`` told.
        limits: Bounds on time and size.
    """
    gaps: list[Gap] = []
    flags: list[str] = []
    host = Recorder()
    kernels: list[Recorder] = []
    launches: list[Launch] = []
    budget = Budget(limits)
    try:
        unit = Unit(source, limits)
        gaps += [Gap(ORDER, f"does not parse: {message}", line or None) for message, line in unit.errors[:_MOST_ERRORS]]
        definitions = Definitions()
        functions = sort_functions(unit)
        host = walk_host(find_entries(functions, entries), definitions, budget)
        launches = [launch_of(site) for site in host.launches]
        uses = merge_launches(host.launches, definitions)
        if not functions.host and functions.kernels:
            flags.append("no host code: all kernels count")
            gaps.append(Gap(("occ", "kernels", "tpb"), "no launch in the source"))
            uses = _all_kernels(functions, definitions)
        elif not launches:
            gaps.append(Gap(ORDER, "no launch is reachable from the entry"))
        for use in uses:
            recorder = Recorder(kernel=use.definition.name)
            kernels.append(recorder)
            walk_kernel(use, recorder, definitions, budget)
    except SourceTooComplex as stop:
        gaps.append(Gap(ORDER, f"not read to the end: {stop}"))
    except RecursionError:
        gaps.append(Gap(ORDER, "not read to the end: nested too deeply"))
    gaps += [g for r in (host, *kernels) for g in r.gaps]
    features = assemble(host, kernels, launches, gaps, flags)
    return replace(features, extended=extended(features, sum(k.tensor for k in kernels), resources))


def _all_kernels(functions: Functions, definitions: Definitions) -> tuple[KernelUse, ...]:
    found = [definitions.of(k) for k in functions.kernels]
    unknown = (None, None, None)
    return tuple(KernelUse(d, unknown, unknown, (None,) * len(d.parameters)) for d in found if d is not None)
