"""From a plan and a strategy to a device-form ``.cu``: the frame, what kernels need from outside, and scalar work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from cudaperf_agent.codegen.frame import BITS, BLOCKS, SCRATCH, shared_scalars, without_idle
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.scalars import declared, flow, reads, stored_scalars
from cudaperf_agent.codegen.steps import (
    RESULT,
    Fetch,
    Finish,
    HostBranch,
    HostLoop,
    HostStatement,
    Parallel,
    Plan,
    Reduce,
    ScalarWork,
    Step,
    Symbol,
)
from cudaperf_agent.codegen.strategy import Strategy
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function
from cudaperf_agent.tasks.model import Task


class NotApplicable(Exception):
    """The strategy has nothing to offer for this plan; the variant is left out."""


@dataclass
class KernelScope:
    """What a kernel needs from outside.

    Attributes:
        parameters: Their C++ declarations.
        arguments: What the host passes.
        opening: First lines of the kernel: device scalars read, private scalars declared.
    """

    parameters: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    opening: list[str] = field(default_factory=list)

    def add(self, declaration: str, argument: str) -> None:
        """One more parameter."""
        self.parameters.append(declaration)
        self.arguments.append(argument)


class Emitter:
    """Writes one source.

    Args:
        task: For the signature, the type declarations and the tables' order.
        plan: What to write.
        strategy: How.
    """

    def __init__(self, task: Task, plan: Plan, strategy: Strategy) -> None:
        self.task, self.plan, self.strategy = task, plan, strategy
        self.kernels: list[str] = []
        self.count = 0
        self.early: list[str] = []
        self.applied: set[str] = set()
        self.fetched: dict[str, str] = {}
        self.taken = {*plan.symbols, *(h.name for h in plan.module.helpers), task.name}
        self.helper_tables = {h.name: tuple(t.name for t in h.tables) for h in plan.module.helpers}
        self.shared = shared_scalars(plan)
        self.value_names = {name: self.fresh(f"{name}_value") for name in sorted(self.shared)}

    def fresh(self, wanted: str) -> str:
        """A name that nothing in the source has."""
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        return name

    def kernel_name(self, kind: str = "kernel") -> str:
        """``NAME_kind``, numbered where needed."""
        return self.fresh(f"{self.task.name}_{kind}")

    # The file -------------------------------------------------------------------------------------------------

    def source(self) -> str:
        """The whole text.

        Raises:
            NotApplicable: The strategy changes nothing in this plan.
        """
        body = self.steps(self.plan.steps, 1)
        if self.strategy.needs and self.strategy.needs not in self.applied:
            raise NotApplicable
        device_values = [INDENT + line for line in self.early]
        device_values += [
            f"{INDENT}{spelled(self.plan.symbols[name].type)} *{self.value_names[name]} = "
            f"scratch.get<{spelled(self.plan.symbols[name].type)}>(1);"
            for name in sorted(self.shared)
            if any(self.value_names[name] in text for text in (*self.kernels, *body))
        ]
        body = without_idle(body, self.plan.symbols)
        fetched = [f"{INDENT}{kind} {name};" for name, kind in self.fetched.items()]
        body = [*fetched, *body]
        text = "\n".join(body)
        needs_scratch = bool(device_values) or "scratch." in text
        lines = [
            f"// {self.task.name}: {self.strategy.description}",
            "#include <cuda_runtime.h>",
            "#include <math.h>",
            "",
        ]
        declarations = self.task.type_declarations.strip("\n")
        if declarations:
            lines += [declarations, ""]
        if needs_scratch:
            lines += [SCRATCH.strip("\n"), ""]
        if "blocks_for(" in text:
            lines += [BLOCKS.strip("\n"), ""]
        helpers = [self._helper(helper) for helper in self.plan.module.helpers]
        if "bits_as<" in "\n".join([text, *self.kernels, *(line for helper in helpers for line in helper)]):
            lines += [BITS.strip("\n"), ""]
        for helper in helpers:
            lines += [*helper, ""]
        for kernel in self.kernels:
            lines += [kernel, ""]
        lines += [f"{self._prototype()}", "{"]
        if needs_scratch:
            lines += [f"{INDENT}Scratch scratch(stream);"]
        lines += device_values
        if needs_scratch and device_values:
            lines += [f"{INDENT}if (scratch.status != cudaSuccess)", f"{INDENT * 2}return scratch.status;"]
        lines += body
        if not (self.plan.steps and isinstance(self.plan.steps[-1], Finish)):
            lines.append(f"{INDENT}return {self._status()};")
        status = (
            "scratch.status != cudaSuccess ? scratch.status : cudaGetLastError()"
            if needs_scratch
            else "cudaGetLastError()"
        )
        return "\n".join([*lines, "}", ""]).replace(_STATUS, status)

    @staticmethod
    def _status() -> str:
        return _STATUS

    def _prototype(self) -> str:
        entry = self.plan.module.entry
        parts = []
        for parameter in entry.params:
            const = "const " if parameter.pointer and parameter.const else ""
            parts.append(f"{const}{spelled(parameter.type)} {'*' if parameter.pointer else ''}{parameter.name}")
        if entry.returns is not None:
            parts.append(f"{spelled(entry.returns)} *{RESULT}")
        parts += [f"const {spelled(t.type)} *{t.name}" for t in self.task.tables]
        return f'extern "C" int {self.task.name}_device({", ".join([*parts, "cudaStream_t stream"])})'

    def _helper(self, helper: Function) -> list[str]:
        symbols = {p.name: Symbol(p.name, p.type, p.pointer, p.const, p.dims) for p in helper.params}
        symbols |= {
            t.name: Symbol(t.name, t.type, True, True, tuple(ir.Const(d, ir.INT) for d in t.dims))
            for t in helper.tables
        }
        printer = Printer(symbols, self.helper_tables)
        parts = []
        for parameter in helper.params:
            const = "const " if parameter.pointer and parameter.const else ""
            parts.append(f"{const}{spelled(parameter.type)} {'*' if parameter.pointer else ''}{parameter.name}")
        parts += [f"const {spelled(t.type)} *{t.name}" for t in helper.tables]
        head = f"static __device__ {spelled(helper.returns)} {helper.name}({', '.join(parts)})"
        return [head, "{", *printer.block(helper.body, 1), "}"]

    # Kernels --------------------------------------------------------------------------------------------------

    def printer(self, atomic: Iterable[str] = ()) -> Printer:
        """A printer for the inside of a kernel; `atomic` are buffers."""
        roots = set(atomic)
        return Printer(self.plan.symbols, self.helper_tables, frozenset(roots), unroll=self.strategy.unroll)

    def atomic_pointers(self, atomic: frozenset[str], body: Sequence[ir.Stmt]) -> frozenset[str]:
        """Names under which buffers are stored to in a kernel: their own and those of pointers into them."""
        names = set(atomic) | {n for n, r in self.plan.roots.items() if r in atomic}
        while True:
            more = {
                s.name
                for s in ir.walk(*body)
                if isinstance(s, ir.Point) and s.source is not None and s.source.pointer in names
            } - names
            if not more:
                return frozenset(names)
            names |= more

    def scope(self, inside: Sequence[ir.Stmt], given: Iterable[str] = (), kept: Iterable[str] = ()) -> KernelScope:
        """Parameters of a kernel that runs statements.

        Args:
            inside: The statements, loops over threads included.
            given: Names that the kernel defines itself (loop variables, partial results).
            kept: Device scalars that the kernel stores itself; only their old value is read here.
        """
        scope = KernelScope()
        mine = declared(inside) | set(given)
        exposed = flow(inside).exposed
        written = assigned(tuple(inside))
        needed = set(reads(*inside)) | {n for n in written if n not in mine}
        needed |= {
            name for t in ir.walk(*inside) if isinstance(t, ir.Call) for name in self.helper_tables.get(t.name, ())
        }
        sizes = [d for n in needed if n in self.plan.symbols for d in self.plan.symbols[n].dims if d is not None]
        needed |= reads(*sizes) if sizes else set()
        stored_roots = self._stored_pointers(inside)
        for name in self._ordered(needed - mine):
            symbol = self.plan.symbols[name]
            if symbol.pointer:
                const = "const " if name not in stored_roots else ""
                restrict = "__restrict__ " if const and self.strategy.restrict else ""
                scope.add(f"{const}{spelled(symbol.type)} *{restrict}{name}", name)
            elif name in self.shared and name in exposed:
                value = self.value_names[name]
                scope.add(f"const {spelled(symbol.type)} *{value}", value)
                constant = "const " if name not in written else ""
                scope.opening.append(f"{constant}{spelled(symbol.type)} {name} = *{value};")
            elif name in written and name not in exposed:
                scope.opening.append(f"{spelled(symbol.type)} {name};")
            else:
                scope.add(f"{spelled(symbol.type)} {name}", name)
        return scope

    def _stored_pointers(self, inside: Sequence[ir.Stmt]) -> set[str]:
        names = set()
        for node in ir.walk(*inside):
            if isinstance(node, ir.Assign):
                place = ir.root(node.target)
                if isinstance(place, ir.Load):
                    names.add(place.pointer)
            elif isinstance(node, ir.Copy | ir.Fill):
                names.add(node.target.pointer)
            elif isinstance(node, ir.Call):
                helper = self.plan.module.helper(node.name)
                for index, argument in enumerate(node.arguments):
                    if isinstance(argument, ir.Address) and helper is not None and not helper.params[index].const:
                        names.add(argument.pointer)
        while True:
            more = set()
            for node in ir.walk(*inside):
                if isinstance(node, ir.Point) and node.source is not None and (node.name in names or not node.const):
                    more.add(node.source.pointer)
            if more <= names:
                return names
            names |= more

    def _ordered(self, names: Iterable[str]) -> list[str]:
        order = {name: position for position, name in enumerate(self.plan.symbols)}
        return sorted((n for n in names if n in order), key=lambda n: order[n])

    def add_kernel(self, name: str, scope: KernelScope, lines: Sequence[str], bounds: int = 0) -> None:
        """Write a kernel; `bounds` is its block size where it is fixed."""
        launch = f" __launch_bounds__({bounds})" if bounds else ""
        head = f"static __global__ void{launch} {name}({', '.join(scope.parameters)})"
        self.kernels.append("\n".join([head, "{", *(INDENT + o for o in scope.opening), *lines, "}"]))

    def launch(self, name: str, grid: str, block: str, scope: KernelScope, depth: int) -> str:
        """The launch of a kernel on the caller's stream."""
        return f"{INDENT * depth}{name}<<<{grid}, {block}, 0, stream>>>({', '.join(scope.arguments)});"

    # Steps ----------------------------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step], depth: int) -> list[str]:
        """Host lines of steps."""
        lines: list[str] = []
        for step in steps:
            lines += self.step(step, depth)
        return lines

    def step(self, step: Step, depth: int) -> list[str]:
        """Host lines of one step; its kernels are added on the way."""
        from cudaperf_agent.codegen import emit_host, emit_parallel, emit_privatised, emit_reduce, emit_rows, emit_tiled
        from cudaperf_agent.codegen.rules.chunks import emit_scan_sums

        pad = INDENT * depth
        if isinstance(step, HostStatement):
            return emit_host.host_statement(self, step.statement, depth)
        if isinstance(step, Fetch):
            return emit_host.fetch(self, step, depth)
        if isinstance(step, HostLoop):
            return emit_host.host_loop(self, step, depth)
        if isinstance(step, HostBranch):
            return emit_host.host_branch(self, step, depth)
        if isinstance(step, Finish):
            return [f"{pad}return {_STATUS};"]
        if isinstance(step, ScalarWork):
            return self._scalar_work(step, depth)
        if isinstance(step, Parallel):
            if self.strategy.rows == "warp" and step.rows:
                self.applied.add("rows")
                return emit_rows.emit_rows(self, step, depth)
            for needs, wanted, special in (
                ("tiled", self.strategy.tiled, emit_tiled.emit_tiled),
                ("privatised", self.strategy.privatised, emit_privatised.emit_privatised),
            ):
                if wanted:
                    try:
                        lines = special(self, step, depth)
                    except NotApplicable:
                        continue
                    self.applied.add(needs)
                    return lines
            return emit_parallel.emit(self, step, depth)
        if isinstance(step, Reduce):
            if self.strategy.tree:
                self.applied.add("tree")
            return emit_reduce.emit(self, step, depth)
        return emit_scan_sums(self, step, depth)

    def _scalar_work(self, step: ScalarWork, depth: int) -> list[str]:
        name = self.kernel_name("scalars")
        scope, lines = self.scalar_lines(step.statements, 1)
        if not lines:
            return []
        self.add_kernel(name, scope, lines)
        return [self.launch(name, "1", "1", scope, depth)]

    def scalar_lines(
        self, statements: Sequence[ir.Stmt], depth: int, given: Iterable[str] = ()
    ) -> tuple[KernelScope, list[str]]:
        """Statements on device scalars: the scope they need, and their lines with the values stored at the end."""
        work = [s for s in statements if not (isinstance(s, ir.Declare) and s.init is None and s.values is None)]
        scope = self.scope(work, given)
        printer = self.printer()
        lines = printer.block(work, depth)
        changed = stored_scalars(work) | declared(work)
        for name in self._ordered(changed & self.shared):
            value = self.value_names[name]
            declaration = f"{spelled(self.plan.symbols[name].type)} *{value}"
            if value in scope.arguments:
                scope.parameters[scope.arguments.index(value)] = declaration
            else:
                scope.add(declaration, value)
            lines.append(f"{INDENT * depth}*{value} = {name};")
        return scope, lines

    def private_copy(self, step: Parallel | Reduce) -> Sequence[ir.Stmt]:
        """The nest's statement, as `scope` wants it."""
        return (replace(step.nest.levels[0].loop, body=step.nest.inner),)


_STATUS = "@STATUS@"
