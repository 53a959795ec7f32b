"""Walks statements of the loop IR and records their accesses with iteration domains.

Everything that is not understood is over-approximated: an unknown index becomes a free variable (it may touch any
element), an unknown condition is left out (it may hold). A proof on such a description is a proof on the program, where
out-of-bounds accesses do not happen, as C lets one assume. What integers are worth is in `integers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cudaperf_agent.codegen.accesses import Access, Alias, Constraint, Domain, update_of
from cudaperf_agent.codegen.affine import Poly
from cudaperf_agent.codegen.integers import Integers
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Module


class Collector(Integers):
    """Walks statements and records their accesses.

    Args:
        module: For the bodies of helpers.
        params: Buffers of the entry with their dimensions.
        varying: Scalars that the piece assigns: without a known value they are unknown. All others are sizes.
        aliases: Where the pointers made outside the piece point.
    """

    def __init__(
        self,
        module: Module,
        buffers: Mapping[str, tuple[ir.Expr | None, ...]],
        varying: set[str],
        aliases: Mapping[str, Alias],
    ) -> None:
        super().__init__(varying)
        self.module = module
        self.buffers = dict(buffers)
        self.aliases: dict[str, Alias] = dict(aliases)
        self.private: set[str] = set()
        self.accesses: list[Access] = []
        self.order = 0
        self._depth = 0

    # Statements -----------------------------------------------------------------------------------------------

    def block(self, statements: Iterable[ir.Stmt], domain: Domain) -> None:
        """Record what statements do."""
        for statement in statements:
            self.statement(statement, domain)
            if isinstance(statement, ir.If) and not statement.otherwise and _leaves(statement.then):
                domain = self.holds(statement.condition, domain, negate=True)

    def statement(self, statement: ir.Stmt, domain: Domain) -> None:
        """Record what one statement does, in execution order."""
        self.order += 1
        if isinstance(statement, ir.Declare):
            self._declare(statement, domain)
        elif isinstance(statement, ir.Assign):
            self._assign(statement, domain)
        elif isinstance(statement, ir.Point):
            self._point(statement, domain)
        elif isinstance(statement, ir.Allocate):
            self.private.add(statement.name)
            self.read(statement.count, domain)
        elif isinstance(statement, ir.For):
            self._loop(statement, domain)
        elif isinstance(statement, ir.While):
            self._unbounded(statement, domain)
        elif isinstance(statement, ir.If):
            self.read(statement.condition, domain)
            self._branch(statement.then, self.holds(statement.condition, domain))
            self._branch(statement.otherwise, self.holds(statement.condition, domain, negate=True))
            self._forget(assigned((statement,)))
        elif isinstance(statement, ir.Return):
            if statement.value is not None:
                self.read(statement.value, domain)
        elif isinstance(statement, ir.Evaluate):
            self.read(statement.call, domain)
        elif isinstance(statement, ir.Copy | ir.Fill):
            self._bulk(statement, domain)

    def _branch(self, statements: tuple[ir.Stmt, ...], domain: Domain) -> None:
        before, aliases = dict(self.env), dict(self.aliases)
        self.block(statements, domain)
        self.env, self.aliases = before, {**self.aliases, **aliases}

    def _forget(self, names: set[str]) -> None:
        for name in names:
            self.env.pop(name, None)
            if name in self.aliases and name not in self.buffers:
                self.aliases[name] = replace(self.aliases[name], offset=None)

    def _loop(self, loop: ir.For, domain: Domain) -> None:
        self.read(loop.start, domain)
        self.read(loop.bound, domain)
        inside = self.inside(loop, domain)
        changed = assigned(loop.body) | {loop.variable}
        self._moving(loop.body)
        before = {k: v for k, v in self.env.items() if k not in changed}
        self.env = dict(before)
        self.varying |= changed
        self.block(loop.body, inside)
        self.env = before
        self._forget({n for n in changed if n in self.aliases and _repoints(loop.body, n)})

    def _unbounded(self, loop: ir.While, domain: Domain) -> None:
        changed = assigned((loop,))
        self._moving((*loop.body, *loop.update))
        before = {k: v for k, v in self.env.items() if k not in changed}
        self.env = dict(before)
        self.varying |= changed
        # An iteration number keeps apart what happens in different turns.
        turn = self.names.free()
        inside = Domain((*domain.dims, turn), domain.free, domain.constraints)
        self.read(loop.condition, inside)
        body = inside if loop.test_last else self.holds(loop.condition, inside)
        self.block(loop.body, body)
        self.block(loop.update, inside)
        self.env = before

    def _moving(self, body: tuple[ir.Stmt, ...]) -> None:
        """Pointers that a loop moves point somewhere into their buffer from its start on."""
        for node in ir.walk(*body):
            if isinstance(node, ir.Point) and not node.declares and node.name in self.aliases:
                self.aliases[node.name] = replace(self.aliases[node.name], offset=None)

    def _declare(self, statement: ir.Declare, domain: Domain) -> None:
        for value in statement.values or ():
            self.read(value, domain)
        if statement.dims:
            self.private.add(statement.name)
            return
        if statement.init is not None:
            self.read(statement.init, domain)
            self._define(statement.name, statement.init, domain, statement.type.size)
        else:
            self.env.pop(statement.name, None)

    def _define(self, name: str, value: ir.Expr, domain: Domain, size: int) -> None:
        fresh, extra = list(self._fresh), list(self._extra)
        known = self._poly(value, domain) if value.type is not None and value.type.size <= max(size, 4) else None
        if self._fresh != fresh or self._extra != extra:
            self._fresh, self._extra = fresh, extra
            known = None
        if known is None:
            self.env.pop(name, None)
            self.varying.add(name)
        else:
            self.env[name] = known

    def _assign(self, statement: ir.Assign, domain: Domain) -> None:
        target = ir.root(statement.target)
        if isinstance(target, ir.Ref):
            self.read(statement.value, domain)
            for node in ir.walk(statement.target):
                if isinstance(node, ir.Element):
                    self.read(node.index, domain)
            if statement.op == "=" and statement.target is target:
                self._define(target.name, statement.value, domain, target.type.size)
            else:
                self.env.pop(target.name, None)
                self.varying.add(target.name)
            return
        if not isinstance(target, ir.Load):
            return
        update, value = update_of(statement)
        if self._depth:
            update, value = None, statement.value  # a helper's update is not made atomic
        self.read(value, domain)
        for index in target.indices:
            self.read(index, domain)
        if statement.op != "=" and update is None:
            self._touch(target.pointer, target.indices, domain, statement.line, write=False)
        self._touch(target.pointer, target.indices, domain, statement.line, write=True, update=update)

    def _point(self, statement: ir.Point, domain: Domain) -> None:
        if statement.source is None:
            self.aliases[statement.name] = Alias(f"?{statement.name}", None)
            return
        for index in statement.source.indices:
            self.read(index, domain)
        place = self._place(statement.source.pointer, statement.source.indices, domain)
        old = self.aliases.get(statement.name)
        if old is not None and not statement.declares and old.root != place.root and not old.root.startswith("?"):
            self.aliases[statement.name] = Alias("?any", None)
            return
        unknown = self._fresh or self._extra
        self._fresh, self._extra = [], []
        self.aliases[statement.name] = Alias(place.root, None if unknown else place.flat)

    def _bulk(self, statement: ir.Copy | ir.Fill, domain: Domain) -> None:
        self.read(statement.count, domain)
        count = self.poly(statement.count, domain)
        domain = self.take_free(domain)
        at = self.names.free()
        inside = Domain(
            (*domain.dims, at),
            domain.free,
            (*domain.constraints, Constraint(Poly.name(at)), Constraint(count - Poly.name(at) - Poly.of(1))),
        )
        moved = ir.Ref(at, ir.LONG)
        if isinstance(statement, ir.Copy):
            self._touch(
                statement.source.pointer, _advanced(statement.source, moved), inside, statement.line, write=False
            )
        else:
            self.read(statement.byte, domain)
        self._touch(statement.target.pointer, _advanced(statement.target, moved), inside, statement.line, write=True)

    # Accesses -------------------------------------------------------------------------------------------------

    def read(self, expr: ir.Expr, domain: Domain) -> None:
        """Record the loads of an expression, those of called helpers included."""
        if isinstance(expr, ir.Load):
            for index in expr.indices:
                self.read(index, domain)
            self._touch(expr.pointer, expr.indices, domain, expr.line, write=False)
        elif isinstance(expr, ir.Call):
            self._call(expr, domain)
        elif isinstance(expr, ir.Select):
            self.read(expr.condition, domain)
            self.read(expr.yes, self.holds(expr.condition, domain))
            self.read(expr.no, self.holds(expr.condition, domain, negate=True))
        elif isinstance(expr, ir.Binary) and expr.op in ("&&", "||"):
            self.read(expr.left, domain)
            self.read(expr.right, self.holds(expr.left, domain, negate=expr.op == "||"))
        else:
            for child in ir.children(expr):
                self.read(child, domain)

    def _call(self, call: ir.Call, domain: Domain) -> None:
        helper = self.module.helper(call.name)
        for argument in call.arguments:
            for index in argument.indices if isinstance(argument, ir.Address) else (argument,):
                self.read(index, domain)
        if helper is None:
            return
        outer_env, outer_aliases, outer_private = self.env, self.aliases, self.private
        outer_varying, outer_buffers = self.varying, self.buffers
        env: dict[str, Poly | None] = {}
        aliases: dict[str, Alias] = {n: a for n, a in outer_aliases.items() if n in outer_buffers}
        for parameter, argument in zip(helper.params, call.arguments, strict=True):
            if isinstance(argument, ir.Address):
                place = self._place(argument.pointer, argument.indices, domain)
                domain = self.take_free(domain)
                aliases[parameter.name] = Alias(place.root, place.flat)
            else:
                env[parameter.name] = self._poly(argument, domain)
                domain = self.take_free(domain)
        self.env, self.aliases, self.private = (
            env,
            aliases,
            {p for p in outer_private if p in {a.root for a in aliases.values()}},
        )
        self.varying = assigned(helper.body) | {p.name for p in helper.params}
        self.buffers = {**outer_buffers, **{p.name: p.dims for p in helper.params if len(p.dims) > 1}}
        self._depth += 1
        try:
            self.block(helper.body, domain)
        finally:
            self._depth -= 1
            self.env, self.aliases, self.private = outer_env, outer_aliases, outer_private
            self.varying, self.buffers = outer_varying, outer_buffers

    def _place(self, pointer: str, indices: tuple[ir.Expr, ...], domain: Domain) -> Access:
        """Buffer and polynomials of an element; free variables wait in `take_free`."""
        polys = tuple(self.poly(i, domain) for i in indices)
        alias = self.aliases.get(pointer)
        dims = self.buffers.get(pointer, ())
        flat: Poly | None = polys[0]
        for position, poly in enumerate(polys[1:], start=1):
            size = dims[position] if position < len(dims) else None
            known = None if size is None else self._poly(size, domain)
            flat = None if known is None or flat is None else flat * known + poly
        if alias is None:
            return Access(pointer, polys if len(polys) > 1 else None, flat, False, None, domain, self.order, 0)
        total = None if alias.offset is None or flat is None else alias.offset + flat
        if total is not None and not self._current(total, domain):
            total = None
        return Access(alias.root, None, total, False, None, domain, self.order, 0)

    def _current(self, poly: Poly, domain: Domain) -> bool:
        """Whether a polynomial speaks only of loops that are running and values that stay."""
        known = {*domain.dims, *domain.free, *self._fresh}
        return all(name in known or name not in self.varying for name in poly.names())

    def _touch(
        self,
        pointer: str,
        indices: tuple[ir.Expr, ...],
        domain: Domain,
        line: int,
        *,
        write: bool,
        update: str | None = None,
    ) -> None:
        place = self._place(pointer, indices, domain)
        if place.root in self.private:
            self._fresh, self._extra = [], []
            return
        self.accesses.append(
            replace(place, write=write, update=update, domain=self.take_free(domain), order=self.order, line=line)
        )


def _advanced(address: ir.Address, by: ir.Expr) -> tuple[ir.Expr, ...]:
    *outer, last = address.indices
    return (*outer, ir.Binary("+", last, by, ir.LONG))


def _leaves(statements: tuple[ir.Stmt, ...]) -> bool:
    return bool(statements) and isinstance(statements[-1], ir.Break | ir.Continue | ir.Return)


def _repoints(body: tuple[ir.Stmt, ...], name: str) -> bool:
    return any(isinstance(n, ir.Point) and n.name == name and not n.declares for n in ir.walk(*body))
