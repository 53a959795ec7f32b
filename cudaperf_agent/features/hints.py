"""Hints: for each low feature the line, the cause and what usually helps, most valuable first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cudaperf_agent.features.assemble import block_score, stride_score
from cudaperf_agent.features.extended import MACHINE, bank_conflict
from cudaperf_agent.features.model import Access, Evidence, Features


@dataclass(frozen=True, slots=True)
class Hint:
    """One piece of advice.

    Attributes:
        feature: One of the eleven, or of the extended set.
        line: 1-based line of the source, `None` if it is about the whole.
        message: One or two sentences: the line, the cause, what usually helps.
    """

    feature: str
    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class HintValues:
    """How much a flaw is usually worth, as a number that only orders hints [ours].

    Attributes:
        copy_in_loop, copy: A host-device copy inside a host loop, and one outside.
        coalescing: The whole weight of global accesses at the worst score.
        atomic_same, atomic_global, atomic_shared: An atomic inside a loop on one address, on global, on shared memory.
        outside_loop: Factor for an atomic outside of loops.
        block_bad, block_large: A block that scores −0.5, and one above 512 threads.
        branch_deep, branch_loop, branch: A divergent branch two loops deep, in one loop, outside.
        short: Factor for a branch that a compiler turns into a select.
        conflict: The worst bank conflict.
        fill: A grid of a single block.
        launch_in_loop: A launch inside a host loop.
        sync_in_loop: A barrier inside a loop.
        reuse: A value that every thread of a warp loads again and again.
        spill: Registers spilled to memory.
        least: Hints worth less are left out.
        most: Hints kept.
    """

    copy_in_loop: float = 100.0
    copy: float = 4.0
    coalescing: float = 90.0
    atomic_same: float = 70.0
    atomic_global: float = 40.0
    atomic_shared: float = 12.0
    outside_loop: float = 0.4
    block_bad: float = 45.0
    block_large: float = 18.0
    branch_deep: float = 34.0
    branch_loop: float = 22.0
    branch: float = 5.0
    short: float = 0.25
    conflict: float = 30.0
    fill: float = 50.0
    launch_in_loop: float = 14.0
    sync_in_loop: float = 7.0
    reuse: float = 9.0
    spill: float = 20.0
    least: float = 2.0
    most: int = 6


VALUES = HintValues()


@dataclass(frozen=True, slots=True)
class _Weighed:
    value: float
    hint: Hint


def hints(features: Features, values: HintValues = VALUES) -> tuple[Hint, ...]:
    """Advice on one candidate, most valuable first, one per feature and line."""
    found = [
        *_accesses(features, values),
        *_copies(features, values),
        *_atomics(features, values),
        *_launches(features, values),
        *_branches(features, values),
        *_barriers(features, values),
        *_conflicts(features, values),
        *_spills(features, values),
    ]
    found.sort(key=lambda w: -w.value)
    kept: dict[tuple[str, int | None], Hint] = {}
    for weighed in found:
        if weighed.value >= values.least:
            kept.setdefault((weighed.hint.feature, weighed.hint.line), weighed.hint)
    return tuple(kept.values())[: values.most]


def _accesses(features: Features, values: HintValues) -> Iterator[_Weighed]:
    outside = [a for a in features.accesses if a.space == "global"]
    total = sum(a.weight for a in outside) or 1
    lines: dict[tuple[int, str], list[Access]] = {}
    for access in outside:
        lines.setdefault((access.line, access.stride_text), []).append(access)
    for (line, _), group in lines.items():
        access = group[0]
        weight = sum(a.weight for a in group)
        loss = 1.0 - stride_score(access.stride)
        if access.stride == 1:
            continue
        if access.stride == 0:
            if access.depth and not access.store:
                yield _Weighed(values.reuse * weight / total, Hint("coal", line, _broadcast_text(access)))
            continue
        yield _Weighed(values.coalescing * weight / total * loss / 1.5, Hint("coal", line, _stride_text(access)))


def _broadcast_text(access: Access) -> str:
    return (
        f"All threads of a warp load the same `{access.text}` in a loop. "
        "Load a tile once into shared memory, or keep it in a register, and reuse it."
    )


def _stride_text(access: Access) -> str:
    what = "writes" if access.store else "reads"
    head = f"`{access.text}` {what} global memory"
    if access.stride_text == "indirect":
        return (
            f"{head} through an index that is itself loaded, so that neighbouring threads touch scattered addresses. "
            "Sort or group the indices, or stage the data in shared memory first."
        )
    if access.stride is None:
        stride = "an unknown stride" if access.stride_text == "unknown" else f"stride {access.stride_text}"
        return (
            f"{head} with {stride} between neighbouring threads, so that a warp needs up to 32 transactions. "
            "Let threadIdx.x run along the contiguous index (`a[i*ld + threadIdx.x]`, not `a[threadIdx.x*ld + i]`), "
            "or go through a tile in shared memory."
        )
    if access.stride <= 4 and not access.vector:
        return (
            f"{head} with stride {access.stride} between neighbouring threads: only 1/{access.stride} of each "
            "transaction is used. Use one array per component, vector loads (float2, float4), or neighbouring elements."
        )
    return (
        f"{head} with stride {access.stride} between neighbouring threads, so each needs its own transaction. "
        "Let threadIdx.x run along the contiguous index, or go through a tile in shared memory."
    )


def _copies(features: Features, values: HintValues) -> Iterator[_Weighed]:
    for item in _of(features, "xfer"):
        if item.weight > 1:
            remedy = (
                "Swap the two pointers between launches instead of copying from device to device."
                if "DeviceToDevice" in item.detail
                else "Hoist this copy out of the loop and keep the data on the device between launches."
            )
            message = f"`{_name(item)}` runs inside a host loop. {remedy}"
            yield _Weighed(values.copy_in_loop, Hint("xfer", item.line, message))
        else:
            message = (
                f"`{_name(item)}` copies in the timed path. "
                "Work on the device pointers directly, or overlap the copy with computing."
            )
            yield _Weighed(values.copy, Hint("xfer", item.line, message))


def _atomics(features: Features, values: HintValues) -> Iterator[_Weighed]:
    for item in _of(features, "atomics"):
        shared = "shared" in item.detail
        same = "one address" in item.detail
        value = values.atomic_shared if shared else values.atomic_same if same else values.atomic_global
        value *= 1.0 if item.weight > 1 else values.outside_loop
        where = "inside a loop " if item.weight > 1 else ""
        if same:
            message = (
                f"`{_name(item)}` {where}makes all threads queue for one address. "
                "Reduce within the warp (`__shfl_down_sync`) and the block first, then one atomic per block."
            )
        else:
            message = (
                f"`{_name(item)}` {where}serialises threads that hit the same address. "
                "Collect in registers or in a private copy in shared memory first, then add once per block."
            )
        yield _Weighed(value, Hint("atomics", item.line, message))


def _launches(features: Features, values: HintValues) -> Iterator[_Weighed]:
    for site in features.launches:
        threads = site.threads
        if threads is not None:
            rating = block_score(threads)
            if rating < 0:
                cause = (
                    f"A block of {threads} is no multiple of the warp of 32, so that lanes stay idle"
                    if threads % 32
                    else f"A block of {threads} is above the limit of 1024"
                    if threads > 1024
                    else f"A block of {threads} is too small to hide latency"
                )
                message = f"{cause[0].upper()}{cause[1:]}. Use 128 or 256 threads per block."
                yield _Weighed(values.block_bad, Hint("occ", site.line, message))
            elif threads > 512:
                message = (
                    f"A block of {threads} leaves room for few blocks on a multiprocessor. "
                    "Use 128 or 256 threads per block, and more blocks."
                )
                yield _Weighed(values.block_large, Hint("occ", site.line, message))
        blocks = site.blocks
        if blocks is not None and blocks < MACHINE.multiprocessors:
            message = (
                f"A grid of {blocks} block{'s' if blocks > 1 else ''} leaves most of the "
                f"{MACHINE.multiprocessors} multiprocessors idle. Let the grid grow with the input."
            )
            share = 1.0 - blocks / MACHINE.multiprocessors
            alone = all(other.blocks is not None and other.blocks <= blocks for other in features.launches)
            part = (1.0 if blocks == 1 else 0.3) * (1.0 if alone else 0.1)
            yield _Weighed(values.fill * share * part, Hint("grid_fill", site.line, message))
        if site.in_loop:
            message = (
                f"`{site.kernel}` is launched inside a host loop; every launch costs microseconds. "
                "Move the loop into the kernel, fuse steps, or capture them in a CUDA graph."
            )
            yield _Weighed(values.launch_in_loop, Hint("kernels", site.line, message))


def _branches(features: Features, values: HintValues) -> Iterator[_Weighed]:
    for item in _of(features, "div"):
        value = values.branch_deep if item.weight >= 100 else values.branch_loop if item.weight > 1 else values.branch
        value *= values.short if "short" in item.detail else 1.0
        short = item.text.split("{")[0].strip()[:60]
        if "length" in item.detail:
            message = (
                f"The loop `{short}` runs for a different time in each thread, and a warp waits for "
                "its slowest. Balance the work, e.g. one warp per row, or sort by length."
            )
        else:
            message = (
                f"`{short}` splits the threads of a warp{' in a loop' if item.weight > 1 else ''}. "
                "Make the condition uniform per warp, compute both sides without a branch, or peel the border off."
            )
        yield _Weighed(value, Hint("div", item.line, message))


def _barriers(features: Features, values: HintValues) -> Iterator[_Weighed]:
    for item in _of(features, "sync"):
        if item.weight > 1:
            message = (
                f"`{_name(item)}` is a barrier in every round of a loop. "
                "Do more work per barrier (larger tiles, several elements per thread), or use warp shuffles."
            )
            scale = 2.0 if item.weight >= 100 else 1.0
            yield _Weighed(values.sync_in_loop * scale, Hint("sync", item.line, message))


def _conflicts(features: Features, values: HintValues) -> Iterator[_Weighed]:
    width = {site.kernel: site.block[0] for site in features.launches}
    for access in features.accesses:
        if access.space != "shared":
            continue
        ways = bank_conflict(access, width.get(access.kernel))
        if ways is not None and ways > 1:
            message = (
                f"`{access.text}` hits one bank of shared memory from {ways} threads at once. "
                "Pad the row by one element (`tile[32][33]`) or swap the indices."
            )
            share = (ways.bit_length() - 1) / 5
            yield _Weighed(values.conflict * share, Hint("bank_conflict", access.line, message))


def _spills(features: Features, values: HintValues) -> Iterator[_Weighed]:
    spilled = features.extended.get("spill_bytes") or 0.0
    if spilled > 0:
        message = (
            f"{spilled:.0f} bytes per thread are spilled from registers to memory. "
            "Use smaller local arrays, less unrolling, or `__launch_bounds__`."
        )
        yield _Weighed(values.spill, Hint("spill_bytes", None, message))


def _of(features: Features, name: str) -> Iterator[Evidence]:
    return (e for e in features.evidence if e.feature == name)


def _name(item: Evidence) -> str:
    return item.text.split("(")[0].strip() or item.detail
