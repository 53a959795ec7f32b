"""Conditions that also do something, ``while (n--)`` or ``if ((c = *s++) != 0)``, as tests with statements around them.

A post-increment takes effect between the test and what follows it, so it stands on both ways on: at the head of
the branch that leaves, and after the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import binary_operator
from cudaperf_agent.tasks.lower_declare import Declarations


@dataclass(frozen=True, slots=True)
class Test:
    """A condition: what happens before it is tested, the value, and what happens after it, either way."""

    before: tuple[ir.Stmt, ...]
    value: ir.Expr
    after: tuple[ir.Stmt, ...]


class Conditions(Declarations):
    """Lowers the conditions of one function."""

    def pure(self, cursor: Any) -> ir.Expr:
        """A condition without side effects.

        Raises:
            CannotLower: It has some.
        """
        return self.expressions._conditional(cursor)

    def test(self, cursor: Any) -> Test:
        """A condition that may have side effects, though none behind ``&&``, ``||`` or ``?``."""
        before, made, after = self._sides(lambda: [self.expressions.value(cursor)])
        return Test(before, made[0], after)

    def leaving(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        """Statements at the head of a loop that end it where the condition does not hold."""
        statements: list[ir.Stmt] = []
        for test in self.conjuncts(cursor):
            stop = ir.If(ir.Unary("!", test.value, ir.INT, line), (*test.after, ir.Break(line)), (), line)
            statements += [*test.before, stop, *test.after]
        return tuple(statements)

    def conjuncts(self, cursor: Any) -> list[Test]:
        """The parts of a condition joined by ``&&``, in order."""
        while cursor.kind.name == "PAREN_EXPR":
            cursor = next(cursor.get_children())
        if cursor.kind.name == "BINARY_OPERATOR" and binary_operator(cursor) == "&&":
            left, right = cursor.get_children()
            return [*self.conjuncts(left), *self.conjuncts(right)]
        return [self.test(cursor)]


def always(line: int) -> ir.Const:
    """The condition of a loop that is left from inside."""
    return ir.Const(1, ir.INT, line)


def continues(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a loop's body has a ``continue`` of that loop."""
    for statement in body:
        if isinstance(statement, ir.Continue):
            return True
        if isinstance(statement, ir.If) and continues((*statement.then, *statement.otherwise)):
            return True
    return False
