"""Strategies: the choices that turn one plan into different sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to emit a plan.

    Attributes:
        name: Short and stable; the label in reports and data.
        description: One sentence for people.
        block: Threads per block of one-dimensional launches.
        tile: Threads per block of launches over two or more loops: ``(x, y)``.
        restrict: Mark read-only pointers ``__restrict__``, so that loads may go through the read-only cache.
        grid_stride: At most this many blocks per launch over one loop, each thread striding over the rest; 0 for one
            thread per iteration.
        unroll: Factor for counted innermost loops inside threads; 0 leaves it to the compiler.
        rows: ``warp``: one per iteration of a launch over one loop, its lanes sharing the loops inside; empty for one
            thread each.
        tree: Combine the partial results of a reduction within a block by warp shuffles instead of through global
            memory.
        items: Iterations per thread that a reduction aims at.
        tiled: Stage what neighbouring threads share in shared memory, where the nest has a form known for it.
        privatised: Histogram counts are gathered per block in shared memory first.
        needs: What the strategy is about: ``tiled``, ``privatised``, ``rows``, ``tree``, ``stride`` or ``plane`` (a
            launch over two or more loops). Where the plan has no place for it there is no such variant.
    """

    name: str
    description: str
    block: int = 256
    tile: tuple[int, int] = (32, 8)
    restrict: bool = False
    grid_stride: int = 0
    unroll: int = 0
    rows: str = ""
    tree: bool = False
    items: int = 1
    tiled: bool = False
    privatised: bool = False
    needs: str = ""

    @property
    def parameters(self) -> dict[str, int | str]:
        """The numbers of the strategy, for reports."""
        return {
            "block": self.block, "tile_x": self.tile[0], "tile_y": self.tile[1], "unroll": self.unroll,
            "items": self.items, "grid_stride": self.grid_stride,
        }  # fmt: skip


NAIVE = Strategy("naive", "One thread per output, 256 threads a block, global memory only.")
