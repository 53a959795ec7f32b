"""Kernels and their launches as CUDA C++ text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cudaperf_agent.codegen.modules.emit_product import blocks_of, write_product
from cudaperf_agent.codegen.modules.emit_rows import write_parts, write_shared_rows, write_thread_rows
from cudaperf_agent.codegen.modules.emit_scan import write_scan
from cudaperf_agent.codegen.modules.evaluate import INDENT, Evaluator, Scope, value_type
from cudaperf_agent.codegen.modules.kernels import (
    SKINNY,
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
from cudaperf_agent.codegen.modules.tensors import Buffer, Index


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
        self.taken = tuple(taken)
        self.writes: list[Buffer] = []
        self.evaluator = Evaluator(main, written)
        for reserved in self.taken:
            self.evaluator.reserve(reserved)

    def write(self, kernel: Kernel) -> None:
        """Add it to the code."""
        if isinstance(kernel, MapKernel):
            self._hide(kernel.sinks)
            self._map(kernel)
        elif isinstance(kernel, RowKernel):
            self._hide([*kernel.row_sinks, *kernel.full_sinks])
            if kernel.worker == "thread":
                write_thread_rows(self, kernel)
            else:
                write_shared_rows(self, kernel)
        elif isinstance(kernel, TileKernel):
            self._hide(kernel.sinks)
            self._product(kernel)
        elif isinstance(kernel, PartialKernel):
            write_parts(self, kernel)
        else:
            write_scan(self, kernel)

    def _product(self, kernel: TileKernel) -> None:
        """A kernel for each size of tile; the sizes at hand decide which one is launched."""
        hidden, rows = self.evaluator.written, kernel.contraction.shape[-2]
        choices = [(SKINNY, f"{self.host(rows)} <= {kernel.few}")]
        if len(kernel.tiles) > 1:
            choices.append((kernel.tiles[0], f"{blocks_of(self, kernel, kernel.tiles[0])} >= {kernel.enough}"))
        choices.append((kernel.tiles[-1], ""))
        if rows.constant is not None:
            choices = choices[:1] if rows.constant <= kernel.few else choices[1:]
        for number, (tile, condition) in enumerate(choices):
            launches, self.code.launches = self.code.launches, []
            writer = KernelWriter(
                self.code, self.style, self.main, hidden, f"{self.name}_{tile[0]}x{tile[1]}", self.taken
            )
            write_product(writer, kernel, tile)
            mine, self.code.launches = self.code.launches, launches
            if len(choices) > 1:
                last = number + 1 == len(choices)
                head = "    } else {" if last else f"    {'} else ' if number else ''}if ({condition}) {{"
                mine = [head, *(f"    {line}" for line in mine), *(["    }"] if last else [])]
            self.code.launches += mine

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
        self.thread_index(scope, index, count, items)
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

    def thread_index(self, scope: Scope, index: str, count: Expr, items: int = 1) -> None:
        """Statements for the number of a thread, which ends if it is too large."""
        if items > 1:
            scope.add(f"long long {index} = (long long)blockIdx.x * {self.style.block * items} + threadIdx.x;")
            return
        scope.add(f"const long long {index} = (long long)blockIdx.x * {self.style.block} + threadIdx.x;")
        scope.add(f"if ({index} >= {self.evaluator.text(count)})")
        scope.add(f"{INDENT}return;")


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
