"""From what was met to the eleven numbers: the definitions of φ(y), each in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cudaperf_agent.features.model import ORDER, Access, Evidence, Features, Gap, Launch
from cudaperf_agent.features.recorder import LaunchSite, Recorder


@dataclass(frozen=True, slots=True)
class Scores:
    """The tables of the method.

    Attributes:
        strides: Score of a global access by stride in elements; 1, 2, 4 and 0 stated by the paper, 3 ours.
        far: Score of a stride above 4 (stated), indirect or unknown (ours).
        block_best, block_fair, block_large, block_bad: Scores of threads per block; the first two stated, others ours.
        best, fair, large: Inclusive ranges of threads per block that they hold for.
        warp: A block that is no multiple of it scores `block_bad`.
    """

    strides: tuple[tuple[int, float], ...] = ((0, 0.2), (1, 1.0), (2, 0.4), (3, 0.1), (4, 0.1))
    far: float = -0.5
    block_best: float = 1.0
    block_fair: float = 0.4
    block_large: float = 0.1
    block_bad: float = -0.5
    best: tuple[int, int] = (128, 256)
    fair: tuple[int, int] = (64, 512)
    large: tuple[int, int] = (513, 1024)
    warp: int = 32


SCORES = Scores()


def stride_score(stride: int | None, scores: Scores = SCORES) -> float:
    """Score of one global access by its stride in elements, `None` for indirect or unknown."""
    return scores.far if stride is None else dict(scores.strides).get(stride, scores.far)


def block_score(threads: int | None, scores: Scores = SCORES) -> float:
    """Score of one launch by its threads per block, `None` if only known at run time."""
    if threads is None:
        return 0.0
    if threads % scores.warp or threads <= 0:
        return scores.block_bad
    if scores.best[0] <= threads <= scores.best[1]:
        return scores.block_best
    if scores.fair[0] <= threads <= scores.fair[1]:
        return scores.block_fair
    if scores.large[0] <= threads <= scores.large[1]:
        return scores.block_large
    return scores.block_bad


def launch_of(site: LaunchSite) -> Launch:
    """A launch site as a plain value."""
    place = site.node.place()
    return Launch(site.kernel.spelling, place.line, place.column, place.text, site.block, site.grid, site.in_loop)


def assemble(
    host: Recorder, kernels: Sequence[Recorder], launches: Sequence[Launch], gaps: Sequence[Gap], flags: Sequence[str]
) -> Features:
    """φ(y) from the walk over host code and those over the kernels."""
    remarks = list(flags)
    accesses = tuple(a for k in kernels for a in k.accesses)
    outside = [a for a in accesses if a.space == "global"]
    evidence = [*host.evidence, *(e for k in kernels for e in k.evidence), *map(_access_evidence, outside)]
    evidence += [e for site in launches for e in _launch_evidence(site)]
    operations = 0
    for kernel in kernels:
        for (line, column), count in sorted(kernel.operations.items()):
            operations += count
            evidence.append(Evidence("ops", line, column, "", 1.0, float(count), "weighted operations", kernel.kernel))
    weight = sum(a.weight for a in outside)
    moved = sum(a.weight * a.width for a in outside)
    if not outside:
        remarks.append("no global accesses")
    threads = [site.threads for site in launches]
    known = [t for t in threads if t is not None]
    gaps = list(gaps)
    for site in launches:
        if site.threads is None:
            gaps.append(Gap(("occ", "tpb"), f"the block of {site.kernel} is only known at run time", site.line))
    values = {
        "coal": sum(a.weight * stride_score(a.stride) for a in outside) / weight if weight else 0.0,
        "ai": math.log1p(operations / moved) if moved else 0.0,
        "occ": sum(block_score(t) for t in threads) / len(threads) if threads else 0.0,
        "div": _total(evidence, "div"),
        "xfer": _total(evidence, "xfer"),
        "atomics": _total(evidence, "atomics"),
        "sync": _total(evidence, "sync"),
        "kernels": float(len(launches)),
        "tpb": float(max(known, default=0)),
        "gmem": math.log1p(weight),
        "ops": math.log1p(operations),
    }
    evidence.sort(key=lambda e: (e.line, e.column, ORDER.index(e.feature)))
    return Features(
        values=values,
        evidence=tuple(evidence),
        gaps=tuple(gaps),
        flags=tuple(remarks),
        accesses=accesses,
        launches=tuple(launches),
    )


def _total(evidence: Sequence[Evidence], feature: str) -> float:
    return float(sum(e.weight * e.value for e in evidence if e.feature == feature))


def _access_evidence(access: Access) -> Evidence:
    kind = "store" if access.store else "load"
    detail = f"{kind} of {access.width} bytes, stride {access.stride_text}"
    return Evidence(
        "coal",
        access.line,
        access.column,
        access.text,
        access.weight,
        stride_score(access.stride),
        detail,
        access.kernel,
    )


def _launch_evidence(launch: Launch) -> list[Evidence]:
    threads = launch.threads
    detail = f"block of {threads}" if threads is not None else "block only known at run time"
    values = {"occ": block_score(threads), "kernels": 1.0, "tpb": float(threads or 0)}
    return [
        Evidence(name, launch.line, launch.column, launch.text, 1.0, value, detail, launch.kernel)
        for name, value in values.items()
    ]
