"""``while`` loops that count: as a `For` whose variable the body does not change.

Forms, each with a step by a constant and a bound that the loop leaves alone:

* ``while (x < n) { …; x += c; … }``, the step anywhere at the top of the body, also ``do … while``;
* ``while (x--)`` and its kin, which the lowering writes as ``for (;;) { if (!(x > 0)) { x--; break; } x--; … }``, and
  with the step first, or at the end for ``do … while (++x < n)``;
* ``while (i < j) { …; i++; j--; }``: the two meet after ``(j - i + 1) / 2`` turns.

The new variable takes exactly the values that x had when the condition was tested; before the step the body reads it
in place of x, after it the value one step on. After the loop x is set to what it had become. ``x != 0`` counts as
``x > 0`` for what steps down by one, as a start below zero would step on to an overflow, which C leaves undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, own_jumps, reaching, substituted
from cudaperf_agent.codegen.rewrites.sums import Sum, fitted, sum_of
from cudaperf_agent.codegen.rewrites.tidy import negated
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.model import CType, TypeKind

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


class _Limit(NamedTuple):
    """A test ``variable relation bound``."""

    variable: ir.Ref
    relation: str
    bound: ir.Expr


@dataclass(frozen=True, slots=True)
class _Count:
    """A counter: the test of the value ``x``, its step, what the body does before and after the step."""

    variable: ir.Ref
    relation: str
    bound: ir.Expr
    step: int
    before: tuple[ir.Stmt, ...]
    after: tuple[ir.Stmt, ...]
    rest: tuple[ir.Expr, ...] = ()
    ahead: bool = False
    tail: bool = False
    extra: int = 0


def counted_while(loop: ir.While, place: Surroundings, fresh: Fresh) -> tuple[ir.Stmt, ...] | None:
    """The loop as a `For` and what follows it; `None` where it does not count."""
    for found in (*_tested(loop), *_left(loop)):
        made = _made(loop, found, place, fresh)
        if made is not None:
            return made
    return _meeting(loop, place, fresh)


def _tested(loop: ir.While) -> list[_Count]:
    """Counters of a loop with its test in its head or at its end."""
    if own_jumps(loop.body) & {ir.Continue} and (loop.test_last or len(loop.update) != 1):
        return []
    body = (*loop.body, *loop.update)
    tests = conjuncts(loop.condition)
    found = []
    for number, test in enumerate(tests):
        if loop.test_last and len(tests) > 1:
            continue
        for limit in _limits(test):
            at = _step_at(body, limit.variable)
            if at is None:
                continue
            position, step = at
            # Tests in front of this one must not be needed to evaluate it: it is arithmetic, so they are not.
            rest = (*tests[:number], *tests[number + 1 :])
            before, after = body[:position], body[position + 1 :]
            found.append(_Count(*limit, step=step, before=before, after=after, rest=rest, tail=loop.test_last))
    return found


def _left(loop: ir.While) -> list[_Count]:
    """Counters of an endless loop that is left where a stepped counter has reached its bound."""
    known = loop.condition
    if not isinstance(known, ir.Const) or not known.value or (loop.test_last and own_jumps(loop.body) & {ir.Continue}):
        return []
    if loop.update and own_jumps(loop.body) & {ir.Continue}:
        return []
    body = (*loop.body, *loop.update)
    if len(body) < 2:
        return []
    first, second, rest = body[0], body[1], body[2:]
    found = []
    for limit in _leaving(first):
        if len(_then(first)) == 1:  # if (!(x rel b)) break; …; x += c; …
            at = _step_at(body[1:], limit.variable)
            if at is not None:
                before, after = body[1 : at[0] + 1], body[at[0] + 2 :]
                found.append(_Count(*limit, step=at[1], before=before, after=after))
        else:  # if (!(x rel b)) { x += c; break; } x += c; …
            step = _step_of(second, limit.variable.name)
            again = _step_of(_then(first)[0], limit.variable.name) if len(_then(first)) == 2 else None
            if step is not None and again == step:
                found.append(_Count(*limit, step=step, before=(), after=rest, extra=step))
    for limit in _leaving(second):  # x += c; if (!(x rel b)) break; …
        step = _step_of(first, limit.variable.name)
        if step is not None and len(_then(second)) == 1:
            found.append(_Count(*limit, step=step, before=(), after=rest, ahead=True))
    *inside, step_statement, last = body
    for limit in _leaving(last):  # …; x += c; if (!(x rel b)) break;
        step = _step_of(step_statement, limit.variable.name)
        alone = len(_then(last)) == 1 and not own_jumps(tuple(inside)) & {ir.Continue}
        if step is not None and alone:
            found.append(_Count(*limit, step=step, before=tuple(inside), after=(), tail=True))
    return found


def _then(statement: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return statement.then if isinstance(statement, ir.If) else ()


def _leaving(statement: ir.Stmt) -> list[_Limit]:
    """The condition under which ``if (!condition) { …; break; }`` goes on."""
    if not isinstance(statement, ir.If) or statement.otherwise or not statement.then:
        return []
    return _limits(negated(statement.condition)) if isinstance(statement.then[-1], ir.Break) else []


def conjuncts(test: ir.Expr) -> list[ir.Expr]:
    """The parts of a condition that ``&&`` joins."""
    if isinstance(test, ir.Binary) and test.op == "&&":
        return [*conjuncts(test.left), *conjuncts(test.right)]
    return [test]


def _plain(expr: ir.Expr) -> ir.Expr:
    while isinstance(expr, ir.Cast) and expr.implicit and expr.type.kind is not TypeKind.FLOAT:
        expr = expr.operand
    return expr


def _limits(test: ir.Expr) -> list[_Limit]:
    """What may be the counter of a test, with the relation to its bound."""
    bare_test = _plain(test)
    if isinstance(bare_test, ir.Ref) and _counts(bare_test.type):
        return [_Limit(bare_test, "!=", ir.Const(0, bare_test.type, bare_test.line))]
    if not isinstance(bare_test, ir.Binary) or bare_test.op not in _MIRRORED:
        return []
    found: list[_Limit] = []
    for side, other, relation in (
        (bare_test.left, bare_test.right, bare_test.op),
        (bare_test.right, bare_test.left, _MIRRORED[bare_test.op]),
    ):
        mine = _plain(side)
        if isinstance(mine, ir.Ref) and _counts(mine.type) and not _mixes(mine.type, side.type):
            found.append(_Limit(mine, relation, other))
        shifted = _shifted_counter(side)
        if shifted is not None and shifted[1] and _signed(other):
            bound = sum_of(other).plus(Sum(shifted[1]), -1)
            found.append(_Limit(shifted[0], relation, bound.expr()))
    return found


def _signed(expr: ir.Expr) -> bool:
    return expr.type is not None and expr.type.kind is TypeKind.INT


def _shifted_counter(side: ir.Expr) -> tuple[ir.Ref, int] | None:
    """``i + 3`` as the counter and what is added."""
    total = sum_of(side)
    terms = list(total.terms.items())
    if len(terms) != 1 or terms[0][1] != 1 or not _signed(side):
        return None
    term = terms[0][0]
    return (term, total.constant) if isinstance(term, ir.Ref) and _counts(term.type) and _signed(term) else None


def _counts(kind: CType) -> bool:
    return kind.kind in (TypeKind.INT, TypeKind.UINT) and kind.size >= ir.INT.size


def _mixes(mine: CType, compared: CType | None) -> bool:
    """Whether a signed counter is compared as an unsigned number."""
    return mine.kind is TypeKind.INT and compared is not None and compared.kind is TypeKind.UINT


def _step_of(statement: ir.Stmt, name: str) -> int | None:
    """The constant by which a statement steps a variable."""
    if not isinstance(statement, ir.Assign) or not isinstance(statement.target, ir.Ref):
        return None
    if statement.target.name != name:
        return None
    if statement.op in ("+=", "-="):
        by = sum_of(statement.value).plus(Sum(), 1)
        return None if by.terms or not by.constant else by.constant * (1 if statement.op == "+=" else -1)
    if statement.op == "=":
        by = sum_of(statement.value)
        own = next((t for t in by.terms if isinstance(t, ir.Ref) and t.name == name), None)
        return by.constant or None if own is not None and by.terms == {own: 1} else None
    return None


def _step_at(body: Sequence[ir.Stmt], variable: ir.Ref) -> tuple[int, int] | None:
    """Where in a body a variable is stepped, and by how much, if that is all that changes it."""
    steps = [(p, s) for p, one in enumerate(body) if (s := _step_of(one, variable.name)) is not None]
    if len(steps) != 1:
        return None
    position = steps[0][0]
    if variable.name in assigned((*body[:position], *body[position + 1 :])):
        return None
    return steps[0]


def _made(loop: ir.While, found: _Count, place: Surroundings, fresh: Fresh) -> tuple[ir.Stmt, ...] | None:
    variable, kind, step = found.variable, found.variable.type, found.step
    name = variable.name
    inside = (*found.before, *found.after)
    changed = assigned(inside) | {name}
    if name in assigned(inside) or (reads(found.bound) & changed):
        return None
    if any(isinstance(n, ir.Call | ir.Address) for n in ir.walk(found.bound)):
        return None
    leaves = bool(own_jumps(inside) & {ir.Break, ir.Return}) or bool(found.rest)
    relation = found.relation
    if relation == "!=" and abs(step) != 1:
        return None
    if relation == "!=" and not _reads(found.bound) and not leaves:
        if kind.kind is TypeKind.UINT and step > 0:
            return None  # it ends by wrapping round
        relation = ">" if step < 0 else "<"
    if relation != "!=" and (step > 0) != (relation in ("<", "<=")):
        return None
    if found.ahead and kind.kind is TypeKind.UINT:
        return None
    start = reaching(name, place.before) or variable
    if reads(start) & changed:
        start = variable  # what it was set to is something else by the end of the loop
    live = name in place.live
    if live and leaves and (found.after or found.extra or found.ahead or found.tail):
        return None
    moving = replace(variable, name=fresh.name(f"{name}_now", name))
    keeps = live and leaves
    if keeps:
        moving = variable
    opening: list[ir.Stmt] = []
    if keeps and name in reads(start):
        first = ir.Ref(fresh.name(f"{name}_first", name), kind)
        opening.append(ir.Declare(first.name, kind, start, line=loop.line))
        start = first
    stepped = _shifted(moving, step)
    head = tuple(ir.If(ir.Unary("!", t, ir.INT, loop.line), (ir.Break(loop.line),), (), loop.line) for t in found.rest)
    seen = moving if found.ahead else stepped
    body = (
        *(substituted((*head, *found.before), name, moving) if not keeps else (*head, *found.before)),
        *substituted(found.after, name, seen),
    )
    first_value = start
    if found.ahead:
        first_value = fitted(sum_of(start).plus(Sum(step)).expr(), kind)
    bound = found.bound
    if found.tail:
        bound = _at_least_once(start, relation, bound, kind, step)
    made = ir.For(name if keeps else moving.name, kind, not keeps, first_value, relation, bound, step, body, loop.line)
    closing: list[ir.Stmt] = []
    if live and not leaves:
        closing.append(ir.Assign(variable, "=", final_value(made, found.extra), loop.line))
    return (*opening, made, *closing)


def _reads(expr: ir.Expr) -> bool:
    return any(isinstance(n, ir.Ref | ir.Load) for n in ir.walk(expr))


def _shifted(variable: ir.Ref, step: int) -> ir.Expr:
    """The value one step on."""
    if variable.type.kind is TypeKind.UINT:
        sign = "+" if step > 0 else "-"
        return ir.Binary(sign, variable, ir.Const(abs(step), variable.type), variable.type, variable.line)
    return fitted(sum_of(variable).plus(Sum(step)).expr(), variable.type)


def _at_least_once(start: ir.Expr, relation: str, bound: ir.Expr, kind: CType, step: int) -> ir.Expr:
    """A bound under which the first iteration always happens."""
    further = start
    if relation in ("<", ">", "!="):
        further = fitted(sum_of(start).plus(Sum(1 if step > 0 else -1)).expr(), kind)
    order = ">" if step > 0 else "<"
    return ir.Select(ir.Binary(order, bound, start, ir.INT), bound, further, kind)


def final_value(loop: ir.For, extra: int = 0) -> ir.Expr:
    """The value of the variable after a loop that runs to its end, and `extra` more; in the variable's type."""
    kind, unsigned = loop.type, loop.type.kind is TypeKind.UINT
    bound = loop.bound if loop.bound.type == kind else ir.Cast(loop.bound, kind, exact=not unsigned)
    start = loop.start if loop.start.type == kind else ir.Cast(loop.start, kind, exact=not unsigned)

    def plus(expr: ir.Expr, by: int) -> ir.Expr:
        if not by:
            return expr
        if unsigned:
            return ir.Binary("+" if by > 0 else "-", expr, ir.Const(abs(by), kind), kind)
        return fitted(sum_of(expr).plus(Sum(by)).expr(), kind)

    if loop.relation == "!=":
        return plus(bound, extra)
    towards = 1 if loop.step > 0 else -1
    beyond = plus(bound, towards if loop.relation in ("<=", ">=") else 0)
    runs = ir.Binary(loop.relation, start, loop.bound, ir.INT)
    if abs(loop.step) == 1:
        return ir.Select(runs, plus(beyond, extra), plus(start, extra), kind)
    gap = sum_of(beyond).plus(sum_of(start), -1)
    if towards < 0:
        gap = Sum().plus(gap, -1)
    size = abs(loop.step)
    turns = ir.Binary("/", gap.plus(Sum(size - 1)).expr(), ir.Const(size, ir.LONG), ir.LONG)
    reached = sum_of(start).plus(Sum(0, {turns: loop.step})).plus(Sum(extra))
    return ir.Select(runs, fitted(reached.expr(), kind), plus(start, extra), kind)


def joined_bounds(loop: ir.For) -> ir.For | None:
    """``for (i = a; i < n && i < m; i++)`` with one bound, the nearer of both; `None` where it has only one."""
    if not loop.body or loop.relation not in ("<", "<=", ">", ">="):
        return None
    first = loop.body[0]
    for limit in _leaving(first):
        if len(_then(first)) != 1 or limit.variable.name != loop.variable or limit.relation != loop.relation:
            continue
        other, mine = limit.bound, loop.bound
        if reads(other) & (assigned(loop.body) | {loop.variable}) or not _signed(other) or not _signed(mine):
            continue
        if any(isinstance(n, ir.Load | ir.Call) for n in ir.walk(other)):
            continue
        kinds = [side.type for side in (mine, other) if side.type is not None]
        kind = max(kinds, key=lambda k: k.size)
        test = ir.Binary("<" if loop.step > 0 else ">", mine, other, ir.INT, loop.line)
        return replace(loop, bound=ir.Select(test, mine, other, kind), body=loop.body[1:])
    return None


def _meeting(loop: ir.While, place: Surroundings, fresh: Fresh) -> tuple[ir.Stmt, ...] | None:
    """``while (i < j)`` with both stepped: a loop over the number of the turn, the steps left in its body."""
    test = _plain(loop.condition)
    body = (*loop.body, *loop.update)
    if loop.test_last or not isinstance(test, ir.Binary) or test.op not in ("<", ">", "<=", ">="):
        return None
    left, right = _plain(test.left), _plain(test.right)
    if test.op in (">", ">="):
        left, right = right, left
    if not isinstance(left, ir.Ref) or not isinstance(right, ir.Ref) or ir.Continue in own_jumps(body):
        return None
    if left.type != right.type or left.type.kind is not TypeKind.INT or not _counts(left.type):
        return None
    steps = [_step_at(body, side) for side in (left, right)]
    if steps[0] is None or steps[1] is None:
        return None
    closing = steps[0][1] - steps[1][1]
    if closing <= 0:
        return None
    starts = [sum_of(reaching(side.name, place.before) or side) for side in (left, right)]
    gap = starts[1].plus(starts[0], -1).plus(Sum(closing - 1 if test.op in ("<", ">") else closing))
    turns = gap.expr() if closing == 1 else ir.Binary("/", gap.expr(), ir.Const(closing, ir.LONG), ir.LONG)
    turn = fresh.name("turn")
    names = reads(turns)
    if names & (assigned(body) - {left.name, right.name}):
        return None
    # The number of turns is of the values before the loop: it is kept where the loop changes them.
    count = ir.Ref(fresh.name("turns"), ir.LONG)
    kept = ir.Declare(count.name, ir.LONG, turns, line=loop.line)
    return (kept, ir.For(turn, ir.LONG, True, ir.Const(0, ir.LONG), "<", count, 1, body, loop.line))


__all__ = ["conjuncts", "counted_while", "final_value", "joined_bounds"]
