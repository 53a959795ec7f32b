"""From the loop IR to a plan: which loops become launches, reductions or host loops, proven, or declined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from cudaperf_agent.codegen.accesses import Domain
from cudaperf_agent.codegen.dependence import Carried, carried, meets_earlier
from cudaperf_agent.codegen.direct import direct
from cudaperf_agent.codegen.known import Context, Known
from cudaperf_agent.codegen.nests import (
    all_steps,
    declared_by,
    ends_in_return,
    has_jumps,
    has_loop,
    is_moved,
    is_parallel,
    known_value,
    leaves_early,
    nest_of,
    stores_memory,
)
from cudaperf_agent.codegen.placement import device_scalars, on_device
from cudaperf_agent.codegen.scalars import (
    carried_scalars,
    declared,
    flow,
    reads,
    stored_scalars,
)
from cudaperf_agent.codegen.steps import (
    Declined,
    Fetch,
    Finish,
    HostBranch,
    HostLoop,
    HostStatement,
    Nest,
    OnDevice,
    Plan,
    Reduce,
    ScalarWork,
    Step,
)
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Module

T = TypeVar("T")


def make_plan(module: Module, extents: Mapping[str, str] | None = None) -> Plan:
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


class Planner(Known):
    """Plans one entry."""

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
        self.host_value(statement.name, statement.init)
        return [HostStatement(statement)]

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

    # Loops ----------------------------------------------------------------------------------------------------

    def _loop(self, loop: ir.For, context: Context, following: Sequence[ir.Stmt]) -> list[Step]:
        from cudaperf_agent.codegen.rules import first_rule, last_rule
        from cudaperf_agent.codegen.rules.search import search

        if leaves_early(loop.body):
            return search(self, loop, context, following)
        nest = nest_of(loop)
        shared = carried_scalars(nest.inner, nest.variables, context.live - declared_by(nest))
        accesses = self.accesses(nest, context)
        found = carried(accesses, nest.variables)
        launch = direct(self, nest, shared, found, accesses, context)
        if launch is not None:
            return launch
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
