"""Abstract evaluation of C expressions: polynomials for integers, base and offset for addresses, accesses recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cudaperf_agent.tasks.accesses import UNKNOWN, Access, Findings, Guard, Loop, Pointer, Subscript, Value
from cudaperf_agent.tasks.algebra import Algebra, Condition
from cudaperf_agent.tasks.loop_changes import changed_in
from cudaperf_agent.tasks.poly import Facts, Poly
from cudaperf_agent.tasks.syntax import CFile, Expr, is_integer

ONE = Poly.number(1)

STATEMENT_EXPRESSION = "StmtExpr"
"""libclang's name for GNU C's ``({ … })``."""


@dataclass(frozen=True, slots=True)
class Place:
    """An lvalue: a variable by its key, or memory at an address."""

    key: int | None = None
    pointer: Pointer | None = None


class Evaluator(ABC):
    """Evaluates expressions in an environment; `Walker` adds statements and calls.

    Args:
        file: The parsed file.
        ranges: Known ranges of the elements of buffers, as lower and upper bound.
    """

    def __init__(self, file: CFile, ranges: Mapping[str, tuple[Poly | None, Poly | None]]) -> None:
        self.file = file
        self.ranges = ranges
        self.facts = Facts()
        self.findings = Findings(self.facts)
        self.algebra = Algebra(self.facts)
        self.env: dict[int, Value] = {}
        self.loops: list[Loop] = []
        self.guards: list[Guard] = []
        self.plain: dict[str, str] = {}
        self.aliased: set[int] = set()
        self.blind = 0

    @abstractmethod
    def call(self, node: Expr, arguments: Sequence[Value]) -> Value:
        """The value of a call whose arguments are evaluated."""

    @contextmanager
    def guarded(self, guard: Guard) -> Iterator[None]:
        """Everything inside happens under `guard`."""
        mark = len(self.guards)
        self.guards.append(guard)
        yield
        del self.guards[mark:]

    def record(self, pointer: Pointer, write: bool, line: int, offset: Poly | None) -> None:
        """Note an access through `pointer`."""
        if self.blind:
            offset = None
        for base in sorted(pointer.bases):
            self.findings.accesses.append(
                Access(
                    base,
                    offset,
                    write,
                    pointer.member,
                    tuple(self.loops),
                    tuple(self.guards),
                    line,
                    exact=len(pointer.bases) == 1 and not self.blind,
                )
            )

    def escape(self, value: Value, line: int) -> None:
        """An address goes where it is not followed: anything behind it may be read and written from now on."""
        if value.pointer is not None:
            self.record(value.pointer, False, line, None)
            self.record(value.pointer, True, line, None)

    def unknown_int(
        self, node: Expr, taint: frozenset[str] = frozenset(), bases: frozenset[str] = frozenset()
    ) -> Value:
        """An integer of which only the type's range, or the declared range of its buffer, is known."""
        if not is_integer(node.ctype):
            return Value(taint=taint)
        lows, highs = [], []
        size = node.ctype.get_size()
        unsigned = node.ctype.kind.name in ("BOOL", "CHAR_U", "UCHAR", "USHORT", "UINT", "ULONG", "ULONGLONG")
        if unsigned:
            lows.append(Poly())
        if size <= 2:
            bits = 1 if node.ctype.kind.name == "BOOL" else 8 * size
            highs.append(Poly.number(2 ** (bits if unsigned else bits - 1) - 1))
            if not unsigned:
                lows.append(Poly.number(-(2 ** (bits - 1))))
        for base in bases if len(bases) == 1 else ():
            low, high = self.ranges.get(base, (None, None))
            lows += [low] if low is not None else []
            highs += [high] if high is not None else []
        atom = self.facts.new("load", lows=lows, highs=highs, taint=taint)
        if len(bases) == 1:
            self.plain[atom] = next(iter(bases))
        return Value(Poly.atom(atom), taint=taint)

    # --- places

    def place(self, node: Expr) -> Place:
        """Where an lvalue lies."""
        if node.kind == "name":
            return Place(key=node.key)
        if node.kind == "unary" and node.op == "*":
            return Place(pointer=self._address(self.value(node.args[0])))
        if node.kind == "index":
            first, second = node.args
            if is_integer(first.ctype):
                first, second = second, first
            base, index = self._address(self.value(first)), self.value(second)
            self._note_subscript(base, index, node.line)
            return Place(pointer=base.moved(index.poly).inside())
        if node.kind == "member":
            return self._member(node)
        return Place(pointer=self._address(self.value(node)))

    def _member(self, node: Expr) -> Place:
        inner = node.args[0]
        if node.op == "->":
            place = Place(pointer=self._address(self.value(inner)))
        elif inner.kind in ("name", "index", "member", "unary"):
            place = self.place(inner)
        else:
            self.value(inner)
            return Place(pointer=Pointer())
        if place.pointer is None:
            return Place(pointer=Pointer())
        path = f"{place.pointer.member}.{node.name}" if place.pointer.member else node.name
        return Place(pointer=replace(place.pointer, member=path, dims=()))

    def _address(self, value: Value) -> Pointer:
        return value.pointer if value.pointer is not None else Pointer()

    def _note_subscript(self, base: Pointer, index: Value, line: int) -> None:
        taint = self.facts.taint(index.poly) | index.taint if index.poly is not None else index.taint
        if taint:
            plain = None
            if index.poly is not None and len(index.poly.terms) == 1 and index.poly.terms[0][1] == 1:
                (monomial, _) = index.poly.terms[0]
                plain = self.plain.get(monomial[0]) if len(monomial) == 1 else None
            self.findings.subscripts.append(Subscript(taint, base.bases, base.table, plain, line))

    def read(self, place: Place, node: Expr) -> Value:
        """The value at a place; an array decays to its address."""
        if place.key is not None:
            if place.key in self.aliased and node.ctype.kind.name != "POINTER":
                return self.unknown_int(node)
            return self.env[place.key] if place.key in self.env else self._file_scope(node)
        pointer = place.pointer
        assert pointer is not None
        if node.ctype.kind.name.endswith("ARRAY"):
            return Value(pointer=pointer)
        self.record(pointer, False, node.line, pointer.offset)
        if node.ctype.kind.name == "POINTER":
            return Value(pointer=Pointer())
        return self.unknown_int(node, pointer.bases, frozenset() if pointer.member else pointer.bases)

    def _file_scope(self, node: Expr) -> Value:
        variable = self.file.variables.get(node.key)
        kind = node.ctype.kind.name
        if kind.endswith("ARRAY") or kind == "POINTER":
            return Value(pointer=Pointer(table=node.name))
        if variable is not None and variable.init is not None and variable.ctype.is_const_qualified():
            return self.value(variable.init)
        return self.unknown_int(node)

    def write(self, place: Place, value: Value, node: Expr) -> None:
        """Store `value` at a place."""
        if place.key is not None:
            self.env[place.key] = value
            if place.key in self.aliased:
                self.escape(value, node.line)
        elif place.pointer is not None:
            self.escape(value, node.line)
            self.record(place.pointer, True, node.line, place.pointer.offset)

    # --- values

    def value(self, node: Expr) -> Value:
        """Evaluate, with every access and side effect, once."""
        if node.kind == "const":
            return Value(Poly.number(node.value)) if isinstance(node.value, int) else UNKNOWN
        if node.kind in ("name", "index", "member") or (node.kind == "unary" and node.op == "*"):
            return self.read(self.place(node), node)
        if node.kind == "assign":
            return self._assign(node)
        if node.kind == "unary":
            return self._unary(node)
        if node.kind == "binary":
            return self._binary(node)
        if node.kind == "ternary":
            return self._ternary(node)
        if node.kind == "cast":
            return self._cast(node)
        if node.kind == "call":
            # The callee of a direct call is a name and not a value.
            return self.call(node, [self.value(a) for a in (node.args[1:] if node.name else node.args)])
        values = self._unmodelled(node) if node.kind != "sizeof" else []
        return replace(self.unknown_int(node), taint=frozenset().union(*(v.taint for v in values)))

    def _unmodelled(self, node: Expr) -> list[Value]:
        """The operands of what is not modelled; statements inside may happen any number of times, or never."""
        statements = node.op == STATEMENT_EXPRESSION
        changed = changed_in(node) if statements else set()
        self.forget(changed & set(self.env))
        self.blind += statements
        values = [self.value(argument) for argument in node.args]
        self.blind -= statements
        for value in values:
            self.escape(value, node.line)
        self.forget(changed & set(self.env))
        return values

    def _assign(self, node: Expr) -> Value:
        target, source = node.args
        value = self.value(source)
        place = self.place(target)
        if node.op != "=":
            value = self._arithmetic(node.op[:-1], self.read(place, target), value, target)
        self.write(place, value, target)
        return value

    def _unary(self, node: Expr) -> Value:
        operand = node.args[0]
        if node.op in ("p++", "p--", "++", "--"):
            place = self.place(operand)
            before = self.read(place, operand)
            after = self._arithmetic("+" if "+" in node.op else "-", before, Value(ONE), operand)
            self.write(place, after, operand)
            return before if node.op.startswith("p") else after
        if node.op == "&":
            place = self.place(operand)
            if place.pointer is not None:
                return Value(pointer=place.pointer)
            assert place.key is not None
            # From here on it may change through the address.
            self.escape(self.env.get(place.key, UNKNOWN), node.line)
            self.aliased.add(place.key)
            return Value(pointer=Pointer())
        value = self.value(operand)
        if node.op == "-" and value.poly is not None:
            return Value(value.poly.scaled(-1), taint=value.taint)
        if node.op == "+":
            return value
        if node.op == "!":
            return replace(self.unknown_int(node), taint=value.taint)
        return replace(self.unknown_int(node), taint=value.taint)

    def _binary(self, node: Expr) -> Value:
        if node.op in ("&&", "||"):
            self.condition(node)
            return self.unknown_int(node)
        left = self.value(node.args[0])
        right = self.value(node.args[1])
        if node.op == ",":
            return right
        return self._arithmetic(node.op, left, right, node)

    def _arithmetic(self, op: str, left: Value, right: Value, node: Expr) -> Value:
        taint = left.taint | right.taint
        if left.pointer is not None and op in ("+", "-"):
            if right.pointer is not None:
                return self._difference(left.pointer, right.pointer, node)
            by = right.poly.scaled(-1) if op == "-" and right.poly is not None else right.poly
            self._note_subscript(left.pointer, right, node.line)
            return Value(pointer=left.pointer.moved(by))
        if right.pointer is not None and op == "+":
            self._note_subscript(right.pointer, left, node.line)
            return Value(pointer=right.pointer.moved(left.poly))
        if left.poly is not None and right.poly is not None and is_integer(node.ctype):
            poly = self.algebra.integer(op, left.poly, right.poly, taint)
            if poly is not None:
                return Value(poly, taint=taint)
        self.escape(left, node.line)
        self.escape(right, node.line)
        return replace(self.unknown_int(node, taint), taint=taint)

    def _difference(self, left: Pointer, right: Pointer, node: Expr) -> Value:
        same = left.bases == right.bases and len(left.bases) == 1
        if same and left.offset is not None and right.offset is not None:
            return Value(left.offset - right.offset)
        return self.unknown_int(node)

    def _cast(self, node: Expr) -> Value:
        value = self.value(node.args[0])
        source = node.args[0].ctype
        if value.pointer is not None:
            return Value(pointer=self._retyped(value.pointer, node), taint=value.taint)
        if not is_integer(node.ctype):
            return Value(taint=value.taint)
        keeps = value.poly is not None and is_integer(source)
        # Wider arithmetic stored into an int keeps its value in any program without overflow; a narrow type may not.
        if keeps and (node.ctype.get_size() >= 4 or self._fits(value.poly, node)):
            return value
        return replace(self.unknown_int(node, value.taint), taint=value.taint)

    def _fits(self, poly: Poly | None, node: Expr) -> bool:
        return (
            poly is not None and poly.constant is not None and 0 <= poly.constant < 2 ** (8 * node.ctype.get_size() - 1)
        )

    def _retyped(self, pointer: Pointer, node: Expr) -> Pointer:
        pointee = node.ctype.get_pointee().get_canonical() if node.ctype.kind.name == "POINTER" else None
        while pointee is not None and pointee.kind.name.endswith("ARRAY"):
            pointee = pointee.get_array_element_type().get_canonical()
        if pointee is None or pointee.kind.name == "VOID" or pointee.get_size() == pointer.size or not pointer.bases:
            return pointer
        return replace(pointer, offset=None, dims=())

    def _ternary(self, node: Expr) -> Value:
        condition = self.condition(node.args[0])
        env = dict(self.env)
        with self.guarded(Guard(condition.true, condition.sure_true)):
            yes = self.value(node.args[1])
        after_yes, self.env = self.env, env
        with self.guarded(Guard(condition.false, condition.sure_false)):
            no = self.value(node.args[2])
        self.merge(condition, after_yes, self.env)
        return self.algebra.select(condition, yes, no)

    # --- conditions

    def condition(self, node: Expr) -> Condition:
        """Evaluate a condition, once, and say what it tells."""
        if node.kind == "binary" and node.op in ("&&", "||"):
            return self._both(node)
        if node.kind == "unary" and node.op == "!":
            inner = self.condition(node.args[0])
            return Condition(inner.false, inner.true, inner.sure_false, inner.sure_true)
        if node.kind == "cast" and node.op == "implicit":
            return self.condition(node.args[0])
        if node.kind == "binary" and node.op in ("<", ">", "<=", ">=", "==", "!="):
            left, right = self.value(node.args[0]), self.value(node.args[1])
            self.findings.compared.add(left.taint | right.taint)
            return self.algebra.comparison(node.op, left, right)
        value = self.value(node)
        if value.pointer is not None:
            return Condition(sure_true=True)
        return self.algebra.comparison("!=", value, Value(Poly()))

    def _both(self, node: Expr) -> Condition:
        conjunction = node.op == "&&"
        left = self.condition(node.args[0])
        holds = Guard(left.true, left.sure_true) if conjunction else Guard(left.false, left.sure_false)
        with self.guarded(holds):
            right = self.condition(node.args[1])
        if conjunction:
            return Condition(
                left.true + right.true, (), left.sure_true and right.sure_true, False, left.differs + right.differs
            )
        return Condition((), left.false + right.false, False, left.sure_false and right.sure_false)

    def merge(self, condition: Condition, yes: dict[int, Value], no: dict[int, Value]) -> None:
        """The environment after two branches."""
        self.env = {
            key: self.algebra.select(condition, yes.get(key, UNKNOWN), no.get(key, UNKNOWN)) for key in {**no, **yes}
        }

    def forget(self, keys: set[int]) -> None:
        """Nothing is known of these variables any more, but where the pointers among them may point."""
        bases = frozenset().union(
            *(v.pointer.bases for k in keys if (v := self.env.get(k)) is not None and v.pointer is not None)
        )
        for key in keys:
            value = self.env.get(key, UNKNOWN)
            if value.pointer is not None:
                self.env[key] = replace(value, pointer=replace(value.pointer, bases=bases, offset=None))
            elif value.poly is not None or value.taint:
                known = self.facts.taint(value.poly) if value.poly is not None else frozenset()
                atom = self.facts.new("any", taint=value.taint | known)
                self.env[key] = Value(Poly.atom(atom), taint=value.taint)
