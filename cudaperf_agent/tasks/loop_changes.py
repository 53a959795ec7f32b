"""What a statement does to control and to variables, without walking it: jumps, and how a loop changes counters."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaperf_agent.tasks.c_types import is_pointer
from cudaperf_agent.tasks.poly import Poly
from cudaperf_agent.tasks.syntax import Expr, Stmt, is_integer


@dataclass(slots=True)
class Change:
    """How a loop changes a variable: by an unchanging step, in so many places, always or only sometimes."""

    written: list[Step] = field(default_factory=list)
    steps: list[Poly] = field(default_factory=list)
    regular: bool = True
    constant: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """``±1``, or ``±`` the value of an expression."""

    sign: int
    by: Expr | None = None


def pointer_sources(node: Stmt) -> set[int]:
    """Names in the values that a loop assigns to pointers."""
    sources: list[Expr] = []
    for statement in node.walk():
        sources += [v.init for v in statement.variables if v.init is not None and is_pointer(v.ctype)]
    for top in node.expressions():
        sources += [e.args[1] for e in top.walk() if e.kind == "assign" and e.ctype.kind.name == "POINTER"]
    return {e.key for s in sources for e in s.walk() if e.kind == "name"}


def leaves(node: Stmt) -> bool:
    """Whether control never goes on after it."""
    if node.kind in ("return", "break", "continue", "goto"):
        return True
    if node.kind == "block":
        return any(leaves(s) for s in node.body)
    return node.kind == "if" and len(node.body) == 2 and all(leaves(b) for b in node.body)


def jumps(node: Stmt, loop_level: bool = True) -> bool:
    """Whether it may leave the enclosing statement by a jump; without `loop_level` only by one that leaves loops."""
    if node.kind in ("return", "goto"):
        return True
    if node.kind in ("break", "continue"):
        return loop_level
    inner = loop_level and node.kind not in ("for", "while", "do")
    return any(jumps(s, inner) for s in node.body)


def exits(node: Stmt) -> bool:
    """Whether a loop body can end its loop early."""
    if node.kind in ("return", "goto", "break"):
        return True
    if node.kind in ("for", "while", "do", "switch"):
        return any(s.kind in ("return", "goto") for s in node.walk())
    return any(exits(s) for s in node.body)


def changes_of(node: Stmt) -> dict[int, Change]:
    """The variables that a loop (its condition, body and step) changes."""
    changes: dict[int, Change] = {}
    for top in [e for e in (node.cond, node.step) if e is not None]:
        _note_changes(top, changes, always=True)
    may_skip = node.kind != "for" and any(_continues(b) for b in node.body)
    for statement in node.body:
        _scan(statement, changes, always=not may_skip)
    for change in changes.values():
        change.regular = change.regular and change.constant and len(change.written) == 1
    return changes


def changed_in(node: Expr) -> set[int]:
    """The variables that an expression changes."""
    changes: dict[int, Change] = {}
    _note_changes(node, changes, always=False)
    return set(changes)


def _continues(node: Stmt) -> bool:
    if node.kind == "continue":
        return True
    return node.kind not in ("for", "while", "do") and any(_continues(s) for s in node.body)


def _scan(node: Stmt, changes: dict[int, Change], always: bool) -> None:
    here = always and node.kind in ("block", "expr", "decl")
    for variable in node.variables:
        changes.setdefault(variable.key, Change()).constant = False
        if variable.init is not None:
            _note_changes(variable.init, changes, here)
    for top in (node.cond, node.step):
        if top is not None:
            _note_changes(top, changes, here)
    for statement in (*([node.init] if node.init else []), *node.body):
        _scan(statement, changes, here)


def _note_changes(node: Expr, changes: dict[int, Change], always: bool) -> None:
    step: Step | None = None
    target: Expr | None = None
    if node.kind == "unary" and node.op in ("p++", "p--", "++", "--"):
        target, step = node.args[0], Step(1 if "+" in node.op else -1)
    elif node.kind == "assign":
        target, step = node.args[0], _constant_step(node)
    elif node.kind == "unary" and node.op == "&":
        target = node.args[0]
    if target is not None and target.kind == "name":
        change = changes.setdefault(target.key, Change())
        if step is None:
            change.constant = False
        else:
            change.written.append(step)
            change.regular = change.regular and always
    if node.kind == "ternary" or (node.kind == "binary" and node.op in ("&&", "||")):
        _note_changes(node.args[0], changes, always)
        for argument in node.args[1:]:
            _note_changes(argument, changes, False)
        return
    for argument in node.args:
        _note_changes(argument, changes, always)


def _constant_step(node: Expr) -> Step | None:
    target, source = node.args
    if node.op in ("+=", "-=") and _plain(source):
        return Step(1 if node.op == "+=" else -1, source)
    if node.op == "=" and source.kind == "binary" and source.op in ("+", "-") and target.kind == "name":
        left, right = source.args
        if left.kind == "name" and left.key == target.key and _plain(right):
            return Step(1 if source.op == "+" else -1, right)
        if source.op == "+" and right.kind == "name" and right.key == target.key and _plain(left):
            return Step(1, left)
    return None


def _plain(node: Expr) -> bool:
    """Whether evaluating it touches no memory and changes nothing."""
    return all(e.kind in ("name", "const", "cast", "binary") and is_integer(e.ctype) for e in node.walk())
