"""Launches whose iterations combine into scalars: partial results per thread or block, then one block that finishes.

The order in which partial results are combined is fixed by the launch shape, so that runs agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.emit import Emitter, KernelScope
from cudaperf_agent.codegen.iterations import extreme, span, value_at
from cudaperf_agent.codegen.partials import Partials, field, names_of
from cudaperf_agent.codegen.printer import INDENT, Printer, constant, spelled
from cudaperf_agent.codegen.scalars import Reduction, declared, reads, stored_scalars
from cudaperf_agent.codegen.steps import Nest, Reduce
from cudaperf_agent.tasks import ir

FINISH_BLOCK = 256
MAX_BLOCKS = 256
"""Blocks of the first kernel where every thread writes a partial result."""
MAX_TREE_BLOCKS = 1024
"""Blocks of the first kernel where every block writes one."""
MAX_BLOCKS_2D = (16, 64)


def emit(emitter: Emitter, step: Reduce, depth: int) -> list[str]:
    """Host lines of both launches; the kernels are added to the emitter."""
    return _Reduction(emitter, step).lines(depth)


class _Reduction:
    def __init__(self, emitter: Emitter, step: Reduce) -> None:
        before = tuple(
            s for s in step.before if not (isinstance(s, ir.Declare) and s.init is None and s.values is None)
        )
        step = replace(step, before=before)
        self.emitter, self.step, self.nest = emitter, step, step.nest
        self.tree = emitter.strategy.tree
        self.block = emitter.strategy.block
        self.partials = Partials(emitter, step)
        self.type, self.combine, self.orders = self.partials.type, self.partials.combine, self.partials.orders
        local = ("partials", "mine", "total", "any", "at", "even", "rest", "other")
        self.local = {name: emitter.fresh(name) for name in local}
        self.at_names: dict[str, str] = {}
        self.results = {n for r in step.reductions for n in names_of(r)}

    def lines(self, depth: int) -> list[str]:
        """Host lines."""
        emitter, pad = self.emitter, INDENT * depth
        emitter.kernels += self.partials.definitions()
        partials, count = emitter.fresh("partials"), emitter.fresh("partial_count")
        first, scope, counts = self._first_kernel(partials)
        second, finish = self._finish_kernel(partials, count)
        printer = Printer(emitter.plan.symbols)
        spread = [level.loop for level in self.nest.levels[: self.step.spread]]
        lines = [f"{pad}long long {count} = 0;"]
        emitter.early.append(f"{self.type} *{partials} = scratch.get<{self.type}>({self._capacity()});")
        lines.append(f"{pad}{{")
        for loop, name in zip(spread, counts, strict=True):
            needs = (reads(loop.start) | reads(loop.bound)) & set(self.nest.variables)
            text = (
                span(
                    printer,
                    loop,
                    extreme(self.nest, loop, loop.start, low=loop.step > 0),
                    extreme(self.nest, loop, loop.bound, low=loop.step < 0),
                )
                if needs
                else span(printer, loop)
            )
            lines.append(f"{pad}{INDENT}const long long {name} = {text};")
        guard = " && ".join(f"{name} > 0" for name in counts)
        grid = emitter.fresh("grid_shape")
        lines += [f"{pad}{INDENT}if ({guard}) {{", *self._grid(grid, counts, depth + 2)]
        per_block = "" if self.tree else f" * {self.block}"
        lines += [
            f"{pad}{INDENT * 2}{count} = (long long){grid}.x * {grid}.y{per_block};",
            emitter.launch(first, grid, str(self.block), scope, depth + 2),
            f"{pad}{INDENT}}}",
            f"{pad}}}",
            emitter.launch(second, "1", str(FINISH_BLOCK), finish, depth),
        ]
        return lines

    def _grid(self, grid: str, counts: Sequence[str], depth: int) -> list[str]:
        pad = INDENT * depth
        work = self.block * self.emitter.strategy.items
        if len(counts) == 1:
            most = MAX_TREE_BLOCKS if self.tree else MAX_BLOCKS
            return [f"{pad}const dim3 {grid}(blocks_for({counts[0]}, {work}, {most}));"]
        x, y = MAX_BLOCKS_2D
        return [f"{pad}const dim3 {grid}(blocks_for({counts[1]}, {work}, {x}), blocks_for({counts[0]}, 1, {y}));"]

    def _capacity(self) -> int:
        blocks = MAX_BLOCKS_2D[0] * MAX_BLOCKS_2D[1]
        if self.step.spread == 1:
            blocks = MAX_TREE_BLOCKS if self.tree else MAX_BLOCKS
        return max(FINISH_BLOCK, blocks * (1 if self.tree else self.block))

    # Kernels --------------------------------------------------------------------------------------------------

    def _first_kernel(self, partials: str) -> tuple[str, KernelScope, list[str]]:
        emitter, step = self.emitter, self.step
        body = self._ordered_body()
        spread = self.nest.variables[: step.spread]
        whole = (*step.before, _with_body(self.nest, body).rebuilt())
        # A flag keeps its old value where no iteration sets it, though no iteration reads it.
        kept = [
            ir.Assign(r.place, "=", r.place)
            for r in step.reductions
            if r.kind == "set" and names_of(r) & emitter.shared - declared(step.before)
        ]
        scope = emitter.scope((*kept, *whole), given=[*spread, *self.orders.values()])
        printer = emitter.printer(emitter.atomic_pointers(step.atomic, body))
        counts = [emitter.fresh(f"{v}_count") for v in spread]
        lines = printer.block(step.before, 1)
        lines += self._neutral(scope, 1)
        nest = _with_body(self.nest, body)
        inside: list[str] = []
        closing: list[str] = []
        depth = 1
        for position, variable in enumerate(spread):
            level, pad = nest.levels[position], INDENT * depth
            at, axis = self._at_name(variable), "x" if position + 1 == len(spread) else "y"
            width, index = (f"(long long)gridDim.{axis}", f"blockIdx.{axis}")
            if axis == "x":
                width, index = f"{width} * blockDim.x", f"(long long){index} * blockDim.x + threadIdx.x"
            needs = (reads(level.loop.start) | reads(level.loop.bound)) & set(nest.variables)
            count = span(printer, level.loop) if needs else counts[position]
            if not needs:
                scope.add(f"long long {counts[position]}", counts[position])
            inside += [
                f"{pad}for (long long {at} = {index}; {at} < {count}; {at} += {width}) {{",
                f"{pad}{INDENT}const {spelled(level.loop.type)} {variable} = {value_at(printer, level.loop, at)};",
            ]
            depth += 1
            if position + 1 < len(nest.levels):
                inside += printer.block(level.prefix, depth)
            closing.insert(0, f"{pad}}}")
        if step.spread < len(nest.levels):
            inside += printer.statement(nest.rebuilt(step.spread), depth)
        else:
            if nest.levels[-1].prefix:
                inside += printer.block(nest.levels[-1].prefix, depth)
            inside += printer.block(nest.body, depth)
        lines += [*inside, *closing, *self._store()]
        scope.add(f"{self.type} *{self.local['partials']}", partials)
        name = emitter.kernel_name("partials")
        emitter.add_kernel(name, scope, lines)
        return name, scope, counts

    def _at_name(self, variable: str) -> str:
        if variable not in self.at_names:
            self.at_names[variable] = self.emitter.fresh(f"{variable}_at")
        return self.at_names[variable]

    def _ordered_body(self) -> tuple[ir.Stmt, ...]:
        """The body, with the iteration number noted where a better value is found."""
        if not self.orders:
            return self.nest.body
        at = ir.Ref(self._at_name(self.nest.variables[0]), ir.LONG_LONG)

        def noted(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.If):
                return node
            for reduction in self.step.reductions:
                if reduction.payload and any(
                    isinstance(s, ir.Assign) and isinstance(s.target, ir.Ref) and s.target.name == field(reduction)
                    for s in node.then
                ):
                    order = ir.Ref(self.orders[reduction.place], ir.LONG_LONG)
                    return replace(node, then=(*node.then, ir.Assign(order, "=", at)))
            return node

        return tuple(ir.rewrite(s, noted) for s in self.nest.body)

    def _neutral(self, scope: KernelScope, depth: int) -> list[str]:
        """Every thread starts from the neutral value, or from the old one where that changes nothing."""
        pad, printer = INDENT * depth, Printer({})
        lines = []
        opened = declared(self.step.before) | {
            o.split("=")[0].split()[-1].rstrip(";") for o in scope.opening if "=" in o
        }
        for reduction in self.step.reductions:
            neutral = {"+": 0, "|": 0, "^": 0, "||": 0, "*": 1, "&&": 1, "&": -1}.get(reduction.kind)
            if neutral is not None:
                value = constant(neutral, ir.INT) if neutral == -1 else constant(neutral, reduction.type)
                value = f"({spelled(reduction.type)}){value}" if neutral == -1 else value
                lines.append(f"{pad}{printer.expr(reduction.place)} = {value};")
            if reduction.payload:
                lines += [f"{pad}{p.name} = ({spelled(p.type)})0;" for p in reduction.payload if p.name not in opened]
                lines.append(f"{pad}long long {self.orders[reduction.place]} = -1;")
        return lines

    def _store(self) -> list[str]:
        mine, partials = self.local["mine"], self.local["partials"]
        lines = [f"{INDENT}{self.type} {mine};"]
        for reduction in self.step.reductions:
            lines.append(f"{INDENT}{mine}.{field(reduction)} = {Printer({}).expr(reduction.place)};")
            if reduction.payload:
                names = [*(p.name for p in reduction.payload), self.orders[reduction.place]]
                lines += [f"{INDENT}{mine}.{name} = {name};" for name in names]
        if any(name == self.partials.unused for _, name in self.partials.fields()):
            lines.append(f"{INDENT}{mine}.{self.partials.unused} = 0;")
        block = "((long long)blockIdx.y * gridDim.x + blockIdx.x)"
        if self.tree:
            return [
                *lines,
                f"{INDENT}{mine} = {self.partials.gather}({mine});",
                f"{INDENT}if (threadIdx.x == 0)",
                f"{INDENT * 2}{partials}[{block}] = {mine};",
            ]
        return [*lines, f"{INDENT}{partials}[{block} * blockDim.x + threadIdx.x] = {mine};"]

    def _finish_kernel(self, partials: str, count: str) -> tuple[str, KernelScope]:
        emitter, step = self.emitter, self.step
        work = [*step.before, *step.after]
        work = [s for s in work if not (isinstance(s, ir.Declare) and s.init is None and s.values is None)]
        scope = emitter.scope(work, given=self.results)
        printer = emitter.printer()
        opened = declared(step.before) | {o.split("=")[0].split()[-1] for o in scope.opening}
        symbols = emitter.plan.symbols
        for name in emitter._ordered(self.results):
            if name not in opened and name not in emitter.shared:
                scope.opening.append(f"{spelled(symbols[name].type)} {name};")
            elif name not in opened:
                value = emitter.value_names[name]
                initial = f"{spelled(symbols[name].type)} {name} = *{value};"
                if value not in scope.arguments:
                    scope.add(f"{spelled(symbols[name].type)} *{value}", value)
                if not _assigned_first(step.before, name):
                    scope.opening.append(initial)
                else:
                    scope.opening.append(f"{spelled(symbols[name].type)} {name};")
        scope.add(f"{self.type} *{self.local['partials']}", partials)
        scope.add(f"long long {count}", count)
        lines = self._total(count)
        inner = printer.block(step.before, 1)
        for reduction in step.reductions:
            inner += [INDENT + line for line in self._into_scalar(reduction)]
        inner += printer.block(step.after, 1)
        changed = stored_scalars(work) | declared(work) | self.results
        for name in emitter._ordered(changed & emitter.shared):
            value = emitter.value_names[name]
            declaration = f"{spelled(symbols[name].type)} *{value}"
            if value in scope.arguments:
                scope.parameters[scope.arguments.index(value)] = declaration
            else:
                scope.add(declaration, value)
            inner.append(f"{INDENT}*{value} = {name};")
        name = emitter.kernel_name("finish")
        # Only thread 0 reads the old values: the others are gone by the time that it stores the new ones.
        opening = [INDENT + line for line in scope.opening]
        scope.opening = []
        emitter.add_kernel(name, scope, [*lines, *opening, *inner])
        return name, scope

    def _total(self, count: str) -> list[str]:
        """Lines after which thread 0 alone goes on, with the combination of all partial results in ``total``."""
        n = self.local
        partials, total, at, even, rest = n["partials"], n["total"], n["at"], n["even"], n["rest"]
        start = [
            f"{INDENT}const bool {n['any']} = {count} > 0;",
            f"{INDENT}{self.type} {total};",
            f"{INDENT}long long {at} = threadIdx.x;",
        ]
        if self.tree:
            # Idle threads must not bring a value: the last block of partial results is handled by thread 0.
            return [
                *start,
                f"{INDENT}const long long {even} = {count} - {count} % {FINISH_BLOCK};",
                f"{INDENT}if ({even} > 0) {{",
                f"{INDENT * 2}{total} = {partials}[{at}];",
                f"{INDENT * 2}for ({at} += {FINISH_BLOCK}; {at} < {even}; {at} += {FINISH_BLOCK})",
                f"{INDENT * 3}{self.combine}({total}, {partials}[{at}]);",
                f"{INDENT * 2}{total} = {self.partials.gather}({total});",
                f"{INDENT}}}",
                f"{INDENT}if (threadIdx.x != 0)",
                f"{INDENT * 2}return;",
                f"{INDENT}if ({even} == 0 && {n['any']})",
                f"{INDENT * 2}{total} = {partials}[0];",
                f"{INDENT}for (long long {rest} = {even} > 0 ? {even} : 1; {rest} < {count}; {rest}++)",
                f"{INDENT * 2}{self.combine}({total}, {partials}[{rest}]);",
            ]
        other = n["other"]
        return [
            *start,
            f"{INDENT}if ({at} < {count}) {{",
            f"{INDENT * 2}{total} = {partials}[{at}];",
            f"{INDENT * 2}for ({at} += blockDim.x; {at} < {count}; {at} += blockDim.x)",
            f"{INDENT * 3}{self.combine}({total}, {partials}[{at}]);",
            f"{INDENT * 2}{partials}[threadIdx.x] = {total};",
            f"{INDENT}}}",
            f"{INDENT}__syncthreads();",
            f"{INDENT}if (threadIdx.x != 0)",
            f"{INDENT * 2}return;",
            f"{INDENT}for (int {other} = 1; {other} < (int)blockDim.x && {other} < {count}; {other}++)",
            f"{INDENT * 2}{self.combine}({total}, {partials}[{other}]);",
        ]

    def _into_scalar(self, reduction: Reduction) -> list[str]:
        """Lines that put the total into the variable."""
        name, place = field(reduction), Printer({}).expr(reduction.place)
        total, some = self.local["total"], self.local["any"]
        if reduction.payload:
            moved = [f"{n} = {total}.{n};" for n in (name, *(p.name for p in reduction.payload))]
            test = f"{some} && {total}.{self.orders[reduction.place]} >= 0"
            return [f"if ({test}) {{", *(INDENT + m for m in moved), "}"]
        if reduction.kind in ("best", "set"):
            return [f"if ({some})", f"{INDENT}{place} = {total}.{name};"]
        if reduction.kind in ("&&", "||"):
            return [f"if ({some})", f"{INDENT}{place} = {place} {reduction.kind} {total}.{name};"]
        return [f"if ({some})", f"{INDENT}{place} {reduction.kind}= {total}.{name};"]


def _with_body(nest: Nest, body: tuple[ir.Stmt, ...]) -> Nest:
    return replace(nest, body=body)


def _assigned_first(statements: Sequence[ir.Stmt], name: str) -> bool:
    from cudaperf_agent.codegen.scalars import flow

    done = flow(statements)
    return name not in done.exposed and name in (done.definite or ())
