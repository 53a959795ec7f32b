"""Who does the work of a kernel: threads, warps or blocks for rows, and tiles of matrix products."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cudaperf_agent.codegen.modules.evaluate import Evaluator, Scope
from cudaperf_agent.codegen.modules.kernels import TILES, Style, Thresholds
from cudaperf_agent.codegen.modules.sizes import ONE, evaluated, step_of
from cudaperf_agent.codegen.modules.tensors import Buffer, Contraction, Index, Program, Reduce


def worker_of(
    reduce: Reduce,
    rows: Index,
    inner: Index,
    style: Style,
    program: Program,
    written: Mapping[int, Buffer],
    limits: Thresholds,
) -> str:
    """Who handles a row: by its length in the example, and by which of its reads are neighbours'."""
    if style.worker != "auto":
        return style.worker
    hints = program.hints
    length = evaluated(reduce.length, hints)
    if length <= limits.short_row or reduce.length == ONE:
        return "thread"
    evaluator = Evaluator(program.main, written)
    evaluator.missing = lambda *_: "0"
    index = (*rows, *inner)
    evaluator.value(reduce.source, index, Scope(variables=frozenset(v for e in index for v in e.variables)))
    shared, alone = (_scattered(evaluator, index, part) for part in (inner, rows))
    if alone < shared and evaluated(reduce.count, hints) >= limits.few_rows * 8:
        return "thread"
    many = evaluated(reduce.count, hints) >= limits.many_rows
    return "warp" if length <= (limits.warp_row_many if many else limits.warp_row) else "block"


def threads_of(reduce: Reduce, worker: str, style: Style, program: Program, limits: Thresholds) -> int:
    """Threads per block of a kernel over rows."""
    length, block = evaluated(reduce.length, program.hints), style.block
    if worker != "block" or style.worker == "block":
        return block
    if length <= limits.narrow_row:
        return min(block, 128)
    if length < limits.wide_row:
        return block
    return max(block, 1024 if length >= limits.widest_row else 512)


def tiles_of(
    reduce: Contraction, largest: tuple[int, int, int, int], program: Program, limits: Thresholds
) -> tuple[tuple[int, int, int, int], ...]:
    """The largest tile that gives a GPU enough blocks for the example's sizes, and the smallest for others."""
    *batch, rows, columns = (evaluated(n, program.hints) for n in reduce.shape)
    fitting = [t for t in TILES if t[0] * t[1] <= largest[0] * largest[1]]
    for tile in fitting[:-1]:
        if math.prod(batch) * -(-rows // tile[0]) * -(-columns // tile[1]) >= limits.enough_blocks:
            return (tile, TILES[-1])
    return (TILES[-1],) if len(fitting) == 1 else (fitting[-2], TILES[-1])


def _scattered(evaluator: Evaluator, index: Index, part: Index) -> int:
    """How many reads are far apart for neighbours in the last variable of `part`, which is a part of `index`."""
    last = next((v for e in reversed(part) for v in e.variables), None)
    if last is None:
        return 0
    loops = frozenset(v for e in index for v in e.variables)
    found = 0
    for _, address in evaluator.addresses:
        step = step_of(address, last)
        looked_up = bool(address.variables - loops)
        found += step != 1 and (step != 0 or looked_up)
    return found
