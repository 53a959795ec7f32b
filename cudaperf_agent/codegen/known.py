"""What a planner knows of the entry where a statement stands: names, facts on sizes, and accesses of a nest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.accesses import Access, Alias, Constraint, Domain
from cudaperf_agent.codegen.affine import Poly, parsed
from cudaperf_agent.codegen.collector import Collector
from cudaperf_agent.codegen.nests import sunk, symbols_of
from cudaperf_agent.codegen.scalars import reads, stored_scalars
from cudaperf_agent.codegen.steps import RESULT, Declined, Nest, OnDevice, Symbol
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Module
from cudaperf_agent.tasks.model import CType


@dataclass(frozen=True)
class Context:
    """What is known where a statement stands.

    Attributes:
        facts: Constraints on sizes and host loop variables that hold here.
        live: Scalars that may be read after the statements at hand.
        loops: Whether a host loop encloses them.
    """

    facts: tuple[Constraint, ...] = ()
    live: frozenset[str] = frozenset()
    in_loop: bool = False


class Known:
    """The entry's names, and what holds of them; `codegen.plan.Planner` adds the statements.

    Args:
        module: The lowered C.
        extents: Elements of each buffer as C expressions, where known.
        device: Scalars that are known to live in device memory.

    Raises:
        Declined: A file-scope variable is written.
    """

    def __init__(self, module: Module, extents: Mapping[str, str], device: frozenset[str] = frozenset()) -> None:
        self.module = module
        self.terms: dict[str, str] = {}
        self.extents = {name: known for name, text in extents.items() if (known := parsed(text)) is not None}
        entry = module.entry
        self.symbols = symbols_of(entry)
        self.buffers: dict[str, tuple[ir.Expr | None, ...]] = {p.name: p.dims for p in entry.params if p.pointer}
        self.buffers |= {t.name: tuple(ir.Const(d, ir.INT) for d in t.dims) for t in entry.tables}
        self.aliases: dict[str, Alias] = {}
        self.env: dict[str, Poly | None] = {}
        self.defined: list[Constraint] = []
        loops = [n for n in ir.walk(*entry.body) if isinstance(n, ir.For) and n.declared]
        self.changed = stored_scalars(entry.body) - {loop.variable for loop in loops}
        self.device: set[str] = set(device)
        written = assigned(entry.body)
        for table in entry.tables:
            if table.name in written:
                raise Declined(f"the file-scope variable '{table.name}' is written", entry.line)

    # New names --------------------------------------------------------------------------------------------------

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.symbols or self.module.helper(name) is not None:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def new_scalar(self, wanted: str, kind: CType) -> ir.Ref:
        """A new variable in device memory."""
        ref = self.new_host_scalar(wanted, kind)
        self.device.add(ref.name)
        return ref

    def new_host_scalar(self, wanted: str, kind: CType) -> ir.Ref:
        """A new variable of the host."""
        name = self._fresh(wanted)
        self.symbols[name] = Symbol(name, kind)
        return ir.Ref(name, kind)

    def new_buffer(self, wanted: str, kind: CType) -> str:
        """A new buffer in device memory."""
        name = self._fresh(wanted)
        self.symbols[name] = Symbol(name, kind, True)
        self.buffers[name] = ()
        return name

    def need_on_device(self, names: Iterable[str]) -> None:
        """Have the plan begun anew if a kernel computes scalars that were taken for the host's.

        Raises:
            OnDevice: It must be.
        """
        missing = frozenset(names) - self.device
        if missing:
            raise OnDevice(missing)

    def result_place(self, line: int) -> ir.Load:
        """Where the returned value goes."""
        returns = self.module.entry.returns
        if returns is None:
            raise Declined("a function that returns nothing returns a value", line)
        return ir.Load(RESULT, (ir.Const(0, ir.INT),), returns, line)

    # Facts ------------------------------------------------------------------------------------------------------

    def _collector(self, piece: Sequence[ir.Stmt]) -> Collector:
        varying = assigned(tuple(piece))
        collector = Collector(self.module, self.buffers, set(varying), self.aliases)
        # One name means one term in all facts of the plan, whichever collector made them.
        collector.names.terms = self.terms
        collector.env = {k: v for k, v in self.env.items() if k not in varying}
        return collector

    def accesses(self, nest: Nest, context: Context) -> list[Access]:
        """Accesses of a nest with all declarations sunk into its body."""
        collector = self._collector((nest.rebuilt(),))
        domain = Domain((), (), (*self.defined, *context.facts))
        for level in nest.levels:
            collector.read(level.loop.start, domain)
            collector.read(level.loop.bound, domain)
            domain = collector.inside(level.loop, domain)
            for statement in level.prefix:
                collector.statement(statement, domain)
        # Loads in bounds and declarations happen in every iteration of the nest once they are sunk.
        early = collector.accesses
        collector.accesses = [replace(a, domain=sunk(a.domain, domain)) for a in early]
        collector.block(nest.body, domain)
        return collector.accesses

    def _facts(self, condition: ir.Expr, context: Context, *, negate: bool = False) -> tuple[Constraint, ...]:
        collector = self._collector(())
        domain = collector.holds(condition, Domain((), (), (*self.defined, *context.facts)), negate=negate)
        # What is assigned somewhere may have another value by the time that the fact is used.
        kept = tuple(c for c in domain.constraints if c in context.facts or not c.poly.names() & self.changed)
        return kept if not domain.free else context.facts

    def host_value(self, name: str, value: ir.Expr | None) -> None:
        """Note what a variable of the host is, if it is only ever set where it is declared."""
        stores = [
            n
            for n in ir.walk(*self.module.entry.body)
            if (isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref) and n.target.name == name)
            or (isinstance(n, ir.For) and n.variable == name)
        ]
        if stores or value is None:
            return
        collector = self._collector(())
        known = collector._poly(value, Domain())
        if known is not None and not collector._fresh and not known.names() & self.changed:
            # A fact, not a substitution: a width ``w = n + 1`` keeps its name, so that ``y*w + x`` keeps its shape.
            self.defined += [Constraint(Poly.name(name) - known, equal=True), *collector._extra]

    def within(self, loop: ir.For, context: Context) -> Context:
        """The context of a host loop's body."""
        domain = self._collector((loop,)).inside(loop, Domain((), (), (*self.defined, *context.facts)))
        kept = tuple(
            c for c in domain.constraints if not c.poly.names() & (self.changed - {loop.variable}) or c in context.facts
        )
        return Context(context.facts if domain.free else kept, context.live, True)

    def ends(self, loop: ir.For, context: Context) -> tuple[Poly | None, Poly | None, Domain]:
        """Start and bound of a loop as polynomials in sizes, and what holds before it."""
        collector = self._collector((loop,))
        domain = Domain((), (), (*self.defined, *context.facts))
        start, bound = collector._poly(loop.start, domain), collector._poly(loop.bound, domain)
        return start, bound, collector.take_free(domain)

    def mappable(self, nest: Nest, variable: str, outer: Sequence[str]) -> bool:
        """Whether the host can compute how far a loop of the nest ranges, over all turns of the loops around it."""
        loop = nest.level(variable).loop
        if any(isinstance(n, ir.Load | ir.Call) for n in ir.walk(loop.start, loop.bound)):
            return False
        needs = reads(loop.start) | reads(loop.bound)
        if needs & self.device:
            return False
        inside = {s.name for level in nest.levels for s in level.prefix if isinstance(s, ir.Declare | ir.Point)}
        if needs & inside:
            return False
        others = set(needs & set(nest.variables))
        return not others or (abs(loop.step) == 1 and self._monotone(loop, others, nest))

    def _monotone(self, loop: ir.For, others: set[str], nest: Nest) -> bool:
        """Whether the ends of a range that depends on other loops are extreme at the ends of those loops."""
        collector = self._collector((nest.rebuilt(),))
        for expr in (loop.start, loop.bound):
            poly = collector._poly(expr, Domain(nest.variables))
            if poly is None or collector._fresh or not poly.affine_in(set(nest.variables)):
                return False
        return all(
            not (reads(nest.level(o).loop.start) | reads(nest.level(o).loop.bound)) & set(nest.variables)
            for o in others
        )
