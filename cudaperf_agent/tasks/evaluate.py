"""Abstract evaluation of C expressions: polynomials for integers, base and offset for addresses, accesses recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cudaperf_agent.tasks.accesses import UNKNOWN, Access, Findings, Guard, Loop, Pointer, Subscript, Value
from cudaperf_agent.tasks.poly import Facts, Poly, non_negative
from cudaperf_agent.tasks.syntax import CFile, Expr, is_integer

ONE = Poly.number(1)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a condition's truth or falsehood tells.

    Attributes:
        true: Each ``>= 0`` where it holds.
        false: Each ``>= 0`` where it does not.
        sure_true: It holds whenever sizes are at least one.
        sure_false: It fails whenever sizes are at least one.
        differs: Differences that are not zero where it holds.
        single: It is one comparison, so that it fails only where `false` says.
    """

    true: tuple[Poly, ...] = ()
    false: tuple[Poly, ...] = ()
    sure_true: bool = False
    sure_false: bool = False
    differs: tuple[Poly, ...] = ()
    single: bool = False


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
        values = [self.value(a) for a in node.args] if node.kind != "sizeof" else []
        for value in values:
            self.escape(value, node.line)
        return replace(self.unknown_int(node), taint=frozenset().union(*(v.taint for v in values)))

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
            poly = self._integer(op, left.poly, right.poly, taint)
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

    def _integer(self, op: str, left: Poly, right: Poly, taint: frozenset[str]) -> Poly | None:
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return left * right
        by = right.constant
        if op == "<<" and by is not None and 0 <= by < 63:
            return left.scaled(1 << by)
        if op == ">>" and by is not None and 0 <= by < 63:
            return self._quotient(left, Poly.number(1 << by), taint)
        if op == "/":
            return self._quotient(left, right, taint)
        if op == "%":
            lows = [Poly()] if self._never_negative(left) else [right.scaled(-1).plus(1)]
            return Poly.atom(self.facts.new("mod", lows=lows, highs=[right.plus(-1)], taint=taint))
        if op == "&" and by is not None and by >= 0:
            return Poly.atom(self.facts.new("mask", lows=[Poly()], highs=[right], taint=taint))
        return None

    def _never_negative(self, poly: Poly) -> bool:
        low = self.facts.lower(poly)
        return low is not None and (non_negative(low) or non_negative(low, 1))

    def _quotient(self, left: Poly, right: Poly, taint: frozenset[str]) -> Poly | None:
        if right.constant == 0:
            return None
        exact = left.divided(right)
        if exact is not None:
            return exact
        if not any(a in self.facts.known for a in left.atoms | right.atoms):
            return Poly.atom(quotient_text(left, right))
        high = self.facts.upper(left)
        highs = []
        if high is not None and not any(a in self.facts.known for a in right.atoms):
            whole = high.plus(1).divided(right)
            highs.append(whole.plus(-1) if whole is not None else Poly.atom(quotient_text(high, right)))
        lows = [Poly()] if self._never_negative(left) else []
        return Poly.atom(self.facts.new("div", lows=lows, highs=highs, taint=taint))

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
        return self.select(condition, yes, no)

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
            return self._comparison(node.op, left, right)
        value = self.value(node)
        if value.pointer is not None:
            return Condition(sure_true=True)
        return self._comparison("!=", value, Value(Poly()))

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

    def _comparison(self, op: str, left: Value, right: Value) -> Condition:
        a, b = left.poly, right.poly
        if left.pointer is not None or right.pointer is not None:
            if left.pointer is None or right.pointer is None:
                return Condition(sure_true=op == "!=", sure_false=op == "==")
            same = left.pointer.bases == right.pointer.bases and len(left.pointer.bases) == 1
            a, b = (left.pointer.offset, right.pointer.offset) if same else (None, None)
        if a is None or b is None:
            return Condition()
        if op in (">", ">="):
            a, b, op = b, a, "<" if op == ">" else "<="
        if op in ("<", "<="):
            slack = (b - a).plus(-1) if op == "<" else b - a
            other = (a - b) if op == "<" else (a - b).plus(-1)
            return Condition((slack,), (other,), self._sure(slack), self._sure(other), single=True)
        equal = (b - a, a - b)
        # An unsigned or counted-down quantity that is not zero is at least one.
        apart = (a.plus(-1),) if not b.terms and self._never_negative(a) else ()
        sure = any(self._sure(p) for p in apart)
        if op == "==":
            return Condition(equal, apart, False, sure, single=True)
        return Condition(apart, equal, sure, False, (a - b,), single=True)

    def _sure(self, poly: Poly) -> bool:
        return not any(a in self.facts.known for a in poly.atoms) and non_negative(poly, 1)

    def select(self, condition: Condition, yes: Value, no: Value) -> Value:
        """``condition ? yes : no``: a minimum, a maximum, or one of two."""
        taint = yes.taint | no.taint
        if yes == no:
            return yes
        if yes.pointer is not None or no.pointer is not None:
            bases = frozenset().union(*(v.pointer.bases for v in (yes, no) if v.pointer is not None))
            return Value(pointer=Pointer(bases), taint=taint)
        a, b = yes.poly, no.poly
        if a is None or b is None:
            return Value(taint=taint)
        if a == b:
            return Value(a, taint=taint)
        for slack in condition.true if len(condition.true) == 1 else ():
            if a - b in (slack, slack.plus(1)):
                return Value(Poly.atom(self.facts.new("max", lows=[a, b], choices=(a, b), taint=taint)), taint=taint)
            if b - a in (slack, slack.plus(1)):
                return Value(Poly.atom(self.facts.new("min", highs=[a, b], choices=(a, b), taint=taint)), taint=taint)
        a, b = self._limited(a, condition.true), self._limited(b, condition.false)
        return Value(Poly.atom(self.facts.new("either", choices=(a, b), taint=taint)), taint=taint)

    def _limited(self, poly: Poly, constraints: Sequence[Poly]) -> Poly:
        """`poly` with what the constraints tell about it, where they bound it by parameters."""
        highs = [poly + c for c in constraints if not self._open(poly + c)]
        lows = [poly - c for c in constraints if not self._open(poly - c)]
        if not (highs or lows) or not self._open(poly):
            return poly
        return Poly.atom(self.facts.new("under", lows=[poly, *lows], highs=[poly, *highs]))

    def _open(self, poly: Poly) -> bool:
        return any(a in self.facts.known for a in poly.atoms)

    def merge(self, condition: Condition, yes: dict[int, Value], no: dict[int, Value]) -> None:
        """The environment after two branches."""
        self.env = {key: self.select(condition, yes.get(key, UNKNOWN), no.get(key, UNKNOWN)) for key in {**no, **yes}}


def quotient_text(left: Poly, right: Poly) -> str:
    """The atom of a quotient of parameters: C text in parentheses."""
    top = left.text() if len(left.terms) == 1 and len(left.terms[0][0]) <= 1 else f"({left.text()})"
    bottom = right.text() if right.constant is not None or len(right.atoms) == 1 else f"({right.text()})"
    return f"({top}/{bottom})"
