"""Variables, places and memory: what a name stands for, where an lvalue lies, what a load gives, what is counted."""

from __future__ import annotations

import time

from cudaperf_agent.features.clang_cuda import Node, SourceTooComplex
from cudaperf_agent.features.clang_types import TypeInfo
from cudaperf_agent.features.cursor_kinds import CASTS, K
from cudaperf_agent.features.functions import Definition, Definitions
from cudaperf_agent.features.lanes import splits_warp
from cudaperf_agent.features.model import LIMITS, Limits
from cudaperf_agent.features.recorder import Recorder
from cudaperf_agent.features.symbolic import ANY_THREAD, ZERO, Poly, Space, number
from cudaperf_agent.features.values import (
    Alias,
    Binding,
    Function,
    Memory,
    Other,
    Place,
    Pointer,
    Record,
    Stored,
    Value,
    Variable,
    has_data,
    mask_of,
)  # fmt: skip

TRANSPARENT = frozenset({K.UNEXPOSED, K.PAREN}) | CASTS
SKIPPED = frozenset({K.TYPE_REF, K.TEMPLATE_REF, K.NAMESPACE_REF})
_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_UNREADABLE = frozenset({K.CALL, K.CONDITIONAL, K.INIT_LIST})
_CHECK_EVERY = 256
_WARP_SIZE = 32


def stripped(node: Node) -> Node:
    """The expression inside casts and parentheses."""
    while node.kind in TRANSPARENT:
        inner = next((c for c in reversed(node.children) if c.kind not in SKIPPED and c.kind < 400), None)
        if inner is None:
            break
        node = inner
    return node


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


class Environment:
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
        self.variables: dict[int, Binding] = {}
        self.returned: list[Value] = []
        self.members: dict[tuple[int, str], Value] = {}
        self.contents: dict[str, int] = {}
        self.this: list[Value] = []
        self.frames: list[Definition] = []
        self.depth = 0
        self.uncounted = 0
        self.steering = 0

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
            together = kind.sort != "record" or kind.align >= kind.size
            unit = kind.size if together else kind.align
            vector = together and kind.sort == "record" and kind.size >= 8
            weight = self.weight
            self.recorder.access(node, pointer, kind.size, unit, vector, store, self.depth, weight, self.space)

    def branch(self, node: Node, condition: Value, detail: str) -> None:
        """Note a branch whose condition may differ between threads of one warp."""
        if not self.on_device or not mask_of(condition):
            return
        if isinstance(condition, Poly) and not splits_warp(condition, self.space):
            return
        self.recorder.note("div", node, self.weight, 1.0, detail)

    def value(self, node: Node) -> Value:
        """The value of an expression read as an rvalue (defined by the evaluator)."""
        raise NotImplementedError

    def step(self, node: Node) -> Value:
        """Carry out ``++`` or ``--`` and give its value (defined by the evaluator)."""
        raise NotImplementedError

    def operand(self, node: Node) -> Node | None:
        """The expression inside a cast or parenthesis."""
        return next((c for c in reversed(node.children) if c.kind not in SKIPPED and c.kind < 400), None)

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
        if target is None:  # a template parameter, replaced by its argument
            return self.value(node.children[-1]) if node.children else Other()
        if target.spelling == "warpSize" and not target.unit.in_source(target.cursor):
            return number(_WARP_SIZE)
        found = self.bound(node, target)
        return self.load(node, Memory(found.pointer)) if isinstance(found, Stored) else found

    def bound(self, node: Node, target: Node) -> Value | Stored:
        """What a named variable stands for, found outside of the walked code when first named."""
        key = self.resolve(target.key)
        found = self.variables.get(key)
        if found is None or isinstance(found, Alias):
            found = self._outside(node, target)
            self.variables[key] = found
        return found

    def held(self, key: int) -> Value:
        """The value that a variable holds, `Other` if it holds none that is known."""
        found = self.variables.get(key)
        return Other() if found is None or isinstance(found, Alias | Stored) else found

    def _outside(self, node: Node, target: Node) -> Value | Stored:
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
                pointer = Pointer(space, target.spelling, ZERO)
                return pointer if kind.sort == "array" else Stored(pointer)
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
        if kind in TRANSPARENT:
            inner = self.operand(node)
            return self.place(inner) if inner is not None else None
        if kind == K.DECL_REF:
            target = node.referenced
            if target is None:
                return None
            known = self.bound(node, target)
            if isinstance(known, Stored):
                return Memory(known.pointer)
            if isinstance(known, Pointer) and node.type().sort == "array":
                return Memory(known)
            return Variable(self.resolve(target.key))
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
            self.step(node)
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
            return self.held(where.key)
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
                record = self.held(where.key)
                if not isinstance(record, Record):
                    record = Record({}, Other(mask_of(record)))
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
        if base is None or stripped(base).kind in _UNREADABLE:
            owner = self.value(base) if base is not None else (self.this[-1] if self.this else Other())
            if not isinstance(owner, Pointer):
                return self._member_of(owner, 0, name, node)
            if base is not None and base.type().sort != "pointer":
                return self._of_type(node.type(), name, owner.offset.mask, data=True)
            shift = number(target.field_offset()) if target is not None else ZERO
            return self.load(node, Memory(Pointer(owner.space, owner.root, owner.offset + shift)))
        where = self._member_place(node)
        if isinstance(where, Memory):
            return self.load(node, where)
        if isinstance(where, Variable):
            return self._member_of(self.held(where.key), where.key, where.member, node)
        return self._of_type(node.type(), name, ANY_THREAD)

    def _member_of(self, found: Value, key: int, name: str, node: Node) -> Value:
        if isinstance(found, Record) and name in found.members:
            return found.members[name]
        rest = found.rest if isinstance(found, Record) else found
        known = self.members.get((key, name)) if key else None
        if known is not None and mask_of(known) == mask_of(rest):
            return known
        kind = node.type()
        if kind.sort == "array":
            return Pointer("local", name, ZERO)
        mask = mask_of(rest)
        made = self._of_type(kind, name, mask, data=isinstance(rest, Other) and rest.data)
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
        elif stripped(base).kind in _UNREADABLE:
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
