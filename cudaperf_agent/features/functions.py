"""What is known of a function before it is walked: parameters, body, loop-carried assignments, index variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.cursor_kinds import K
from cudaperf_agent.features.libclang import Cursor, is_null, library

LOOPS = frozenset({K.FOR, K.WHILE, K.DO, K.FOR_RANGE})
_BRANCHES = frozenset({K.IF, K.SWITCH, K.CONDITIONAL})


@dataclass(frozen=True, slots=True)
class Assignment:
    """One change of a variable inside a loop.

    Attributes:
        key: The variable.
        operator: ``=``, ``+=``, ``++``, …; ``?`` if something else may change it.
        right: The right side, `None` for ``++`` and unknown changes.
        nested: Whether it lies in an inner loop or branch.
        conditions: Conditions of the branches around it.
        step_size: Bytes of what the variable points to, 1 if it is no pointer.
    """

    key: int
    operator: str
    right: Node | None
    nested: bool
    conditions: tuple[Node, ...]
    step_size: int = 1


@dataclass(frozen=True, slots=True)
class Definition:
    """A function with a body.

    Attributes:
        name: Its name.
        node: The declaration.
        parameters: Parameter declarations in order.
        body: The compound statement.
        index: Keys of variables that only steer addresses and loops.
    """

    name: str
    node: Node
    parameters: tuple[Node, ...]
    body: Node
    index: frozenset[int]


class Definitions:
    """Finds and keeps the definitions of one unit."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Definition | None] = {}
        self._pending: set[tuple[int, int]] = set()

    def of(self, node: Node) -> Definition | None:
        """The definition of a function, method or lambda; `None` if it has no body in the source."""
        key = (node.cursor.data[0] or 0, node.cursor.data[1] or 0)
        if key in self._known:
            return self._known[key]
        if key in self._pending:
            return None
        self._pending.add(key)
        found = self._read(node)
        self._pending.discard(key)
        self._known[key] = found
        return found

    def _read(self, node: Node) -> Definition | None:
        cursor = node.cursor
        if node.kind != K.LAMBDA:
            definition: Cursor = library().clang_getCursorDefinition(cursor)
            if not is_null(definition):
                cursor = definition
            else:
                template = library().clang_getSpecializedCursorTemplate(cursor)
                if is_null(template):
                    return None
        if node.kind != K.LAMBDA and not node.unit.in_source(cursor):
            return None
        tree = node if node.kind == K.LAMBDA else node.unit.tree(Node(cursor, cursor._kind_id, node.unit))
        body = next((c for c in tree.children if c.kind == K.COMPOUND), None)
        if body is None and node.kind != K.LAMBDA:
            template = library().clang_getSpecializedCursorTemplate(cursor)
            if not is_null(template):
                tree = node.unit.tree(Node(template, template._kind_id, node.unit))
                body = next((c for c in tree.children if c.kind == K.COMPOUND), None)
        if body is None:
            return None
        parameters = tuple(c for c in tree.children if c.kind == K.PARM)
        return Definition(node.spelling, tree, parameters, body, self._index_variables(tree))

    def _index_variables(self, tree: Node) -> frozenset[int]:
        """Integer variables that only steer: those that flow into an address or the control of a loop, directly or
        through others, and those that are used in branch conditions alone."""
        feeds: dict[int, list[Node]] = {}
        integers: set[int] = set()
        seeds: list[Node] = []
        conditions: list[Node] = []
        uses: Counter[int] = Counter()
        for node in tree.walk():
            kind = node.kind
            if kind == K.DECL_REF:
                uses[node.target_key] += 1
            elif kind in (K.VAR, K.PARM):
                if node.type().sort == "int":
                    integers.add(node.key)
                    feeds.setdefault(node.key, []).extend(node.children)
            elif kind == K.SUBSCRIPT and len(node.children) == 2:
                seeds.append(node.children[1])
            elif kind in (K.FOR, K.WHILE, K.DO):
                body = node.children[0] if kind == K.DO else node.children[-1]
                seeds.extend(c for c in node.children if c is not body)
            elif kind in _BRANCHES:
                conditions.extend(node.children[:1])
            elif kind in (K.BINARY, K.COMPOUND_ASSIGN):
                operator = node.operator
                if operator in ("+", "-", "+=", "-=") and node.type().sort == "pointer":
                    seeds.append(node)
                if operator.endswith("=") and operator not in ("==", "!=", "<=", ">=") and node.children:
                    target = node.children[0]
                    if target.kind == K.DECL_REF:
                        uses[target.target_key] -= 1
                        feeds.setdefault(target.target_key, []).append(node.children[1])
            elif kind == K.CALL:
                seeds.extend(self._index_arguments(node))
        tested = Counter(key for c in conditions for key in _references(c) if key in integers)
        seeds.extend(n for key, count in tested.items() if count >= uses[key] for n in feeds.get(key, ()))
        found = {key for key, count in tested.items() if count >= uses[key]}
        while seeds:
            for key in _references(seeds.pop()):
                if key in integers and key not in found:
                    found.add(key)
                    seeds.extend(feeds.get(key, ()))
        return frozenset(found)

    def _index_arguments(self, call: Node) -> list[Node]:
        callee = call.referenced
        if callee is None or callee.kind not in (K.FUNCTION, K.METHOD):
            return []
        definition = self.of(callee)
        if definition is None:
            return []
        arguments = parameters_of(call)
        return [a for p, a in zip(definition.parameters, arguments, strict=False) if a and p.key in definition.index]


def _references(node: Node) -> Iterator[int]:
    """Keys of the variables that are named or declared below a node."""
    for part in node.walk():
        if part.kind == K.DECL_REF:
            yield part.target_key
        elif part.kind == K.VAR:
            yield part.key


def arguments_of(call: Node) -> list[Node | None]:
    """The arguments of a call in order; `None` for one that the syntax tree does not show."""
    clang = library()
    count = clang.clang_Cursor_getNumArguments(call.cursor)
    if count <= 0:
        return []
    shown = {c.cursor.data[1]: c for c in call.children}
    return [shown.get(clang.clang_Cursor_getArgument(call.cursor, i).data[1]) for i in range(count)]


def parameters_of(call: Node) -> list[Node | None]:
    """The arguments of a call that go to parameters: without the object that an operator of a class has among them."""
    arguments = arguments_of(call)
    return arguments[1:] if is_operator_of_class(call) else arguments


def is_operator_of_class(call: Node) -> bool:
    """Whether a call is written as an operator and means a member function."""
    callee = call.referenced
    if callee is None or callee.kind != K.METHOD or not call.spelling.startswith("operator"):
        return False
    return not call.children or call.children[0].kind != K.MEMBER_REF


def assignments(node: Node) -> list[Assignment]:
    """Every change of a variable below a node."""
    found: list[Assignment] = []
    _collect(node, False, (), found)
    return found


def _collect(node: Node, nested: bool, conditions: tuple[Node, ...], found: list[Assignment]) -> None:
    kind = node.kind
    if kind in (K.BINARY, K.COMPOUND_ASSIGN):
        operator = node.operator
        if (kind == K.COMPOUND_ASSIGN or operator == "=") and len(node.children) == 2:
            target = _variable(node.children[0])
            if target is not None:
                member = node.children[0].kind != K.DECL_REF
                step = node.children[0].pointee().size if node.children[0].type().sort == "pointer" else 1
                found.append(
                    Assignment(target, "?" if member else operator, node.children[1], nested, conditions, step)
                )
    elif kind == K.UNARY:
        operator = node.operator
        if operator in ("++", "--", "p++", "p--", "&"):
            target = _variable(node.children[0]) if node.children else None
            if target is not None:
                name = "?" if operator == "&" else operator[-2:]
                step = node.children[0].pointee().size if node.children[0].type().sort == "pointer" else 1
                found.append(Assignment(target, name, None, nested, conditions, step))
    elif kind == K.CALL:
        for argument in node.children[1:]:
            if argument.kind == K.DECL_REF and argument.type().sort in ("int", "float", "pointer"):
                found.append(Assignment(argument.target_key, "?", None, nested, conditions))
    if kind in _BRANCHES and node.children:
        inner = (*conditions, node.children[0])
        _collect(node.children[0], nested, conditions, found)
        for child in node.children[1:]:
            _collect(child, True, inner, found)
        return
    if kind in LOOPS:
        for child in node.children:
            _collect(child, True, conditions, found)
        return
    for child in node.children:
        _collect(child, nested, conditions, found)


def _variable(node: Node) -> int | None:
    """The variable at the root of an lvalue that is not behind a pointer."""
    while node.kind in (K.PAREN, K.UNEXPOSED, K.MEMBER_REF) and node.children:
        if node.kind == K.MEMBER_REF and node.children[0].type().sort == "pointer":
            return None
        node = node.children[0]
    return node.target_key if node.kind == K.DECL_REF else None
