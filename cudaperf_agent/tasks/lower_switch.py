"""``switch`` as a chain of ``if``: each section with what it falls through to, its ``break`` taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import evaluate_constant
from cudaperf_agent.tasks.lower_types import CannotLower, line_of

MAX_SECTIONS = 64
"""Sections of one switch; the chain is nested as deep."""
_RUN = 3
"""So many labels in a row become one range."""


@dataclass
class Section:
    """What stands behind one group of labels."""

    labels: list[int] = field(default_factory=list)
    default: bool = False
    cursors: list[Any] = field(default_factory=list)
    line: int = 0


def sections_of(body: Any, line: int) -> list[Section]:
    """The sections of a switch's body, in order.

    Raises:
        CannotLower: For labels inside nested blocks, ranges, and statements before the first label.
    """
    if body.kind.name != "COMPOUND_STMT":
        raise CannotLower("a switch whose body is no block is not supported", line)
    sections: list[Section] = []
    for child in body.get_children():
        inner = child
        if inner.kind.name in ("CASE_STMT", "DEFAULT_STMT"):
            sections.append(Section(line=line_of(child)))
        elif not sections:
            raise CannotLower("a statement before the first `case` is not supported", line_of(child))
        while inner.kind.name in ("CASE_STMT", "DEFAULT_STMT"):
            parts = list(inner.get_children())
            if inner.kind.name == "CASE_STMT":
                if len(parts) == 3:
                    raise CannotLower("a range of `case` values is not supported", line_of(inner))
                value = evaluate_constant(parts[0])
                if value is None or len(parts) != 2:
                    raise CannotLower("this form of `case` is not supported", line_of(inner))
                sections[-1].labels.append(int(value))
            else:
                sections[-1].default = True
            inner = parts[-1]
        sections[-1].cursors.append(inner)
    if len(sections) > MAX_SECTIONS:
        raise CannotLower(f"a switch of more than {MAX_SECTIONS} sections is not supported", line)
    return sections


def chain(
    selector: ir.Ref,
    sections: list[Section],
    lower: Callable[[Any], tuple[ir.Stmt, ...]],
    line: int,
) -> tuple[ir.Stmt, ...]:
    """The switch over a value that its sections do not change.

    Args:
        selector: The value.
        sections: From `sections_of`.
        lower: Lowers one statement; its ``break`` of the switch stays an `ir.Break`.
        line: For messages.

    Raises:
        CannotLower: A ``break`` stands where taking it out would need a jump.
    """
    own = [tuple(s for cursor in section.cursors for s in lower(cursor)) for section in sections]
    full: list[tuple[ir.Stmt, ...]] = []
    for position in range(len(sections)):
        text: tuple[ir.Stmt, ...] = ()
        for statements in own[position:]:
            text = (*text, *statements)
            if text and leaves(text[-1]):
                break
        full.append(_without_breaks(text))
    made: tuple[ir.Stmt, ...] = next((f for s, f in zip(sections, full, strict=True) if s.default), ())
    for section, statements in reversed(list(zip(sections, full, strict=True))):
        if not section.default:  # labels beside `default` choose what the default chooses
            made = (ir.If(_chosen(selector, section.labels, line), statements, made, section.line),)
        elif section.labels:
            continue
    return made


def leaves(statement: ir.Stmt) -> bool:
    """Whether control never runs off the end of a statement."""
    if isinstance(statement, ir.If):
        return all(bool(b) and leaves(b[-1]) for b in (statement.then, statement.otherwise))
    return isinstance(statement, ir.Break | ir.Continue | ir.Return)


def _chosen(selector: ir.Ref, labels: list[int], line: int) -> ir.Expr:
    tests: list[ir.Expr] = []
    rest = sorted(labels)
    while rest:
        count = 1
        while count < len(rest) and rest[count] == rest[0] + count:
            count += 1
        run, rest = (rest[:count], rest[count:]) if count >= _RUN else (rest[:1], rest[1:])
        first, last = (ir.Const(value, selector.type, line) for value in (run[0], run[-1]))
        if len(run) == 1:
            tests.append(ir.Binary("==", selector, first, ir.INT, line))
        else:
            low = ir.Binary(">=", selector, first, ir.INT, line)
            tests.append(ir.Binary("&&", low, ir.Binary("<=", selector, last, ir.INT, line), ir.INT, line))
    result = tests[0]
    for test in tests[1:]:
        result = ir.Binary("||", result, test, ir.INT, line)
    return result


def _without_breaks(statements: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The statements with each ``break`` of the switch, which only skips what follows, expressed by branches."""
    for position, statement in enumerate(statements):
        rest = statements[position + 1 :]
        if isinstance(statement, ir.Break):
            return statements[:position]
        if not isinstance(statement, ir.If) or not _breaks(statement):
            continue
        yes, no = statement.then, statement.otherwise
        if rest and not (yes and leaves(yes[-1])) and not (no and leaves(no[-1])):
            raise CannotLower("a `break` deep inside a switch is not supported", statement.line)
        if rest:
            yes, no = ((*b, *rest) if not (b and leaves(b[-1])) else b for b in (yes, no))
        changed = replace(statement, then=_without_breaks(yes), otherwise=_without_breaks(no))
        return (*statements[:position], changed)
    return statements


def _breaks(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.If):
        return any(_breaks(s) for s in (*statement.then, *statement.otherwise))
    return isinstance(statement, ir.Break)
