"""Kernels and their launches as CUDA C++ text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cudaperf_agent.codegen.modules.evaluate import INDENT, Evaluator, Scope, literal, value_type
from cudaperf_agent.codegen.modules.kernels import (
    Kernel,
    MapKernel,
    PartialKernel,
    RowKernel,
    ScanKernel,
    Schedule,
    Sink,
    Style,
    TileKernel,
)
from cudaperf_agent.codegen.modules.sizes import (
    Atom,
    Expr,
    Size,
    Var,
    as_expr,
    flattened,
    product,
    substituted,
    unflattened,
)
from cudaperf_agent.codegen.modules.tensors import Buffer, Index, Reduce, is_float

LANES = 32
MOST_BLOCKS = 2147483647
OPERATORS = {"sum": "Sum", "prod": "Product", "max": "Larger", "min": "Smaller"}


@dataclass(slots=True)
class Code:
    """The text of one program.

    Attributes:
        kernels: Texts of kernels.
        launches: Host statements, in order.
        buffers: All buffers that kernels read or write, by name; true if written.
        sizes: All sizes that kernels or launches use.
        helpers: Names of the device functions that are used.
    """

    kernels: list[str] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)
    buffers: dict[str, tuple[Buffer, bool]] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)


def emitted(schedule: Schedule, style: Style, main: str, written: Mapping[int, Buffer], prefix: str = "") -> Code:
    """The text of all kernels of a schedule.

    Args:
        schedule: What to run.
        style: Block sizes and the like.
        main: The float type that ``real`` stands for.
        written: Buffers of tensors that are in memory.
        prefix: Of kernel names.
    """
    code = Code()
    program = schedule.program
    buffers = [*program.inputs, *(b for b, _ in program.state), *written.values()]
    taken = {b.name for b in buffers} | {s.name for s in program.sizes}
    for number, kernel in enumerate(schedule.kernels):
        KernelWriter(code, style, main, written, f"{prefix}{_kind(kernel)}_{number}", taken).write(kernel)
    return code


def _kind(kernel: Kernel) -> str:
    names: Mapping[type, str] = {
        MapKernel: "map", RowKernel: "rows", TileKernel: "product", PartialKernel: "parts", ScanKernel: "scan",
    }  # fmt: skip
    return names[type(kernel)]


class KernelWriter:
    """Writes one kernel and its launch."""

    def __init__(
        self, code: Code, style: Style, main: str, written: Mapping[int, Buffer], name: str, taken: Iterable[str] = ()
    ) -> None:
        self.code = code
        self.style = style
        self.name = name
        self.main = main
        self.everything = written
        self.writes: list[Buffer] = []
        self.evaluator = Evaluator(main, written)
        for reserved in taken:
            self.evaluator.reserve(reserved)

    def write(self, kernel: Kernel) -> None:
        """Add it to the code."""
        if isinstance(kernel, MapKernel):
            self._hide(kernel.sinks)
            self._map(kernel)
        elif isinstance(kernel, RowKernel):
            self._hide([*kernel.row_sinks, *kernel.full_sinks])
            if kernel.worker == "thread":
                self._thread_rows(kernel)
            else:
                self._shared_rows(kernel)
        elif isinstance(kernel, TileKernel):
            from cudaperf_agent.codegen.modules.emit_product import write_product

            self._hide(kernel.sinks)
            write_product(self, kernel)
        elif isinstance(kernel, PartialKernel):
            self._parts(kernel)
        else:
            from cudaperf_agent.codegen.modules.emit_scan import write_scan

            write_scan(self, kernel)

    def _hide(self, sinks: Sequence[Sink]) -> None:
        """What the kernel writes is computed in it, not read."""
        mine = {s.buffer.name for s in sinks}
        self.evaluator.written = {k: b for k, b in self.everything.items() if b.name not in mine}

    # Pieces ---------------------------------------------------------------------------------------------------

    def store(self, sink: Sink, index: Index, scope: Scope) -> None:
        """Write one element of a sink."""
        value = self.evaluator.value(sink.tensor, index, scope)
        self.put(sink.buffer, flattened(index, sink.buffer.shape), value, scope)

    def put(self, buffer: Buffer, address: Expr, value: str, scope: Scope) -> None:
        """Write a value to memory."""
        if buffer not in self.writes:
            self.writes.append(buffer)
        kind = self.evaluator.storage(buffer.dtype)
        convert = "" if kind == value_type(buffer.dtype) else f"({kind})"
        scope.add(f"{buffer.name}[{self.evaluator.text(address)}] = {convert}{value};")

    def finish(self, scope: Scope, grid: str, block: str) -> None:
        """Wrap statements into a kernel, and launch it on `grid` blocks (a host expression; none if it is zero)."""
        evaluator = self.evaluator
        written = {b.name for b in self.writes}
        buffers = [*evaluator.reads.values(), *self.writes]
        for buffer in buffers:
            known = self.code.buffers.get(buffer.name)
            self.code.buffers[buffer.name] = (buffer, buffer.name in written or bool(known and known[1]))
        self.code.sizes.update(evaluator.sizes)
        sizes = sorted(evaluator.sizes)
        parameters = [
            f"{'' if b.name in written else 'const '}{evaluator.storage(b.dtype)} *__restrict__ {b.name}"
            for b in buffers
        ] + [f"long long {s}" for s in sizes]
        head = f"template <typename real>\n__global__ void __launch_bounds__({block}) {self.name}("
        head += _wrapped(parameters, len(self.name)) + ")\n{"
        self.code.kernels.append("\n".join([head, *scope.lines, "}"]))
        passed = [
            f"({'' if b.name in written else 'const '}{evaluator.storage(b.dtype)} *){b.name}" for b in buffers
        ] + sizes
        self.code.launches += [
            f"    if (const long long blocks = {grid}) {{",
            "        if (blocks > MOST_BLOCKS)",
            "            return cudaErrorInvalidConfiguration;",
            f"        {self.name}<real><<<(unsigned)blocks, {block}, 0, stream>>>(",
            f"            {', '.join(passed)});",
            "    }",
        ]

    def host(self, value: Expr, *, inside: bool = False) -> str:
        """A size as a host expression."""
        for atom in value.atoms:
            if isinstance(atom, Size):
                self.code.sizes[atom.name] = atom
        return self.evaluator.text(value, inside=inside)

    # Kernels --------------------------------------------------------------------------------------------------

    def _map(self, kernel: MapKernel) -> None:
        evaluator, count = self.evaluator, product(kernel.shape)
        scope = Scope()
        index = evaluator.reserve("index")
        block, items = self.style.block, self.style.items
        self._thread_index(scope, index, count, items)
        inner = scope
        if items > 1:
            scope.add("#pragma unroll")
            scope.add(f"for (int item = 0; item < {items}; item++, {index} += {block}) {{")
            inner = Scope(scope, depth=2)
            inner.add(f"if ({index} >= {evaluator.text(count)})")
            inner.add(f"{INDENT}break;")
        inner.variables = frozenset({Var(index, count)})
        place = unflattened(as_expr(Var(index, count)), kernel.shape)
        for sink in kernel.sinks:
            self.store(sink, _moved(sink.index, kernel.variables, place), inner)
        if items > 1:
            scope.lines += inner.lines
            scope.add("}")
        self.finish(scope, f"blocks_for({self.host(count)}, {block * items})", str(block))

    def _thread_index(self, scope: Scope, index: str, count: Expr, items: int = 1) -> None:
        if items > 1:
            scope.add(f"long long {index} = (long long)blockIdx.x * {self.style.block * items} + threadIdx.x;")
            return
        scope.add(f"const long long {index} = (long long)blockIdx.x * {self.style.block} + threadIdx.x;")
        scope.add(f"if ({index} >= {self.evaluator.text(count)})")
        scope.add(f"{INDENT}return;")

    def _thread_rows(self, kernel: RowKernel) -> None:
        evaluator, count = self.evaluator, product(kernel.shape)
        scope = Scope()
        row = evaluator.reserve("row")
        self._thread_index(scope, row, count)
        by = self._row_coordinates(kernel, row, count, scope)
        for level in kernel.levels:
            names = [self._accumulator(r, scope) for r, _ in level]
            body = self._loops(kernel.inner, scope)
            for (reduce, at), name in zip(level, names, strict=True):
                place = tuple(substituted(e, by) for e in (*at, *kernel.inner))
                value = evaluator.value(reduce.source, place, body)
                position = flattened(kernel.inner, kernel.reduced)
                self._accumulate(reduce, name, value, position, body)
            self._close(body, scope)
            for (reduce, at), name in zip(level, names, strict=True):
                self._ready(reduce, tuple(substituted(e, by) for e in at), name)
        for sink in kernel.row_sinks:
            self.store(sink, tuple(substituted(e, by) for e in sink.index), scope)
        if kernel.full_sinks:
            body = self._loops(kernel.inner, scope)
            for sink in kernel.full_sinks:
                self.store(sink, tuple(substituted(e, by) for e in sink.index), body)
            self._close(body, scope)
        self.finish(scope, f"blocks_for({self.host(count)}, {self.style.block})", str(self.style.block))

    def _loops(self, inner: Index, scope: Scope) -> Scope:
        """The innermost body of one loop per reduced dimension; `_close` puts it where it belongs."""
        variables = [v for e in inner for v in sorted(e.variables, key=lambda v: v.name)]
        if not variables:
            return Scope(scope, guarded=True, depth=scope.depth + 1)
        for variable in variables:
            scope = Scope(scope, variables=frozenset({variable}), depth=scope.depth + 1)
        return scope

    def _close(self, inner: Scope, outer: Scope) -> None:
        """Loops around statements, inside out: what moved out of a loop stands before it."""
        while inner is not outer:
            assert inner.parent is not None
            head = "{"
            for variable in inner.variables:
                if variable.name.startswith("r") and variable.name[1:].isdigit():
                    limit = self.evaluator.text(variable.extent)
                    head = f"for (long long {variable.name} = 0; {variable.name} < {limit}; {variable.name}++) {{"
            inner.parent.add(head)
            inner.parent.lines += inner.lines
            inner.parent.add("}")
            inner = inner.parent

    def _row_coordinates(self, kernel: RowKernel, row: str, count: Expr, scope: Scope) -> dict[Atom, Expr]:
        """The rows' variables in terms of the row's number."""
        scope.variables |= {Var(row, count)}
        place = unflattened(as_expr(Var(row, count)), kernel.shape)
        return {v: p for e, p in zip(kernel.rows, place, strict=True) for v in e.variables}

    def _shared_rows(self, kernel: RowKernel) -> None:
        """A warp or a block per row."""
        evaluator, count = self.evaluator, product(kernel.shape)
        scope = Scope()
        warp = kernel.worker == "warp"
        block = kernel.threads
        row, lane = evaluator.reserve("row"), evaluator.reserve("lane" if warp else "thread")
        if warp:
            scope.add(f"const long long {row} = (long long)blockIdx.x * {block // LANES} + threadIdx.x / {LANES};")
            scope.add(f"const int {lane} = threadIdx.x % {LANES};")
            scope.add(f"if ({row} >= {evaluator.text(count)})")
            scope.add(f"{INDENT}return;")
        else:
            scope.add(f"const long long {row} = blockIdx.x;")
            scope.add(f"const int {lane} = threadIdx.x;")
        by = self._row_coordinates(kernel, row, count, scope)
        length = product(kernel.reduced)
        at = Var("r", length)
        evaluator.reserve("r")
        inside = unflattened(as_expr(at), kernel.reduced)
        by |= {v: p for e, p in zip(kernel.inner, inside, strict=True) for v in e.variables}
        step = LANES if warp else block
        head = f"for (long long r = {lane}; r < {evaluator.text(length)}; r += {step}) {{"
        for level in kernel.levels:
            names = [self._accumulator(r, scope) for r, _ in level]
            body = Scope(scope, variables=frozenset({at}), depth=2)
            for (reduce, place), name in zip(level, names, strict=True):
                index = tuple(substituted(e, by) for e in (*place, *kernel.inner))
                value = evaluator.value(reduce.source, index, body)
                self._accumulate(reduce, name, value, as_expr(at), body)
            scope.add(head)
            scope.lines += body.lines
            scope.add("}")
            for (reduce, place), name in zip(level, names, strict=True):
                self._across(reduce, name, kernel.worker, scope)
                self._ready(reduce, tuple(substituted(e, by) for e in place), name)
        if kernel.row_sinks:
            values = [
                evaluator.value(s.tensor, tuple(substituted(e, by) for e in s.index), scope) for s in kernel.row_sinks
            ]
            body = Scope(scope, guarded=True, depth=2)
            for sink, value in zip(kernel.row_sinks, values, strict=True):
                index = tuple(substituted(e, by) for e in sink.index)
                self.put(sink.buffer, flattened(index, sink.buffer.shape), value, body)
            scope.add(f"if ({lane} == 0) {{")
            scope.lines += body.lines
            scope.add("}")
        if kernel.full_sinks:
            body = Scope(scope, variables=frozenset({at}), depth=2)
            for sink in kernel.full_sinks:
                self.store(sink, tuple(substituted(e, by) for e in sink.index), body)
            scope.add(head)
            scope.lines += body.lines
            scope.add("}")
        grid = f"blocks_for({self.host(count)}, {block // LANES})" if warp else self.host(count)
        self.finish(scope, grid, str(block))

    def _parts(self, kernel: PartialKernel) -> None:
        """A block for each chunk of each row."""
        reduce, evaluator = kernel.reduce, self.evaluator
        shape = (*reduce.shape, kernel.chunks)
        count, length = product(shape), reduce.length
        scope = Scope()
        evaluator.reserve("chunk")
        scope.add("const long long chunk = blockIdx.x;")
        whole = Var("chunk", count)
        scope.variables = frozenset({whole})
        place = unflattened(as_expr(whole), shape)
        total, chunks = evaluator.text(length), evaluator.text(kernel.chunks)
        scope.add(f"const long long size = ({total} + {chunks} - 1) / {chunks};")
        scope.add(f"const long long first = {evaluator.text(place[-1], inside=True)} * size;")
        scope.add(f"const long long last = first + size < {total} ? first + size : {total};")
        for taken in ("size", "first", "last", "r"):
            evaluator.reserve(taken)
        name = self._accumulator(reduce, scope)
        at = Var("r", length)
        body = Scope(scope, variables=frozenset({at}), depth=2)
        index = (*place[:-1], *unflattened(as_expr(at), reduce.reduced))
        self._accumulate(reduce, name, evaluator.value(reduce.source, index, body), as_expr(at), body)
        scope.add(f"for (long long r = first + threadIdx.x; r < last; r += {self.style.block}) {{")
        scope.lines += body.lines
        scope.add("}")
        self._across(reduce, name, "block", scope)
        inside = Scope(scope, guarded=True, depth=2)
        address = as_expr(whole)
        if kernel.places is not None:
            self.put(kernel.values, address, f"{name}.value", inside)
            self.put(kernel.places, address, f"{name}.at", inside)
        else:
            self.put(kernel.values, address, name, inside)
        scope.add("if (threadIdx.x == 0) {")
        scope.lines += inside.lines
        scope.add("}")
        self.finish(scope, self.host(count), str(self.style.block))

    # Reductions -----------------------------------------------------------------------------------------------

    def _accumulator(self, reduce: Reduce, scope: Scope) -> str:
        name = self.evaluator.fresh(reduce.label)
        if reduce.kind.startswith("arg"):
            kind = value_type(reduce.source.dtype)
            start = neutral(reduce.kind[3:], reduce.source.dtype)
            scope.add(f"Best<{kind}> {name} = {{{start}, FURTHEST}};")
        else:
            scope.add(f"{value_type(reduce.dtype)} {name} = {neutral(reduce.kind, reduce.dtype)};")
        return name

    def _accumulate(self, reduce: Reduce, name: str, value: str, position: Expr, scope: Scope) -> None:
        if reduce.kind.startswith("arg"):
            order = "Larger" if reduce.kind == "argmax" else "Smaller"
            kind = value_type(reduce.source.dtype)
            at = self.evaluator.text(position)
            scope.add(f"{name} = First<{order}>::of({name}, Best<{kind}>{{{value}, {at}}});")
        elif reduce.kind in ("sum", "prod"):
            scope.add(f"{name} {'+' if reduce.kind == 'sum' else '*'}= {value};")
        else:
            function = "larger" if reduce.kind == "max" else "smaller"
            scope.add(f"{name} = {function}({name}, {value});")

    def _across(self, reduce: Reduce, name: str, worker: str, scope: Scope) -> None:
        if reduce.kind.startswith("arg"):
            operator = f"First<{'Larger' if reduce.kind == 'argmax' else 'Smaller'}>"
        else:
            operator = OPERATORS[reduce.kind]
        scope.add(f"{name} = across_{worker}<{operator}>({name});")

    def _ready(self, reduce: Reduce, at: Index, name: str) -> None:
        text = f"{name}.at" if reduce.kind.startswith("arg") else name
        self.evaluator.ready[(id(reduce), at)] = text


def neutral(kind: str, dtype: str) -> str:
    """What a reduction starts from."""
    if kind in ("sum", "prod"):
        return literal(0 if kind == "sum" else 1, dtype)
    if is_float(dtype):
        return literal(float("-inf") if kind == "max" else float("inf"), dtype)
    if dtype == "bool":
        return "false" if kind == "max" else "true"
    bits = 63 if dtype == "int64" else 31
    least = f"(-{(1 << bits) - 1}{'LL' if bits == 63 else ''} - 1)"
    return least if kind == "max" else literal((1 << bits) - 1, dtype)


def _moved(index: Index, variables: Index, place: Index) -> Index:
    by: dict[Atom, Expr] = {v: p for e, p in zip(variables, place, strict=True) for v in e.variables}
    return tuple(substituted(e, by) for e in index)


def _wrapped(parameters: Sequence[str], indent: int) -> str:
    lines: list[str] = [""]
    for number, parameter in enumerate(parameters):
        piece = parameter + ("," if number + 1 < len(parameters) else "")
        if len(lines[-1]) + len(piece) > 105:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + piece
    return "\n    ".join(lines)
