"""Launches over independent iterations: one thread each, or threads that stride."""

from __future__ import annotations

from dataclasses import replace

from cudaperf_agent.codegen.emit import Emitter
from cudaperf_agent.codegen.iterations import extreme, plain, span, value_at
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.codegen.steps import Parallel
from cudaperf_agent.tasks import ir

MAX_GRID_X = 2147483647
MAX_GRID_YZ = 65535


def emit(emitter: Emitter, step: Parallel, depth: int) -> list[str]:
    """Host lines of the launch; the kernel is added to the emitter."""
    return _Launch(emitter, step).lines(depth)


class _Launch:
    def __init__(self, emitter: Emitter, step: Parallel) -> None:
        self.emitter, self.step, self.nest = emitter, step, step.nest
        self.strategy = emitter.strategy
        self.axes = dict(zip(reversed(step.mapped), "xyz", strict=False))
        self.host = Printer(emitter.plan.symbols)
        self.printer = emitter.printer(emitter.atomic_pointers(step.atomic, step.nest.inner))
        self.stride = bool(self.strategy.grid_stride) and len(self.axes) == 1
        if self.stride:
            emitter.applied.add("stride")
        if len(self.axes) > 1:
            emitter.applied.add("plane")

    def lines(self, depth: int) -> list[str]:
        emitter, pad = self.emitter, INDENT * depth
        self.scope = emitter.scope((self.nest.rebuilt(),), given=self.step.mapped)
        self.top: list[str] = []
        name = emitter.kernel_name()
        counts = {variable: emitter.fresh(f"{variable}_count") for variable in self.axes}
        self.counts = counts
        inside = self._levels(0, 1, looped=False)
        emitter.add_kernel(name, self.scope, [*self.top, *inside])
        spans = [f"{pad}{INDENT}const long long {counts[v]} = {self._span(v)};" for v in self.axes]
        guard = " && ".join(f"{counts[v]} > 0" for v in self.axes)
        grid, block = self._shape()
        if len(self.axes) > 1:
            call = [emitter.launch(name, f"dim3({grid})", f"dim3({block})", self.scope, depth + 2)]
        else:
            call = [emitter.launch(name, grid, block, self.scope, depth + 2)]
        return [f"{pad}{{", *spans, f"{pad}{INDENT}if ({guard}) {{", *call, f"{pad}{INDENT}}}", f"{pad}}}"]

    def _dependent(self, variable: str) -> bool:
        loop = self.nest.level(variable).loop
        return bool((reads(loop.start) | reads(loop.bound)) & set(self.nest.variables))

    def _span(self, variable: str) -> str:
        loop = self.nest.level(variable).loop
        if not self._dependent(variable):
            return span(self.host, loop)
        up = loop.step > 0
        start = extreme(self.nest, loop, loop.start, low=up)
        bound = extreme(self.nest, loop, loop.bound, low=not up)
        return span(self.host, loop, start, bound)

    def _shape(self) -> tuple[str, str]:
        blocks = {1: (self.strategy.block, 1, 1), 2: (*self.strategy.tile, 1), 3: (*self.strategy.tile, 1)}[
            len(self.axes)
        ]
        grid = []
        for (variable, axis), block in zip(self.axes.items(), blocks, strict=False):
            most = MAX_GRID_X if axis == "x" else MAX_GRID_YZ
            if self.stride:
                most = self.strategy.grid_stride
            grid.append(f"blocks_for({self.counts[variable]}, {block}, {most})")
        block_text = ", ".join(str(b) for b in blocks[: len(self.axes)])
        return ", ".join(grid), block_text

    def _levels(self, position: int, depth: int, *, looped: bool) -> list[str]:
        """The kernel's lines from a level of the nest on."""
        pad = INDENT * depth
        if position == len(self.nest.levels):
            body = self.nest.body if looped else tuple(_returning(s) for s in self.nest.body)
            return self.printer.block(body, depth)
        level = self.nest.levels[position]
        loop, axis = level.loop, self.axes.get(level.variable)
        if axis is None:
            inside = self._prefixed(position, depth + 1, looped=True)
            head = self.printer.header(replace(loop, declared=True) if loop.declared else loop)
            return [f"{pad}{head} {{", *inside, f"{pad}}}"]
        if axis == "x" and not self.stride:
            return self._guarded(position, depth, looped)
        return self._strided(position, depth, axis)

    def _prefixed(self, position: int, depth: int, *, looped: bool) -> list[str]:
        level = self.nest.levels[position]
        return [
            *self.printer.block(level.prefix, depth),
            *self._levels(position + 1, depth, looped=looped),
        ]

    def _guarded(self, position: int, depth: int, looped: bool) -> list[str]:
        loop, pad = self.nest.levels[position].loop, INDENT * depth
        kind, name = spelled(loop.type), loop.variable
        index = "blockIdx.x * blockDim.x + threadIdx.x"
        if self._dependent(name):
            first = extreme(self.nest, loop, loop.start, low=loop.step > 0)
            sign = "+" if loop.step > 0 else "-"
            self.top += [
                f"{INDENT}const {kind} {name} = ({kind})((long long)({self.printer.expr(first)}) {sign} "
                f"((long long){index}));"
            ]
            opposite = ">=" if loop.step > 0 else "<="
            start, bound = self.printer.expr(loop.start, 10), self.printer.expr(loop.bound, 10)
            test = f"{name} {opposite} {start} && {name} {_relation(loop)} {bound}"
            return [f"{pad}if ({test}) {{", *self._prefixed(position, depth + 1, looped=looped), f"{pad}}}"]
        if plain(loop):
            wide = f"({kind})" if loop.type.size == 8 else ""
            self.top += [
                f"{INDENT}const {kind} {name} = {wide}{index};",
                f"{INDENT}if ({name} >= {self.printer.expr(loop.bound, 10)})",
                f"{INDENT * 2}return;",
            ]
        else:
            at = self.emitter.fresh(f"{name}_at")
            self.scope.add(f"long long {self.counts[name]}", self.counts[name])
            self.top += [
                f"{INDENT}const long long {at} = (long long){index};",
                f"{INDENT}if ({at} >= {self.counts[name]})",
                f"{INDENT * 2}return;",
                f"{INDENT}const {kind} {name} = {value_at(self.printer, loop, at)};",
            ]
        return self._prefixed(position, depth, looped=looped)

    def _strided(self, position: int, depth: int, axis: str) -> list[str]:
        loop, pad = self.nest.levels[position].loop, INDENT * depth
        name = loop.variable
        at = self.emitter.fresh(f"{name}_at")
        first = f"(long long)blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        self.scope.add(f"long long {self.counts[name]}", self.counts[name])
        kind = spelled(loop.type)
        lines = [
            f"{pad}for (long long {at} = {first}; {at} < {self.counts[name]};",
            f"{pad}     {at} += (long long)gridDim.{axis} * blockDim.{axis}) {{",
        ]
        if self._dependent(name):
            start = extreme(self.nest, loop, loop.start, low=loop.step > 0)
            sign = "+" if loop.step > 0 else "-"
            opposite = ">=" if loop.step > 0 else "<="
            lines += [
                f"{pad}{INDENT}const {kind} {name} = ({kind})((long long)({self.printer.expr(start)}) {sign} {at});",
                f"{pad}{INDENT}if (!({name} {opposite} {self.printer.expr(loop.start, 10)} && {name} {_relation(loop)} "
                f"{self.printer.expr(loop.bound, 10)}))",
                f"{pad}{INDENT * 2}continue;",
            ]
        else:
            lines.append(f"{pad}{INDENT}const {kind} {name} = {value_at(self.printer, loop, at)};")
        return [*lines, *self._prefixed(position, depth + 1, looped=True), f"{pad}}}"]


def _relation(loop: ir.For) -> str:
    """The loop's comparison; ``!=`` as the side on which it counts."""
    if loop.relation != "!=":
        return loop.relation
    return "<" if loop.step > 0 else ">"


def _returning(statement: ir.Stmt) -> ir.Stmt:
    """``continue`` of a loop that has become the thread itself is its end."""
    if isinstance(statement, ir.Continue):
        return ir.Return(None, statement.line)
    if isinstance(statement, ir.If):
        return replace(
            statement,
            then=tuple(_returning(s) for s in statement.then),
            otherwise=tuple(_returning(s) for s in statement.otherwise),
        )
    return statement
