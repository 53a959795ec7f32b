"""Which tensors are written to memory, and which kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from cudaperf_agent.codegen.modules.evaluate import Evaluator, Scope
from cudaperf_agent.codegen.modules.kernels import (
    TILES,
    Kernel,
    MapKernel,
    PartialKernel,
    RowKernel,
    ScanKernel,
    Schedule,
    Sink,
    Style,
    TileKernel,
    loop_variables,
)
from cudaperf_agent.codegen.modules.sizes import (
    ONE,
    ZERO,
    Expr,
    Size,
    Var,
    as_expr,
    evaluated,
    flattened,
    step_of,
    substituted,
    text_of,
    unflattened,
)
from cudaperf_agent.codegen.modules.tensors import (
    Buffer,
    Contraction,
    Index,
    Lookup,
    Partial,
    Program,
    Reduce,
    Scan,
    Tensor,
    View,
    is_float,
    walk,
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers behind the choices.

    Attributes:
        long_row: A row at least this long may be cut into chunks.
        few_rows: Fewer rows than this may leave a GPU idle with one block each.
        idle_rows: Fewer rows than this do.
        endless_row: A row at least this long is worth being cut even among `few_rows`.
        chunk: Elements of a chunk.
        most_chunks: Per row.
        short_row: Up to this length a thread handles a row alone.
        warp_row: Up to this length a warp does.
        warp_row_many, many_rows: Up to this length too, where there are so many rows.
        wide_row, widest_row: From these lengths on a block has at least 512 threads, and 1024.
        narrow_row: Up to this length it has at most 128.
        enough_blocks: So many keep a GPU busy with matrix products.
        cheap: A producer of a matrix product costing more than this is written to memory first.
    """

    long_row: int = 4096
    few_rows: int = 264
    idle_rows: int = 64
    endless_row: int = 262144
    chunk: int = 4096
    most_chunks: int = 1024
    short_row: int = 32
    warp_row: int = 256
    warp_row_many: int = 1024
    many_rows: int = 8192
    narrow_row: int = 1024
    enough_blocks: int = 120
    wide_row: int = 4096
    widest_row: int = 8192
    cheap: int = 6


THRESHOLDS = Thresholds()


class _Write(Exception):
    """A tensor has to be in memory before the kernel at hand can be written."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor.label)
        self.tensor = tensor


def scheduled(program: Program, style: Style, limits: Thresholds = THRESHOLDS) -> Schedule:
    """The kernels of a program in a style."""
    return _Scheduler(_with_partials(program, style, limits), style, limits).run()


def _with_partials(program: Program, style: Style, limits: Thresholds) -> Program:
    """The program with long reductions of few rows in two steps."""
    hints = dict(program.hints)
    made: dict[int, Tensor] = {}
    keep: list[Tensor] = []
    sizes: list[Size] = []
    for tensor in walk(*program.outputs):
        changed = _with_parts(tensor, made)
        if isinstance(changed, Reduce) and not isinstance(changed, Contraction):
            rows, length = (evaluated(n, hints) for n in (changed.count, changed.length))
            fixed_rows = changed.count.constant is not None and changed.length.constant is None
            if fixed_rows or _worth_cutting(rows, length, style, limits):
                formula = (
                    f"min(max(1, -(-({text_of(changed.length, python=True)}) // {limits.chunk})), {limits.most_chunks})"
                )
                size = Size(f"chunks{len(sizes)}", formula)
                hints[size.name] = min(max(1, -(-length // limits.chunk)), limits.most_chunks)
                sizes.append(size)
                changed = _two_steps(changed, as_expr(size))
        keep.append(changed)
        made[id(tensor)] = changed
    return replace(
        program, outputs=tuple(made[id(t)] for t in program.outputs), hints=hints, sizes=(*program.sizes, *sizes)
    )


def _worth_cutting(rows: int, length: int, style: Style, limits: Thresholds) -> bool:
    if style.split == "needed" or length < limits.long_row:
        return False
    if style.split == "eager":
        return rows < limits.few_rows
    return rows < limits.idle_rows or (rows < limits.few_rows and length >= limits.endless_row)


def _two_steps(whole: Reduce, chunks: Expr) -> Tensor:
    shape = (*whole.shape, chunks)
    values = Partial(shape=shape, dtype=_partial_type(whole), label=f"{whole.label}_parts", reduce=whole)
    if not whole.kind.startswith("arg"):
        return Reduce(shape=whole.shape, dtype=whole.dtype, label=whole.label, kind=whole.kind, source=values)
    places = Partial(shape=shape, dtype="int64", label=f"{whole.label}_places", reduce=whole, places=True)
    best = Reduce(shape=whole.shape, dtype="int64", label=f"{whole.label}_chunk", kind=whole.kind, source=values)
    return Lookup(
        shape=whole.shape, dtype="int64", label=whole.label, source=places, subscripts=(best,), limits=(chunks,),
        asked=(lambda index: index,), remap=lambda index, found: (*index, found[0]),
    )  # fmt: skip


def _partial_type(whole: Reduce) -> str:
    source = whole.source.dtype if whole.kind.startswith("arg") else whole.dtype
    return "compute" if is_float(source) else source


def _with_parts(tensor: Tensor, made: dict[int, Tensor]) -> Tensor:
    changes: dict[str, object] = {}
    for one in fields(tensor):
        value = getattr(tensor, one.name)
        if isinstance(value, Tensor) and made.get(id(value), value) is not value:
            changes[one.name] = made[id(value)]
        elif isinstance(value, tuple) and any(isinstance(v, Tensor) and made.get(id(v), v) is not v for v in value):
            changes[one.name] = tuple(made.get(id(v), v) if isinstance(v, Tensor) else v for v in value)
    return replace(tensor, **changes) if changes else tensor  # type: ignore[arg-type]


class _Scheduler:
    def __init__(self, program: Program, style: Style, limits: Thresholds) -> None:
        self.program = program
        self.style = style
        self.limits = limits
        self.order = list(walk(*program.outputs))
        self.position = {id(t): k for k, t in enumerate(self.order)}
        self.wanted: dict[int, Tensor] = {}  # what is written apart from outputs
        self.main = program.main

    def run(self) -> Schedule:
        while True:
            try:
                return self._attempt()
            except _Write as request:
                if id(request.tensor) in self.wanted:
                    raise RuntimeError(f"no kernel can be found for {request.tensor.label}") from request
                self.wanted[id(request.tensor)] = request.tensor

    def _attempt(self) -> Schedule:
        schedule = Schedule(self.program)
        self.written: dict[int, Buffer] = {}
        self.keep: list[Buffer] = []
        outputs = {id(t): t for t in self.program.outputs}
        todo = sorted({**self.wanted, **outputs}.values(), key=lambda t: self.position[id(t)])
        known = {b.name for b in self.program.inputs} | {b.name for b, _ in self.program.state}
        for tensor in todo:
            if isinstance(tensor, Buffer):
                self.written[id(tensor)] = tensor
                continue
            if id(tensor) in self.written:
                continue
            name = _unused(f"out{len(schedule.outputs)}" if id(tensor) in outputs else tensor.label, known)
            buffer = Buffer(shape=tensor.shape, dtype=tensor.dtype, label=name, name=name)
            schedule.kernels.append(self._kernel(tensor, buffer, known, schedule))
            self.written[id(tensor)] = buffer
            (schedule.outputs if id(tensor) in outputs else schedule.scratch).append(buffer)
        self._merge(schedule)
        schedule.written = dict(self.written)
        schedule.outputs = [self.written[id(t)] for t in self.program.outputs]
        return schedule

    # One kernel -----------------------------------------------------------------------------------------------

    def _kernel(self, tensor: Tensor, buffer: Buffer, known: set[str], schedule: Schedule) -> Kernel:
        if isinstance(tensor, Partial):
            return self._partial(tensor, buffer, known, schedule)
        if isinstance(tensor, Scan):
            self._reached(tensor.source, loop_variables("i", tensor.shape), tensor.source)
            worker = "warp" if self.style.worker != "thread" else "thread"
            return ScanKernel(tensor, buffer, worker)
        index = loop_variables("t", tensor.shape)
        reached = self._reductions(tensor, index)
        for reduce, _ in reached:
            if isinstance(reduce, Scan | Partial):
                raise _Write(reduce)
        if not reached:
            return MapKernel(index, tensor.shape, [Sink(tensor, buffer, index)])
        for reduce, at in sorted(reached, key=lambda r: not isinstance(r[0], Contraction)):
            if not self.style.fuse and reduce is not tensor:
                continue
            found = self._over(tensor, buffer, index, reduce, at)
            if found is not None:
                return found
        raise _Write(reached[0][0])

    def _partial(self, tensor: Partial, buffer: Buffer, known: set[str], schedule: Schedule) -> Kernel:
        whole = tensor.reduce
        rows, inner = loop_variables("i", whole.shape), loop_variables("r", whole.reduced)
        self._reached(whole.source, (*rows, *inner), whole.source)
        places = None
        if whole.kind.startswith("arg"):
            other = next(
                t for t in self.order if isinstance(t, Partial) and t.reduce is whole and t.places != tensor.places
            )
            name = _unused(other.label, known)
            twin = Buffer(shape=other.shape, dtype=other.dtype, label=name, name=name)
            self.written[id(other)] = twin
            schedule.scratch.append(twin)
            buffer, places = (twin, buffer) if tensor.places else (buffer, twin)
        return PartialKernel(whole, tensor.shape[-1], buffer, places)

    def _reductions(self, tensor: Tensor, index: Index) -> list[tuple[Reduce | Scan | Partial, Index]]:
        """What is not in memory and not elementwise on the way to an element, nearest first."""
        found: list[tuple[Reduce | Scan | Partial, Index]] = []
        evaluator = Evaluator(self.main, self.written)

        def missing(reduce: Reduce | Scan | Partial, at: Index) -> str:
            if not any(r is reduce and i == at for r, i in found):
                found.append((reduce, at))
            return "0"

        evaluator.missing = missing
        scope = Scope(variables=frozenset(v for e in index for v in e.variables))
        evaluator.value(tensor, index, scope)
        return found

    def _reached(self, tensor: Tensor, index: Index, whole: Tensor) -> None:
        """Asks for what an element needs that is not elementwise to be in memory."""
        for reduce, _ in self._reductions(tensor, index):
            raise _Write(self._boundary(whole, reduce))

    def _boundary(self, operand: Tensor, reduce: Tensor) -> Tensor:
        """The operand itself where it is no larger than the reduction inside it, else the reduction."""
        while isinstance(operand, View) and operand.source.count == operand.count:
            operand = operand.source
        same = operand.count == reduce.count and id(operand) not in self.wanted
        return operand if same and self.style.fuse and id(operand) in self.position else reduce

    def _over(
        self, tensor: Tensor, buffer: Buffer, index: Index, reduce: Reduce | Scan | Partial, at: Index
    ) -> Kernel | None:
        """A kernel over the rows of a reduction that `tensor` is computed from, if the two fit."""
        assert isinstance(reduce, Reduce)
        rows, inner = loop_variables("i", reduce.shape), loop_variables("r", reduce.reduced)
        for sink, full in self._indices(tensor, index, reduce, at, rows, inner):
            direct = self._reductions(tensor, sink)
            if not any(r is reduce and i == rows for r, i in direct):
                continue
            if isinstance(reduce, Contraction):
                if full:
                    continue
                return self._product(tensor, buffer, sink, reduce, rows, inner, direct)
            worker = self._worker(reduce, rows, inner)
            levels = self._levels(direct, reduce, rows, inner, worker)
            if levels is None:
                continue
            sinks = [Sink(tensor, buffer, sink)]
            return RowKernel(
                reduce.shape,
                rows,
                reduce.reduced,
                inner,
                levels,
                [] if full else sinks,
                sinks if full else [],
                worker,
                self._threads(reduce, worker),
            )
        return None

    def _indices(
        self, tensor: Tensor, index: Index, reduce: Reduce, at: Index, rows: Index, inner: Index
    ) -> Iterator[tuple[Index, bool]]:
        """Candidates for the index of `tensor` at a row (and reduced element), and whether the latter is in it."""
        by: dict[Var, Expr] = {}
        for place, row in zip(at, rows, strict=True):
            variable = place.only_variable()
            if variable is None or variable in by:
                if place == ZERO and row == ZERO:
                    continue
                by = {}
                break
            by[variable] = row
        else:
            left = [e.only_variable() for e in index if e != ZERO and e.only_variable() not in by]
            if not left:
                yield tuple(substituted(e, dict(by)) for e in index), False
            inside = [r for r in inner if r != ZERO]
            extents = [v.extent for v in left if v is not None]
            if left and extents == [r.only_variable().extent for r in inside]:  # type: ignore[union-attr]
                whole = by | {v: r for v, r in zip(left, inside, strict=True) if v is not None}
                yield tuple(substituted(e, dict(whole)) for e in index), True
        if tensor.count == reduce.count:
            yield unflattened(flattened(rows, reduce.shape), tensor.shape), False
        if tensor.count == reduce.count * reduce.length:
            flat = flattened((*rows, *inner), (*reduce.shape, *reduce.reduced))
            yield unflattened(flat, tensor.shape), True

    def _product(
        self, tensor: Tensor, buffer: Buffer, sink: Index, reduce: Contraction, rows: Index, inner: Index,
        direct: Sequence[tuple[Reduce | Scan | Partial, Index]],
    ) -> Kernel:  # fmt: skip
        for other, at in direct:
            if other is not reduce or at != rows:
                raise _Write(other if other is not reduce else reduce)
        sinks = [Sink(tensor, buffer, sink)]
        self._prepared(reduce, rows, inner)
        if self.style.tile is not None:
            return TileKernel(reduce, rows, sinks, self._tile(reduce, self.style.tile))
        levels = [[(reduce, rows)]]
        return RowKernel(reduce.shape, rows, reduce.reduced, inner, levels, sinks, [], "thread", self.style.block)

    def _tile(self, reduce: Contraction, largest: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        """The largest tile that gives a GPU enough blocks for the example's sizes, or the smallest."""
        *batch, rows, columns = (evaluated(n, self.program.hints) for n in reduce.shape)
        fitting = [t for t in TILES if t[0] * t[1] <= largest[0] * largest[1]]
        for tile in fitting:
            if math.prod(batch) * -(-rows // tile[0]) * -(-columns // tile[1]) >= self.limits.enough_blocks:
                return tile
        return fitting[-1]

    def _prepared(self, reduce: Contraction, rows: Index, inner: Index) -> None:
        """Writes operands first that are too expensive to be computed again for every tile."""
        batch, (row, column) = rows[: reduce.batch], rows[reduce.batch :]
        for operand, place in ((reduce.left, row), (reduce.right, column)):
            index = (*batch, place, *inner)
            self._reached(operand, index, operand)
            evaluator = Evaluator(self.main, self.written)
            evaluator.value(operand, index, Scope(variables=frozenset(v for e in index for v in e.variables)))
            if evaluator.cost > self.limits.cheap:
                base = operand
                while isinstance(base, View):
                    base = base.source
                raise _Write(base)

    def _levels(
        self, direct: Sequence[tuple[Reduce | Scan | Partial, Index]], lead: Reduce, rows: Index, inner: Index,
        worker: str,
    ) -> list[list[tuple[Reduce, Index]]] | None:  # fmt: skip
        """All reductions of the kernel by the order in which they are needed."""
        height: dict[tuple[int, Index], int] = {}
        found: dict[tuple[int, Index], tuple[Reduce, Index]] = {}
        mine = frozenset(v for e in rows for v in e.variables)

        def visit(reduce: Reduce | Scan | Partial, at: Index, parent: Tensor | None) -> int:
            key = (id(reduce), at)
            if key in height:
                return height[key]
            fits = (
                isinstance(reduce, Reduce)
                and not isinstance(reduce, Contraction)
                and reduce.reduced == lead.reduced
                and all(e.variables <= mine for e in at)
                and (at == rows or worker == "thread")
                and (self.style.fuse or reduce is lead)
            )
            if not fits:
                raise _Write(reduce if parent is None else self._boundary(parent, reduce))
            assert isinstance(reduce, Reduce)
            below = [visit(r, i, reduce.source) for r, i in self._reductions(reduce.source, (*at, *inner))]
            height[key] = 1 + max(below, default=-1)
            found[key] = (reduce, at)
            return height[key]

        for reduce, at in direct:
            visit(reduce, at, None)
        levels: list[list[tuple[Reduce, Index]]] = [[] for _ in range(1 + max(height.values()))]
        for key, level in height.items():
            levels[level].append(found[key])
        return levels

    def _worker(self, reduce: Reduce, rows: Index, inner: Index) -> str:
        if self.style.worker != "auto":
            return self.style.worker
        hints = self.program.hints
        length = evaluated(reduce.length, hints)
        if length <= self.limits.short_row or reduce.length == ONE:
            return "thread"
        evaluator = Evaluator(self.main, self.written)
        evaluator.missing = lambda *_: "0"
        index = (*rows, *inner)
        evaluator.value(reduce.source, index, Scope(variables=frozenset(v for e in index for v in e.variables)))
        along, across = (_contiguous(evaluator, part) for part in (inner, rows))
        if across > along and evaluated(reduce.count, hints) >= self.limits.few_rows * 8:
            return "thread"
        many = evaluated(reduce.count, hints) >= self.limits.many_rows
        return "warp" if length <= (self.limits.warp_row_many if many else self.limits.warp_row) else "block"

    def _threads(self, reduce: Reduce, worker: str) -> int:
        length, block = evaluated(reduce.length, self.program.hints), self.style.block
        if worker != "block" or self.style.worker == "block":
            return block
        if length <= self.limits.narrow_row:
            return min(block, 128)
        if length < self.limits.wide_row:
            return block
        return max(block, 1024 if length >= self.limits.widest_row else 512)

    # Afterwards -----------------------------------------------------------------------------------------------

    def _merge(self, schedule: Schedule) -> None:
        """Kernels over one domain that do not wait for each other become one."""
        merged: list[Kernel] = []
        for kernel in schedule.kernels:
            previous = merged[-1] if merged else None
            if not (self.style.fuse and previous is not None and self._joined(previous, kernel)):
                merged.append(kernel)
        schedule.kernels = merged

    def _joined(self, first: Kernel, second: Kernel) -> bool:
        if isinstance(first, MapKernel) and isinstance(second, MapKernel) and first.shape == second.shape:
            if self._reads(second.sinks, {s.buffer.name for s in first.sinks}):
                return False
            first.sinks.extend(second.sinks)
            return True
        if (
            isinstance(first, RowKernel)
            and isinstance(second, RowKernel)
            and (first.shape, first.reduced, first.worker, first.threads)
            == (second.shape, second.reduced, second.worker, second.threads)
            and not any(isinstance(r, Contraction) for k in (first, second) for level in k.levels for r, _ in level)
        ):
            written = {s.buffer.name for s in (*first.row_sinks, *first.full_sinks)}
            if self._reads([*second.row_sinks, *second.full_sinks], written):
                return False
            for level, found in enumerate(second.levels):
                if level == len(first.levels):
                    first.levels.append([])
                present = [(id(r), i) for at in first.levels for r, i in at]
                first.levels[level].extend(p for p in found if (id(p[0]), p[1]) not in present)
            first.row_sinks.extend(second.row_sinks)
            first.full_sinks.extend(second.full_sinks)
            return True
        return False

    def _reads(self, sinks: Sequence[Sink], names: set[str]) -> bool:
        """Whether what is written depends on given buffers."""
        seen: set[int] = set()
        stack: list[Tensor] = [p for s in sinks for p in s.tensor.parts]
        while stack:
            tensor = stack.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            buffer = self.written.get(id(tensor))
            if buffer is not None:
                if buffer.name in names:
                    return True
                continue
            stack += tensor.parts
        return False


def _contiguous(evaluator: Evaluator, index: Index) -> int:
    """How many reads move by one with the last variable of an index."""
    last = next((v for e in reversed(index) for v in e.variables), None)
    return sum(step_of(address, last) == 1 for _, address in evaluator.addresses) if last is not None else 0


def _unused(label: str, known: set[str]) -> str:
    name, number = label, 1
    while name in known:
        number += 1
        name = f"{label}_{number}"
    known.add(name)
    return name
