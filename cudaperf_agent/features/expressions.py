"""Values of expressions, with every access, operation and call noted on the way."""

from __future__ import annotations

import time

from cudaperf_agent.features import builtin_calls
from cudaperf_agent.features.clang_cuda import CASTS, K, Node, SourceTooComplex, TypeInfo
from cudaperf_agent.features.functions import Definition, Definitions
from cudaperf_agent.features.lanes import splits_warp
from cudaperf_agent.features.model import LIMITS, Limits
from cudaperf_agent.features.recorder import Recorder
from cudaperf_agent.features.symbolic import ANY_THREAD, ONE, ZERO, Poly, Space, number
from cudaperf_agent.features.values import (
    Alias,
    Function,
    Memory,
    Other,
    Place,
    Pointer,
    Record,
    Value,
    Variable,
    has_data,
    join,
    mask_of,
)  # fmt: skip

_TRANSPARENT = frozenset({K.UNEXPOSED, K.PAREN}) | CASTS
_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_SKIPPED = frozenset({K.TYPE_REF, K.TEMPLATE_REF, K.NAMESPACE_REF})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"})
_CHECK_EVERY = 256


class Budget:
    """Steps and time that one extraction may still take."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._left = limits.steps
        self._deadline = time.monotonic() + limits.seconds

    def step(self) -> None:
        """Take one step.

        Raises:
            SourceTooComplex: Steps or time are spent.
        """
        self._left -= 1
        if self._left < 0:
            raise SourceTooComplex(f"more than {self.limits.steps} steps")
        if self._left % _CHECK_EVERY == 0 and time.monotonic() > self._deadline:
            raise SourceTooComplex(f"longer than {self.limits.seconds:g} s")


class Evaluator:
    """Evaluates expressions of one kernel, or of host code, in an environment of variables.

    Args:
        space: The atoms at this launch geometry.
        recorder: Where findings go.
        definitions: Functions of the source.
        budget: Steps and time left.
    """

    def __init__(self, space: Space, recorder: Recorder, definitions: Definitions, budget: Budget) -> None:
        self.space = space
        self.recorder = recorder
        self.definitions = definitions
        self.budget = budget
        self.variables: dict[int, Value | Alias] = {}
        self.members: dict[tuple[int, str], Value] = {}
        self.contents: dict[str, int] = {}
        self.this: list[Value] = []
        self.frames: list[Definition] = []
        self.depth = 0
        self.uncounted = 0
        self.steering = 0

    # What is noted

    @property
    def weight(self) -> int:
        """10^min(loop depth, 2)."""
        return int(10 ** min(self.depth, self.budget.limits.loop_weight_depth))

    @property
    def on_device(self) -> bool:
        """Whether the code that is walked runs on the GPU."""
        return bool(self.recorder.kernel)

    def count(self, node: Node, operations: int, sort: str) -> None:
        """Note arithmetic unless it serves an address or, being integer, a condition."""
        if not self.on_device or self.uncounted or sort == "pointer" or (self.steering and sort != "float"):
            return
        self.recorder.operation(node, operations, self.weight)

    def access(self, node: Node, pointer: Pointer, kind: TypeInfo, *, store: bool) -> None:
        """Note one load or store."""
        if self.on_device:
            unit = kind.size if kind.align >= kind.size or kind.sort != "record" else kind.align
            self.recorder.access(node, pointer, kind.size, unit, store, self.depth, self.weight, self.space)

    def branch(self, node: Node, condition: Value, detail: str) -> None:
        """Note a branch whose condition may differ between threads of one warp."""
        if not self.on_device or not mask_of(condition):
            return
        if isinstance(condition, Poly) and not splits_warp(condition, self.space):
            return
        self.recorder.note("div", node, self.weight, 1.0, detail)

    # Expressions

    def value(self, node: Node) -> Value:
        """The value of an expression read as an rvalue."""
        self.budget.step()
        kind = node.kind
        if kind in _TRANSPARENT:
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
            return self._record_from(node, [self.value(c) for c in node.children if c.kind not in _SKIPPED])
        mask, data = 0, False
        for child in node.children:
            if child.kind >= K.UNEXPOSED:
                part = self.value(child)
                mask |= mask_of(part)
                data = data or has_data(part)
        return Other(mask, data)

    def call(self, node: Node) -> Value:
        """The value of a call (defined by the walker, which can inline bodies)."""
        raise NotImplementedError

    def operand(self, node: Node) -> Node | None:
        """The expression inside a cast or parenthesis."""
        return next((c for c in reversed(node.children) if c.kind not in _SKIPPED and c.kind < 400), None)

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

    def unknown(self, name: str, mask: int, *, data: bool = False) -> Poly:
        """A fresh unknown integer."""
        return self.space.fresh(name, "load" if data else "unknown", mask)

    def integer(self, found: Value) -> Poly:
        """A value as an integer formula."""
        if isinstance(found, Poly):
            return found
        return self.unknown("?", mask_of(found), data=has_data(found))

    def resolve(self, key: int) -> int:
        """The variable that a reference stands for."""
        found = self.variables.get(key)
        while isinstance(found, Alias):
            key = found.key
            found = self.variables.get(key)
        return key

    def _read_variable(self, node: Node) -> Value:
        target = node.referenced
        if target is None:
            return Other()
        key = self.resolve(target.key)
        found = self.variables.get(key)
        if found is None or isinstance(found, Alias):
            found = self._outside(node, target)
            self.variables[key] = found
        if isinstance(found, Pointer) and found.root.startswith("*"):
            return self.load(node, Memory(Pointer(found.space, found.root[1:], found.offset)))
        return found

    def _outside(self, node: Node, target: Node) -> Value:
        """The value of something that the walked code does not declare: a global, an enumerator, a function."""
        if target.kind in (K.FUNCTION, K.METHOD, K.FUNCTION_TEMPLATE):
            return Function(target)
        kind = target.type()
        if target.kind in (K.VAR, K.UNEXPOSED_DECL):
            tree = target.unit.tree(target)
            attributes = {c.kind for c in tree.children}
            space = (
                "shared" if K.SHARED_ATTR in attributes
                else "constant" if K.CONSTANT_ATTR in attributes
                else "global" if K.DEVICE_ATTR in attributes
                else ""
            )  # fmt: skip
            if space:
                return Pointer(space, ("" if kind.sort == "array" else "*") + target.spelling, ZERO)
            if kind.sort == "array":
                return Pointer("constant" if self.on_device else "host", target.spelling, ZERO)
        constant = node.integer() if kind.sort in ("int", "other") or target.kind == K.ENUMERATOR else None
        if constant is not None:
            return number(constant)
        return self._of_type(kind, target.spelling or "?", 0)

    def _of_type(self, kind: TypeInfo, name: str, mask: int, *, data: bool = False) -> Value:
        if kind.sort == "int":
            return self.space.fresh(name, "load" if data else "unknown", mask)
        if kind.sort in ("pointer", "array"):
            base = self.space.fresh(name, "load", mask) if mask else ZERO
            return Pointer("global" if self.on_device else "host", name, base)
        return Other(mask, data)

    def place(self, node: Node) -> Place:
        """Where an lvalue lies; evaluates its index but reads nothing from it."""
        self.budget.step()
        kind = node.kind
        if kind in _TRANSPARENT:
            inner = self.operand(node)
            return self.place(inner) if inner is not None else None
        if kind == K.DECL_REF:
            key = self.resolve(node.target_key)
            found = self.variables.get(key)
            if found is None and node.referenced is not None:
                found = self._outside(node, node.referenced)
                self.variables[key] = found
            if isinstance(found, Pointer) and (found.root.startswith("*") or node.type().sort == "array"):
                return Memory(Pointer(found.space, found.root.removeprefix("*"), found.offset))
            return Variable(key)
        if kind == K.SUBSCRIPT and len(node.children) == 2:
            base = self._address(node.children[0])
            self.uncounted += 1
            index = self.integer(self.value(node.children[1]))
            self.uncounted -= 1
            if base is None:
                return None
            step = node.type().size
            return Memory(Pointer(base.space, base.root, base.offset + index.scaled(step)))
        if kind == K.UNARY and node.operator == "*" and node.children:
            base = self._address(node.children[0])
            return Memory(base) if base is not None else None
        if kind == K.UNARY and node.operator in ("++", "--"):
            self._unary(node)
            return self.place(node.children[0])
        if kind == K.MEMBER_REF:
            return self._member_place(node)
        if kind == K.CONDITIONAL and len(node.children) == 3:
            self.value(node.children[0])
            return self.place(node.children[1])
        found = self.value(node)
        return Memory(found) if isinstance(found, Pointer) else None

    def _address(self, node: Node) -> Pointer | None:
        self.uncounted += 1
        found = self.value(node) if node.type().sort != "array" else self._array(node)
        self.uncounted -= 1
        return found if isinstance(found, Pointer) else None

    def _array(self, node: Node) -> Value:
        where = self.place(node)
        return where.pointer if isinstance(where, Memory) else Other(ANY_THREAD)

    def load(self, node: Node, where: Place) -> Value:
        """Read an lvalue."""
        if isinstance(where, Variable):
            found = self.variables.get(where.key, Other())
            return found if not isinstance(found, Alias) else Other()
        if where is None:
            return self._of_type(node.type(), "?", ANY_THREAD, data=True)
        kind = node.type()
        pointer = where.pointer
        if kind.sort == "array":
            return pointer
        self.access(node, pointer, kind, store=False)
        mask = pointer.offset.mask | self.contents.get(pointer.root, 0)
        return self._of_type(kind, pointer.root, mask, data=pointer.space != "local")

    def store(self, node: Node, where: Place, new: Value) -> None:
        """Write an lvalue."""
        if isinstance(where, Variable):
            if where.member:
                record = self.variables.get(where.key)
                if not isinstance(record, Record):
                    record = Record({}, Other(mask_of(record) if record and not isinstance(record, Alias) else 0))
                self.variables[where.key] = Record({**record.members, where.member: new}, record.rest)
            else:
                self.variables[where.key] = new
        elif isinstance(where, Memory):
            self.access(node, where.pointer, node.type(), store=True)
            if where.pointer.space == "local":
                root = where.pointer.root
                self.contents[root] = self.contents.get(root, 0) | mask_of(new)

    def _member(self, node: Node) -> Value:
        name = node.spelling
        base = node.children[0] if node.children else None
        if base is not None and base.kind == K.DECL_REF and base.spelling in _BUILTINS and name in ("x", "y", "z"):
            return self.space.builtins[f"{base.spelling}.{name}"]
        target = node.referenced
        if target is not None and target.kind not in (K.FIELD, K.UNEXPOSED_DECL):
            if target.kind in (K.METHOD, K.FUNCTION):
                return Function(target)
            constant = node.integer()
            if constant is not None:
                return number(constant)
        where = self._member_place(node)
        if isinstance(where, Memory):
            return self.load(node, where)
        if isinstance(where, Variable):
            return self._member_of(self.variables.get(where.key, Other()), where.key, name, node)
        if (base is not None and base.kind == K.CALL) or base is None:
            found: Value | Alias = self.value(base) if base is not None else (self.this[-1] if self.this else Other())
            return self._member_of(found, 0, name, node)
        return self._of_type(node.type(), name, ANY_THREAD)

    def _member_of(self, found: Value | Alias, key: int, name: str, node: Node) -> Value:
        if isinstance(found, Record) and name in found.members:
            return found.members[name]
        rest = found.rest if isinstance(found, Record) else found
        known = self.members.get((key, name)) if key else None
        if known is not None and mask_of(known) == (rest.mask if isinstance(rest, Other) else 0):
            return known
        made = self._of_type(
            node.type(),
            name,
            rest.mask if isinstance(rest, Other) else 0 if isinstance(rest, Alias) else mask_of(rest),
            data=isinstance(rest, Other) and rest.data,
        )
        if key:
            self.members[(key, name)] = made
        return made

    def _member_place(self, node: Node) -> Place:
        base = node.children[0] if node.children else None
        if base is None:
            outer: Place = Memory(self.this[-1]) if self.this and isinstance(self.this[-1], Pointer) else None
        elif base.type().sort == "pointer":
            pointer = self._address(base)
            outer = Memory(pointer) if pointer is not None else None
        elif base.kind == K.CALL:
            return None
        else:
            outer = self.place(base)
        if isinstance(outer, Variable):
            name = f"{outer.member}.{node.spelling}" if outer.member else node.spelling
            return Variable(outer.key, name)
        if outer is None:
            return None
        field = node.referenced
        shift = field.field_offset() if field is not None else 0
        pointer = outer.pointer
        return Memory(Pointer(pointer.space, pointer.root, pointer.offset + number(shift)))

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
        if operator in _ARITHMETIC:
            self.count(node, 1, kind.sort)
        return self.combine(operator, first, second)

    def combine(self, operator: str, first: Value, second: Value) -> Value:
        """The value of an operator on two values."""
        if isinstance(first, Poly) and isinstance(second, Poly):
            return self.space.binary(operator, first, second)
        if operator in ("<", ">", "<=", ">=", "==", "!="):
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
                found = self.variables.get(self.resolve(child.target_key)) or self._read_for_address(child)
                return found if isinstance(found, Pointer | Function) else Other()
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

    def _read_for_address(self, node: Node) -> Value:
        target = node.referenced
        if target is None:
            return Other()
        found = self._outside(node, target)
        if isinstance(found, Pointer):
            return Pointer(found.space, found.root.removeprefix("*"), found.offset)
        return found

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
        self.branch(node, test, "a conditional expression")
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
