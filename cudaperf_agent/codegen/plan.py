"""From the loop IR to a plan: which loops become launches, reductions or host loops, proven, or declined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cudaperf_agent.codegen.accesses import Access, Alias, Constraint, Domain
from cudaperf_agent.codegen.affine import Poly, parsed
from cudaperf_agent.codegen.collector import Collector
from cudaperf_agent.codegen.dependence import Carried, carried, meets_earlier
from cudaperf_agent.codegen.nests import (
    all_steps,
    declared_by,
    ends_in_return,
    grows,
    has_jumps,
    has_loop,
    is_moved,
    is_parallel,
    known_value,
    leaves_early,
    nest_of,
    stores_memory,
    sunk,
    symbols_of,
)
from cudaperf_agent.codegen.placement import device_scalars, on_device
from cudaperf_agent.codegen.rows import row_parts
from cudaperf_agent.codegen.scalars import (
    carried_scalars,
    declared,
    find_reductions,
    flow,
    reads,
    stored_scalars,
)
from cudaperf_agent.codegen.steps import (
    RESULT,
    Declined,
    Fetch,
    Finish,
    HostBranch,
    HostLoop,
    HostStatement,
    Nest,
    OnDevice,
    Parallel,
    Plan,
    Reduce,
    ScalarWork,
    Step,
    Symbol,
)
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.model import CType, TypeKind

MAX_MAPPED = 3
"""Grids have three dimensions."""

T = TypeVar("T")
_LOOP_TYPES = (TypeKind.INT, TypeKind.UINT)


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


def make_plan(module: ir.Module, extents: Mapping[str, str] | None = None) -> Plan:
    """Plan the entry of a module.

    Args:
        module: The lowered C.
        extents: Elements of each buffer as C expressions, where known.

    Raises:
        Declined: With the reason and the line where a proof failed.
    """
    return begun_anew(lambda device: Planner(module, extents or {}, device).plan())


def begun_anew(attempt: Callable[[frozenset[str]], T]) -> T:
    """What `attempt` makes by a `Planner`, given the scalars that kernels compute, of which each try may find more."""
    device: frozenset[str] = frozenset()
    while True:
        try:
            return attempt(device)
        except OnDevice as found:
            device |= found.names


class Planner:
    """Plans one entry."""

    def __init__(self, module: ir.Module, extents: Mapping[str, str], device: frozenset[str] = frozenset()) -> None:
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

    def plan(self) -> Plan:
        """The whole plan."""
        body = self.module.entry.body
        self.device = device_scalars(body, self.device)
        steps = self.block(body, Context())
        if not any(is_parallel(s) for s in all_steps(steps)):
            raise Declined("nothing in the function can be spread over threads", self.module.entry.line, vague=True)
        roots = {name: alias.root for name, alias in self.aliases.items()}
        sizes = {name: size for name, extent in self.extents.items() if (size := extent.constant) is not None}
        return Plan(self.module, tuple(steps), self.symbols, frozenset(self.device), roots, sizes)

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

    # Blocks ---------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ir.Stmt], context: Context) -> list[Step]:
        """Plan statements that the host reaches in order."""
        steps: list[Step] = []
        for position, statement in enumerate(statements):
            rest = flow(statements[position + 1 :])
            inner = replace(context, live=rest.exposed | context.live)
            steps += self.statement(statement, inner, statements[position + 1 :])
            if steps and isinstance(steps[-1], Finish):
                break
            if isinstance(statement, ir.If) and not statement.otherwise and ends_in_return(statement.then):
                context = replace(context, facts=self._facts(statement.condition, context, negate=True))
        return _merged(steps)

    def statement(self, statement: ir.Stmt, context: Context, following: Sequence[ir.Stmt]) -> list[Step]:
        """Plan one statement."""
        if isinstance(statement, ir.Declare):
            return self._declare(statement, context)
        if isinstance(statement, ir.Assign):
            return self._assign(statement)
        if isinstance(statement, ir.Point):
            return self._point(statement)
        if isinstance(statement, ir.Allocate | ir.Release | ir.Copy | ir.Fill):
            return self._memory(statement)
        if isinstance(statement, ir.For):
            return self._loop(statement, context, following)
        if isinstance(statement, ir.While):
            return self._host_loop(statement, context)
        if isinstance(statement, ir.If):
            return self._branch(statement, context)
        if isinstance(statement, ir.Return):
            return self._finish(statement)
        if isinstance(statement, ir.Break | ir.Continue):
            return [HostStatement(statement)]
        raise Declined("this statement has no place between launches", statement.line)

    def _finish(self, statement: ir.Return) -> list[Step]:
        if statement.value is None or self.module.entry.returns is None:
            return [Finish()]
        place = self.result_place(statement.line)
        return [ScalarWork((ir.Assign(place, "=", statement.value, statement.line),)), Finish()]

    def _declare(self, statement: ir.Declare, context: Context) -> list[Step]:
        if statement.dims:
            if context.in_loop:
                raise Declined(f"the array '{statement.name}' is made inside a loop that launches", statement.line)
            if statement.values is not None and any(known_value(v) != 0 for v in statement.values):
                raise Declined(f"the initial values of the array '{statement.name}' are not zero", statement.line)
            self.buffers[statement.name] = statement.dims if len(statement.dims) > 1 else ()
            return [HostStatement(statement)]
        if statement.name in self.device:
            return [ScalarWork((statement,))]
        self._host_value(statement.name, statement.init)
        return [HostStatement(statement)]

    def _host_value(self, name: str, value: ir.Expr | None) -> None:
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

    def _assign(self, statement: ir.Assign) -> list[Step]:
        place = ir.root(statement.target)
        if isinstance(place, ir.Ref) and place.name not in self.device:
            return [HostStatement(statement)]
        return [ScalarWork((statement,))]

    def _point(self, statement: ir.Point) -> list[Step]:
        if statement.source is None:
            return [HostStatement(statement)]
        if on_device(statement.source.indices, self.device):
            raise Declined(f"where '{statement.name}' points depends on values in memory", statement.line)
        if not statement.declares or is_moved(self.module.entry.body, statement.name):
            raise Declined(f"the pointer '{statement.name}' moves between launches", statement.line, vague=True)
        collector = self._collector(())
        collector.statement(statement, Domain())
        self.aliases[statement.name] = collector.aliases[statement.name]
        return [HostStatement(statement)]

    def _memory(self, statement: ir.Allocate | ir.Release | ir.Copy | ir.Fill) -> list[Step]:
        if isinstance(statement, ir.Allocate):
            if not statement.declares and statement.name in self.buffers:
                raise Declined(f"'{statement.name}' is allocated more than once", statement.line)
            self.buffers[statement.name] = ()
        needed = [] if isinstance(statement, ir.Release) else list(ir.children(statement))
        if on_device([n for n in needed if not isinstance(n, ir.Address)], self.device):
            raise Declined("the size of a copy or an allocation depends on values in memory", statement.line)
        return [HostStatement(statement)]

    def _branch(self, statement: ir.If, context: Context) -> list[Step]:
        if not has_loop(statement) and not has_jumps(statement):
            stored = stored_scalars((statement,))
            if (
                stored
                and not stores_memory(statement)
                and not stored & self.device
                and not on_device([statement.condition], self.device)
            ):
                return [HostStatement(statement)]
            return [ScalarWork((statement,))]
        fetches = self._fetches(statement.condition)
        yes = self.block(statement.then, replace(context, facts=self._facts(statement.condition, context)))
        no = self.block(
            statement.otherwise, replace(context, facts=self._facts(statement.condition, context, negate=True))
        )
        return [*fetches, HostBranch(statement.condition, tuple(yes), tuple(no))]

    def _fetches(self, condition: ir.Expr) -> list[Step]:
        for node in ir.walk(condition):
            if isinstance(node, ir.Load) or (isinstance(node, ir.Call) and self.module.helper(node.name)):
                raise Declined("a decision of the host depends on memory", node.line, vague=True)
        return [Fetch(name, self.symbols[name].type) for name in sorted(reads(condition)) if name in self.device]

    def _facts(self, condition: ir.Expr, context: Context, *, negate: bool = False) -> tuple[Constraint, ...]:
        collector = self._collector(())
        domain = collector.holds(condition, Domain((), (), (*self.defined, *context.facts)), negate=negate)
        # What is assigned somewhere may have another value by the time that the fact is used.
        kept = tuple(c for c in domain.constraints if c in context.facts or not c.poly.names() & self.changed)
        return kept if not domain.free else context.facts

    # Loops ----------------------------------------------------------------------------------------------------

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

    def _loop(self, loop: ir.For, context: Context, following: Sequence[ir.Stmt]) -> list[Step]:
        from cudaperf_agent.codegen.rules import first_rule, last_rule
        from cudaperf_agent.codegen.rules.search import search

        if leaves_early(loop.body):
            return search(self, loop, context, following)
        nest = nest_of(loop)
        shared = carried_scalars(nest.inner, nest.variables, context.live - declared_by(nest))
        accesses = self.accesses(nest, context)
        found = carried(accesses, nest.variables)
        direct = self._direct(nest, shared, found, accesses, context)
        if direct is not None:
            return direct
        special = first_rule(self, loop, nest, shared, context)
        if special:
            return special
        apart = self._distributed(loop, context)
        if apart:
            return apart
        try:
            return self._host_loop(loop, context)
        except Declined as inner:
            special = last_rule(self, nest, accesses, context)
            if special:
                return special
            raise self._explained(loop, nest, shared, found, inner) from inner

    def _distributed(self, loop: ir.For, context: Context) -> list[Step]:
        """``for i { stores; for j … }`` as ``for i { stores }`` and then ``for i for j …``; ``[]`` where not legal.

        Legal when no store of an iteration conflicts with the inner loop of an earlier one, which it now precedes.
        """
        *first, inner = loop.body or (None,)
        if not first or not isinstance(inner, ir.For):
            return []
        if not all(isinstance(s, ir.Assign) and isinstance(ir.root(s.target), ir.Load) for s in first):
            return []
        if stored_scalars((inner,)) - declared((inner,)):
            return []
        header = replace(loop, body=())
        collector = self._collector((loop,))
        domain = collector.inside(header, Domain((), (), (*self.defined, *context.facts)))
        collector.block([s for s in first if s is not None], domain)
        early = list(collector.accesses)
        collector.block([inner], domain)
        late = collector.accesses[len(early) :]
        if meets_earlier(early, late, loop.variable):
            return []
        before = replace(loop, body=tuple(s for s in first if s is not None))
        after = replace(loop, body=(inner,))
        try:
            return [*self._loop(before, context, ()), *self._loop(after, context, ())]
        except Declined:
            return []

    def _explained(
        self, loop: ir.For, nest: Nest, shared: set[str], found: dict[str, Carried], inner: Declined
    ) -> Declined:
        if len(nest.levels) > 1 or any(isinstance(n, ir.For | ir.While) for n in ir.walk(*loop.body)):
            return inner
        order = found[loop.variable].order
        if order:
            return Declined(f"the loop cannot run in parallel: {order[0]}", order[0].line)
        if shared:
            name = sorted(shared)[0]
            return Declined(
                f"the loop cannot run in parallel: each iteration needs the '{name}' of the one before",
                next(
                    (n.line for n in ir.walk(*loop.body) if isinstance(n, ir.Assign) and name in reads(n.target)),
                    loop.line,
                ),
            )
        return inner

    def _direct(
        self, nest: Nest, shared: set[str], found: dict[str, Carried], accesses: Sequence[Access], context: Context
    ) -> list[Step] | None:
        """The nest as one launch: parallel loops, updates with atomics, or reductions."""
        stored = frozenset(a.root for a in accesses if a.write)
        if shared:
            reductions = find_reductions(nest.inner, sorted(shared), self.module)
            if isinstance(reductions, str):
                return None
            ordered = any(r.payload for r in reductions)
            spread = 0
            for level in nest.levels[: 1 if ordered else 2]:
                if found[level.variable].order or not self.mappable(nest, level.variable, nest.variables[:spread]):
                    break
                spread += 1
            if not spread or not grows(nest, nest.variables[:spread]):
                return None
            atomic = frozenset(c.root for v in nest.variables[:spread] for c in found[v].updates)
            if not self._atomics_exist(nest, atomic):
                return None
            self.need_on_device(shared)
            return [Reduce(nest, spread, tuple(reductions), (), (), atomic, stored)]
        free = [v for v in nest.variables if not found[v].order and not found[v].updates]
        chosen = self._choose(nest, free)
        if chosen and grows(nest, chosen):
            rows = row_parts(self, nest, context) if len(nest.levels) == 1 else ()
            return [Parallel(nest, chosen, frozenset(), stored, rows)]
        loose = [v for v in nest.variables if not found[v].order]
        chosen = self._choose(nest, loose)
        if chosen and grows(nest, chosen):
            atomic = frozenset(c.root for v in chosen for c in found[v].updates)
            if self._atomics_exist(nest, atomic):
                return [Parallel(nest, chosen, atomic, stored)]
        return None

    def _atomics_exist(self, nest: Nest, atomic: frozenset[str]) -> bool:
        from cudaperf_agent.codegen.atomics import supported

        for node in ir.walk(*nest.inner):
            if isinstance(node, ir.Assign):
                place = ir.root(node.target)
                if isinstance(place, ir.Load):
                    alias = self.aliases.get(place.pointer)
                    names = {place.pointer, alias.root if alias else place.pointer}
                    if (names & atomic or place.pointer in declared(nest.inner)) and atomic and not supported(node):
                        return False
        return True

    def _choose(self, nest: Nest, candidates: Sequence[str]) -> tuple[str, ...]:
        """Loops to spread over the grid: those whose range the host can compute."""
        chosen: list[str] = []
        for variable in candidates:
            if self.mappable(nest, variable, chosen):
                chosen.append(variable)
        growing = [v for v in chosen if grows(nest, (v,))]
        return tuple((growing if len(growing) >= 1 else chosen)[:MAX_MAPPED])

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

    def _host_loop(self, loop: ir.For | ir.While, context: Context) -> list[Step]:
        """A loop that the host runs, if everything in it can be launched or computed by the host."""
        if isinstance(loop, ir.For) and loop.variable in self.device:
            raise Declined(f"'{loop.variable}' counts a loop of the host and is set by a search too", loop.line)
        body_flow = flow(loop.body)
        facts = context.facts
        live = context.live | body_flow.exposed
        tests: list[Step] = []
        if isinstance(loop, ir.For):
            if on_device([loop.start, loop.bound], self.device):
                if any(isinstance(n, ir.Load) for n in ir.walk(loop.start, loop.bound)):
                    raise Declined("the range of a loop that must keep its order depends on memory", loop.line)
                tests = [*self._fetches(loop.start), *self._fetches(loop.bound)]
            facts = self.within(loop, context).facts
        else:
            live |= reads(loop.condition) | flow(loop.update).exposed
            tests = self._fetches(loop.condition)
        saved = dict(self.env), dict(self.aliases)
        self.env = {k: v for k, v in self.env.items() if k not in assigned((loop,))}
        steps = self.block(loop.body, Context(facts, live, True))
        if isinstance(loop, ir.While):
            steps += self.block(loop.update, Context(facts, live, True))
        self.env = saved[0]
        if not any(is_parallel(s) for s in all_steps(steps)):
            raise Declined(
                "the loop keeps its order and nothing in it can be spread over threads", loop.line, vague=True
            )
        return [HostLoop(loop, tuple(steps), tuple(t for t in tests if isinstance(t, Fetch)))]


def _merged(steps: list[Step]) -> list[Step]:
    """Scalar statements joined with their neighbours, and put into the reduction that they prepare or follow."""
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if isinstance(step, ScalarWork) and isinstance(last, ScalarWork):
            merged[-1] = ScalarWork((*last.statements, *step.statements))
        elif isinstance(step, ScalarWork) and isinstance(last, Reduce):
            merged[-1] = replace(last, after=(*last.after, *step.statements))
        elif isinstance(step, Reduce) and isinstance(last, ScalarWork) and _repeatable(last, step):
            merged[-1] = replace(step, before=(*last.statements, *step.before))
        else:
            merged.append(step)
    return merged


def _repeatable(work: ScalarWork, step: Reduce) -> bool:
    """Whether both kernels of a reduction may run the statements: they store no memory the reduction touches."""
    return not any(
        isinstance(n, ir.Assign) and isinstance(ir.root(n.target), ir.Load) for s in work.statements for n in ir.walk(s)
    ) and not (reads(*work.statements) & step.stored)
