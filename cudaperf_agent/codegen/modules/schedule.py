"""Which tensors are written to memory, and which kernels compute them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudaperf_agent.codegen.modules.evaluate import Evaluator, Scope
from cudaperf_agent.codegen.modules.kernels import (
    Kernel,
    MapKernel,
    PartialKernel,
    RowKernel,
    ScanKernel,
    Schedule,
    Sink,
    Style,
    Thresholds,
    TileKernel,
    loop_variables,
)
from cudaperf_agent.codegen.modules.merge import merge
from cudaperf_agent.codegen.modules.partials import with_partials
from cudaperf_agent.codegen.modules.sizes import (
    ZERO,
    Atom,
    Expr,
    flattened,
    substituted,
    unflattened,
)
from cudaperf_agent.codegen.modules.tensors import (
    Buffer,
    Contraction,
    Index,
    Partial,
    Program,
    Reduce,
    Scan,
    Tensor,
    View,
    walk,
)
from cudaperf_agent.codegen.modules.workers import threads_of, tiles_of, worker_of


class _Write(Exception):
    """A tensor has to be in memory before the kernel at hand can be written."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor.label)
        self.tensor = tensor


def scheduled(program: Program, style: Style, limits: Thresholds) -> Schedule:
    """The kernels of a program in a style."""
    return _Scheduler(with_partials(program, style, limits), style, limits).run()


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
        if self.style.fuse:
            merge(schedule, self.written)
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
            worker = worker_of(reduce, rows, inner, self.style, self.program, self.written, self.limits)
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
                threads_of(reduce, worker, self.style, self.program, self.limits),
            )
        return None

    def _indices(
        self, tensor: Tensor, index: Index, reduce: Reduce, at: Index, rows: Index, inner: Index
    ) -> Iterator[tuple[Index, bool]]:
        """Candidates for the index of `tensor` at a row (and reduced element), and whether the latter is in it."""
        by: dict[Atom, Expr] = {}
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
                yield tuple(substituted(e, by) for e in index), False
            inside = [r for r in inner if r != ZERO]
            extents = [v.extent for v in left if v is not None]
            if left and extents == [r.only_variable().extent for r in inside]:  # type: ignore[union-attr]
                whole = by | {v: r for v, r in zip(left, inside, strict=True) if v is not None}
                yield tuple(substituted(e, whole) for e in index), True
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
            limits, tiles = self.limits, tiles_of(reduce, self.style.tile, self.program, self.limits)
            return TileKernel(reduce, rows, sinks, tiles, limits.enough_blocks, limits.skinny_rows)
        levels: list[list[tuple[Reduce, Index]]] = [[(reduce, rows)]]
        return RowKernel(reduce.shape, rows, reduce.reduced, inner, levels, sinks, [], "thread", self.style.block)

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


def _unused(label: str, known: set[str]) -> str:
    name, number = label, 1
    while name in known:
        number += 1
        name = f"{label}_{number}"
    known.add(name)
    return name
