"""How many warps of a kernel a multiprocessor can hold at once, by registers, shared memory, threads and blocks.

After the rules of NVIDIA's occupancy calculator (CUDA C++ Programming Guide, "Occupancy Calculator").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32
_REGISTER_UNIT = 256  # registers are given out to a warp in such units
_SHARED_UNIT = 128


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Share of the warps that fit, and what limits it: ``threads``, ``blocks``, ``registers`` or ``shared memory``."""

    share: float
    limit: str


def theoretical_occupancy(block: int, registers: int, shared_bytes: int, limits: Mapping[str, int]) -> Occupancy | None:
    """Of blocks of `block` threads.

    Args:
        block: Threads of a block.
        registers: Of a thread.
        shared_bytes: Of a block, static and dynamic.
        limits: `Gpu.attributes`: ``threads_per_sm``, ``blocks_per_sm``, ``registers_per_sm``, ``shared_per_sm`` and
            ``shared_reserved`` (bytes of each block that the system takes).

    Returns:
        `None` where the device does not say its limits, or the block cannot run at all.
    """
    if block <= 0 or not all(limits.get(n) for n in ("threads_per_sm", "blocks_per_sm", "registers_per_sm")):
        return None
    warps = -(-block // WARP)
    most_warps = limits["threads_per_sm"] // WARP
    blocks = {"threads": most_warps // warps, "blocks": limits["blocks_per_sm"]}
    if registers > 0:
        per_warp = -(-registers * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        # A multiprocessor has four parts, each with registers and warps of its own.
        blocks["registers"] = limits["registers_per_sm"] // 4 // per_warp * 4 // warps
    shared = -(-(shared_bytes + limits.get("shared_reserved", 0)) // _SHARED_UNIT) * _SHARED_UNIT
    if shared_bytes > 0 and limits.get("shared_per_sm"):
        blocks["shared memory"] = limits["shared_per_sm"] // shared
    limit = min(blocks, key=lambda name: blocks[name])
    return Occupancy(blocks[limit] * warps / most_warps, limit) if blocks[limit] > 0 else None
