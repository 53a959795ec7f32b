"""The extended set, beside the paper's eleven, never mixed into them: what the paper's review found missing [ours]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cudaperf_agent.features.model import Access, Features
from cudaperf_agent.features.ptxas import KernelResources

EXTENDED_ORDER = (
    "bank_conflict", "vector_loads", "load_reuse", "tensor_ops", "stride_bytes", "access_width",
    "grid_fill", "registers", "shared_bytes", "spill_bytes",
)  # fmt: skip
"""Order of the extended set."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The device that grid fill and bank conflicts are judged by.

    Attributes:
        multiprocessors: Of an H200.
        banks: Shared-memory banks.
        bank_bytes: Bytes of one bank per cycle.
        warp: Threads of a warp.
    """

    multiprocessors: int = 132
    banks: int = 32
    bank_bytes: int = 4
    warp: int = 32


MACHINE = Machine()


def bank_conflict(access: Access, block_x: int | None, machine: Machine = MACHINE) -> int | None:
    """Into how many passes the banks split one shared access of a warp: 1 is free of conflicts, 32 the worst.

    A stride of zero is a broadcast. Where a block is narrower than a warp, its rows that fall on the same banks add up.
    """
    if access.stride_bytes is None:
        return None
    lanes = machine.warp if block_x is None else min(machine.warp, block_x)
    rows = machine.warp // lanes if lanes and access.warp_rows is not None else 1
    words: dict[int, set[int]] = {}
    for lane in range(lanes):
        for row in range(rows):
            word = (lane * access.stride_bytes + row * (access.warp_rows or 0)) // machine.bank_bytes
            words.setdefault(word % machine.banks, set()).add(word)
    worst = max((len(w) for w in words.values()), default=1)
    wide = max(1, access.width // machine.bank_bytes)
    return max(1, worst // wide) if wide > 1 and access.stride_bytes == access.width else worst


def extended(
    features: Features, tensor: int, resources: Sequence[KernelResources], machine: Machine = MACHINE
) -> dict[str, float | None]:
    """The extended set by name; `None` where it cannot be told.

    Args:
        features: The eleven with accesses and launches.
        tensor: Weighted matrix operations of tensor cores.
        resources: What ``ptxas -v`` told, may be empty.
        machine: The device.
    """
    shared = [a for a in features.accesses if a.space == "shared"]
    outside = [a for a in features.accesses if a.space == "global"]
    loads = [a for a in outside if not a.store]
    width_of = {site.kernel: site.block[0] for site in features.launches}
    conflicts = [(a.weight, bank_conflict(a, width_of.get(a.kernel), machine)) for a in shared]
    known = [(w, float(c)) for w, c in conflicts if c is not None]
    strides = [(a.weight, float(a.stride_bytes)) for a in outside if a.stride_bytes is not None]
    distinct = {(a.kernel, a.root, a.address) for a in loads}
    blocks = [site.blocks for site in features.launches]
    fills = [min(1.0, b / machine.multiprocessors) for b in blocks if b is not None]
    return {
        "bank_conflict": _mean(known) if shared else 1.0,
        "vector_loads": _mean([(a.weight, float(a.vector)) for a in loads]),
        "load_reuse": len(loads) / len(distinct) if distinct else None,
        "tensor_ops": float(tensor),
        "stride_bytes": _mean(strides),
        "access_width": _mean([(a.weight, float(a.width)) for a in outside]),
        "grid_fill": min(fills) if fills else None,
        "registers": float(max(r.registers for r in resources)) if resources else None,
        "shared_bytes": float(max(r.shared for r in resources)) if resources else None,
        "spill_bytes": float(max(r.spill_stores + r.spill_loads for r in resources)) if resources else None,
    }


def difference(features: Features, naive: Features) -> dict[str, float]:
    """φ(y) − φ(naive), by name."""
    return {name: features[name] - naive[name] for name in features.values}


def _mean(weighted: Sequence[tuple[float, float]]) -> float | None:
    total = sum(w for w, _ in weighted)
    return sum(w * v for w, v in weighted) / total if total else None
