"""Values of expressions, with every access, operation and branch noted on the way."""

from __future__ import annotations

from cudaperf_agent.features import builtin_calls
from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.cursor_kinds import CASTS, K
from cudaperf_agent.features.environment import SKIPPED, TRANSPARENT, Environment
from cudaperf_agent.features.symbolic import ANY_THREAD, ONE, ZERO, Poly, number
from cudaperf_agent.features.values import (
    Function,
    Memory,
    Other,
    Pointer,
    Record,
    Stored,
    Value,
    Variable,
    has_data,
    join,
    mask_of,
)

ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"})
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})


class Evaluator(Environment):
    """Evaluates expressions in an environment."""

    def value(self, node: Node) -> Value:
        """The value of an expression read as an rvalue."""
        self.budget.step()
        kind = node.kind
        if kind in TRANSPARENT:
            return self._cast(node) if kind in CASTS else self._through(node)
        if kind in (K.INTEGER, K.CHARACTER, K.BOOL, K.SIZEOF):
            found = node.integer()
            return number(found) if found is not None else self.unknown("?", 0)
        if kind == K.DECL_REF:
            return self._read_variable(node)
        if kind == K.MEMBER_REF:
            return self._member(node)
        if kind == K.SUBSCRIPT:
            return self.load(node, self.place(node))
        if kind == K.BINARY:
            return self._binary(node)
        if kind == K.COMPOUND_ASSIGN:
            return self._compound(node)
        if kind == K.UNARY:
            return self._unary(node)
        if kind == K.CONDITIONAL:
            return self._conditional(node)
        if kind == K.CALL:
            return self.call(node)
        if kind == K.LAMBDA:
            return Function(node)
        if kind == K.THIS:
            return self.this[-1] if self.this else Other()
        if kind == K.INIT_LIST:
            return self._record_from(node, [self.value(c) for c in node.children if c.kind not in SKIPPED])
        mask, data = 0, False
        for child in node.children:
            if child.kind >= K.UNEXPOSED:
                part = self.value(child)
                mask |= mask_of(part)
                data = data or has_data(part)
        return Other(mask, data)

    def _through(self, node: Node) -> Value:
        inner = self.operand(node)
        if inner is None:
            return Other()
        found = self.value(inner)
        if isinstance(found, Other) and inner.kind == K.DECL_REF and not node.children[0].children:
            return found
        return found

    def _cast(self, node: Node) -> Value:
        inner = self.operand(node)
        if inner is None:
            return ZERO
        found = self.value(inner)
        if isinstance(found, Other) and node.type().sort == "int":
            return self.unknown("cast", found.mask, data=found.data)
        if isinstance(found, Poly) and node.type().sort == "float":
            return Other(found.mask, has_data(found))
        return found

    def call(self, node: Node) -> Value:
        """The value of a call (defined by the walker, which can inline bodies)."""
        raise NotImplementedError

    def _binary(self, node: Node) -> Value:
        operator = node.operator
        if len(node.children) != 2:
            return Other()
        left, right = node.children
        if operator == "=":
            return self._assign(node, left, right)
        if operator == ",":
            self.value(left)
            return self.value(right)
        kind = node.type()
        if kind.sort == "pointer":
            self.uncounted += 1
            first, second = self.value(left), self.value(right)
            self.uncounted -= 1
            if isinstance(second, Pointer) and not isinstance(first, Pointer):
                first, second = second, first
            if isinstance(first, Pointer):
                step = self.integer(second).scaled(node.pointee().size)
                return Pointer(first.space, first.root, first.offset + (step if operator == "+" else -step))
            return first
        if operator in ("&&", "||"):
            a = self.integer(self.value(left))
            if a.constant is not None and bool(a.constant) == (operator == "||"):
                return number(int(bool(a.constant)))
            return self.space.binary(operator, a, self.integer(self.value(right)))
        first, second = self.value(left), self.value(right)
        if operator in ARITHMETIC:
            self.count(node, 1, kind.sort)
        return self.combine(operator, first, second)

    def combine(self, operator: str, first: Value, second: Value) -> Value:
        """The value of an operator on two values."""
        if isinstance(first, Poly) and isinstance(second, Poly):
            return self.space.binary(operator, first, second)
        if operator in _COMPARISONS:
            return self.integer(join(first, second, 0))
        return join(first, second, 0)

    def _index_target(self, node: Node) -> bool:
        return bool(self.frames) and node.kind == K.DECL_REF and node.target_key in self.frames[-1].index

    def _assign(self, node: Node, left: Node, right: Node) -> Value:
        quiet = int(self._index_target(left) or node.type().sort == "pointer")
        self.uncounted += quiet
        new = self.value(right)
        self.uncounted -= quiet
        self.store(left, self.place(left), new)
        return new

    def _compound(self, node: Node) -> Value:
        if len(node.children) != 2:
            return Other()
        left, right = node.children
        quiet = int(self._index_target(left) or left.type().sort == "pointer")
        self.uncounted += quiet
        change = self.value(right)
        self.uncounted -= quiet
        where = self.place(left)
        old = self.load(left, where) if not (isinstance(where, Variable) and where.member) else self._member(left)
        if not quiet:
            self.count(node, 1, left.type().sort)
        new = self._moved(node.operator[:-1], old, change, left)
        self.store(left, where, new)
        return new

    def _moved(self, operator: str, old: Value, change: Value, left: Node) -> Value:
        if isinstance(old, Pointer):
            step = self.integer(change).scaled(left.pointee().size)
            return Pointer(old.space, old.root, old.offset + (step if operator == "+" else -step))
        return self.combine(operator, old, change)

    def _unary(self, node: Node) -> Value:
        operator = node.operator
        if not node.children:
            return Other()
        child = node.children[0]
        if operator == "*":
            return self.load(node, self.place(node))
        if operator == "&":
            where = self.place(child) if child.kind != K.DECL_REF or child.type().sort == "array" else None
            if where is None and child.kind == K.DECL_REF:
                known = self.bound(child, child.referenced) if child.referenced is not None else Other()
                if isinstance(known, Stored):
                    return known.pointer
                return known if isinstance(known, Function) else Other()
            return where.pointer if isinstance(where, Memory) else Other()
        if operator in ("++", "--", "p++", "p--"):
            where = self.place(child)
            old = self.load(child, where) if not (isinstance(where, Variable) and where.member) else self._member(child)
            if not self._index_target(child):
                self.count(node, 1, child.type().sort)
            new = self._moved(operator[-1], old, ONE, child)
            self.store(child, where, new)
            return old if operator.startswith("p") else new
        found = self.value(child)
        if isinstance(found, Poly):
            if operator == "-":
                return -found
            if operator == "!":
                return self.space.negate_condition(found)
            if operator == "~":
                self.count(node, 1, "int")
                return self.space.complement(found)
        if operator == "!":
            return self.integer(found)
        return found

    def step(self, node: Node) -> Value:
        """Carry out ``++`` or ``--`` and give its value."""
        return self._unary(node)

    def condition(self, node: Node) -> Value:
        """The value of a condition; integer arithmetic in it does not count."""
        self.steering += 1
        found = self.value(node)
        self.steering -= 1
        return found

    def _conditional(self, node: Node) -> Value:
        if len(node.children) != 3:
            return Other()
        test = self.condition(node.children[0])
        if isinstance(test, Poly) and test.constant is not None:
            return self.value(node.children[1 if test.constant else 2])
        self.branch(node, test, "a short branch, a conditional expression")
        yes, no = self.value(node.children[1]), self.value(node.children[2])
        if isinstance(yes, Poly) and isinstance(no, Poly):
            return self.space.select(self.integer(test), yes, no)
        if isinstance(yes, Pointer) and isinstance(no, Pointer) and yes.space == no.space:
            offset = self.space.select(self.integer(test), yes.offset, no.offset)
            return Pointer(yes.space, yes.root if yes.root == no.root else f"{yes.root}|{no.root}", offset)
        return join(yes, no, mask_of(test))

    def _record_from(self, node: Node, parts: list[Value]) -> Value:
        names = ("x", "y", "z", "w")
        mask, data = 0, False
        for part in parts:
            mask |= mask_of(part)
            data = data or has_data(part)
        if node.type().sort != "record" or len(parts) > len(names):
            return parts[0] if len(parts) == 1 and node.type().sort == "int" else Other(mask, data)
        return Record(dict(zip(names, parts, strict=False)), Other(mask, data))

    def builtin_value(self, name: str, node: Node, arguments: list[Value]) -> Value:
        """The value of a function that CUDA or the standard library defines."""
        if name in ("min", "max", "fminf", "fmaxf") and len(arguments) == 2:
            self.count(node, 1, node.type().sort)
            return self.combine(name[-3:] if name[0] != "f" else "min", *arguments)
        mask, data = 0, False
        for argument in arguments:
            mask |= mask_of(argument)
            data = data or has_data(argument)
        if name.startswith(builtin_calls.LANE_DEPENDENT):
            return self._of_type(node.type(), name, ANY_THREAD, data=True)
        operations = builtin_calls.OPERATIONS.get(name)
        if operations is not None:
            self.count(node, operations, node.type().sort)
        if name.startswith("make_") and arguments:
            return Record(dict(zip("xyzw", arguments, strict=False)), Other(mask, data))
        return self._of_type(node.type(), name, mask, data=data)
