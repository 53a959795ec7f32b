"""An element of a tensor as C++ statements: producers inlined, each value computed as far out as it can be."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cudaperf_agent.codegen.modules.pointwise import OPERATIONS
from cudaperf_agent.codegen.modules.sizes import (
    Expr,
    Size,
    Var,
    as_expr,
    below,
    flattened,
    never_negative,
    text_of,
)
from cudaperf_agent.codegen.modules.tensors import (
    FLOATS,
    Buffer,
    Choice,
    Constant,
    Index,
    Lookup,
    Partial,
    Point,
    Position,
    Reduce,
    Scan,
    Tensor,
    Test,
    View,
    is_float,
)

INDENT = "    "
_RESERVED = frozenset(
    "auto bool break case char class const continue default delete do double else enum extern false float for if int "
    "long namespace new operator private public real register return short signed sizeof static struct switch template "
    "this true typedef typename union unsigned using void volatile while exp log sqrt sin cos tan tanh erf pow abs "
    "floor ceil round trunc lane row block thread larger smaller stream dtype run index div max min fmod remainder "
    "signbit isnan isinf j0 j1 y0 y1 yn jn gamma atan2 and or not xor bitand bitor compl gridDim blockDim blockIdx "
    "threadIdx warpSize at count main t".split()
)
STORAGE = {
    "float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16", "int64": "long long", "int32": "int",
    "int16": "short", "int8": "signed char", "uint8": "unsigned char", "bool": "bool", "compute": "float",
}  # fmt: skip


class Unready(Exception):
    """Evaluation met a reduction that is not available at this place."""

    def __init__(self, tensor: Reduce | Scan | Partial, index: Index) -> None:
        super().__init__(tensor.label)
        self.tensor = tensor
        self.index = index


@dataclass
class Scope:
    """Statements at one level of nesting.

    Attributes:
        parent: The scope around it.
        variables: Loop variables that come into being here.
        guarded: Runs only under a condition, so nothing in it may move out.
        depth: Levels of indentation.
    """

    parent: Scope | None = None
    variables: frozenset[Var] = frozenset()
    guarded: bool = False
    depth: int = 1
    lines: list[str] = field(default_factory=list)
    known: dict[tuple[int, Index], str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Append a statement."""
        self.lines.append(f"{INDENT * self.depth}{line}")

    def visible(self) -> frozenset[Var]:
        """All variables here."""
        return self.variables | (self.parent.visible() if self.parent is not None else frozenset())

    def find(self, key: tuple[int, Index]) -> str | None:
        """What a value is called here or further out."""
        found = self.known.get(key)
        return found if found is not None or self.parent is None else self.parent.find(key)

    def home(self, needed: frozenset[Var]) -> Scope:
        """The outermost scope where a value of these variables may be computed."""
        scope = self
        while scope.parent is not None and not scope.guarded and not needed & scope.variables:
            scope = scope.parent
        return scope


def value_type(dtype: str) -> str:
    """The C++ type that elements are computed in."""
    if is_float(dtype):
        return "float"
    return "bool" if dtype == "bool" else "long long" if dtype == "int64" else "int"


def literal(value: float | int | bool, dtype: str) -> str:
    """A number of a type, in parentheses if negative."""
    if is_float(dtype):
        real = float(value)
        if math.isnan(real):
            return "NAN"
        try:
            rounded = struct.unpack("f", struct.pack("f", real))[0]
        except OverflowError:
            rounded = math.copysign(math.inf, real)
        if math.isinf(rounded):
            return "INFINITY" if rounded > 0 else "(-INFINITY)"
        text = ""
        for precision in range(1, 10):
            text = f"{rounded:.{precision}g}"
            if struct.unpack("f", struct.pack("f", float(text)))[0] == rounded:
                break
        text = text if any(c in text for c in ".e") else f"{text}.0"
        return f"({text}f)" if rounded < 0 else f"{text}f"
    if dtype == "bool":
        return "true" if value else "false"
    suffix = "LL" if dtype == "int64" else ""
    if int(value) == -(1 << 63):
        return "(-9223372036854775807LL - 1)"
    return f"({int(value)}{suffix})" if value < 0 else f"{int(value)}{suffix}"


class Evaluator:
    """Writes the values of one kernel.

    Args:
        main: The float type that ``real`` stands for.
        written: Buffers of tensors that earlier kernels wrote, by the tensors' identity.
    """

    def __init__(self, main: str, written: Mapping[int, Buffer]) -> None:
        self.main = main
        self.written = written
        self.ready: dict[tuple[int, Index], str] = {}
        self.reads: dict[str, Buffer] = {}
        self.sizes: dict[str, Size] = {}
        self.missing: Callable[[Reduce | Scan | Partial, Index], str] | None = None
        self.addresses: list[tuple[Buffer, Expr]] = []
        self.cost = 0
        self._names: set[str] = set()
        self._keep: list[Tensor] = []

    def fresh(self, label: str) -> str:
        """A name that nothing else in the kernel has."""
        base = re.sub(r"\W", "_", label).lower().strip("_") or "v"
        base = f"v_{base}" if base[0].isdigit() or base in _RESERVED or base in STORAGE else base
        name, number = base, 1
        while name in self._names or name in self.sizes or re.fullmatch(r"(?:[irs]|n)\d+", name):
            number += 1
            name = f"{base}_{number}"
        self._names.add(name)
        return name

    def reserve(self, name: str) -> str:
        """Take a name."""
        self._names.add(name)
        return name

    def text(self, value: Expr, *, inside: bool = False) -> str:
        """An index expression; its sizes become arguments of the kernel."""
        for atom in sorted((a for a in value.atoms if isinstance(a, Size)), key=lambda s: s.name):
            self.sizes[atom.name] = atom
        return text_of(value, inside=inside)

    def storage(self, dtype: str) -> str:
        """The C++ type of elements in memory."""
        return "real" if dtype == self.main else STORAGE[dtype]

    def value(self, tensor: Tensor, index: Index, scope: Scope) -> str:
        """The name (or literal) of an element, computed in `scope` or further out.

        Raises:
            Unready: It needs a reduction that is neither in memory nor computed before in this kernel.
        """
        buffer = self.written.get(id(tensor))
        if buffer is not None:
            return self._loaded(buffer, index, scope)
        if isinstance(tensor, Constant):
            return literal(tensor.value, tensor.dtype)
        if isinstance(tensor, View):
            return self.value(tensor.source, tensor.remap(index), scope)
        if isinstance(tensor, Buffer):
            return self._loaded(tensor, index, scope)
        if isinstance(tensor, Position):
            at = tensor.at(index)
            known = at.constant
            return literal(known, "int64") if known is not None else self.text(at, inside=True)
        key = (id(tensor), index)
        found = self.ready.get(key) or scope.find(key)
        if found is not None:
            return found
        self._keep.append(tensor)  # identities are keys: nothing may be collected meanwhile
        if isinstance(tensor, Reduce | Scan | Partial):
            if self.missing is None:
                raise Unready(tensor, index)
            return self.missing(tensor, index)
        home = scope.home(_variables(index))
        if isinstance(tensor, Point):
            text = self._computed(tensor, [self.value(a, index, home) for a in tensor.arguments])
            name = self.fresh(tensor.label)
            home.add(f"const {value_type(tensor.dtype)} {name} = {text};")
        elif isinstance(tensor, Choice):
            name = self._chosen(tensor, index, home)
        elif isinstance(tensor, Lookup):
            name = self._looked_up(tensor, index, home)
        else:
            raise AssertionError(type(tensor).__name__)
        home.known[key] = name
        return name

    def _loaded(self, buffer: Buffer, index: Index, scope: Scope) -> str:
        key = (id(buffer), index)
        found = scope.find(key)
        if found is not None:
            return found
        home = scope.home(_variables(index))
        self.reads[buffer.name] = buffer
        self.reserve(buffer.name)
        address = flattened(index, buffer.shape)
        self.addresses.append((buffer, address))
        read = f"{buffer.name}[{self.text(address)}]"
        kind = value_type(buffer.dtype)
        convert = "(float)" if kind == "float" and self.storage(buffer.dtype) != "float" else ""
        name = self.fresh(f"{buffer.label}_value")
        home.add(f"const {kind} {name} = {convert}{read};")
        home.known[key] = name
        return name

    def _computed(self, tensor: Point, arguments: list[str]) -> str:
        if tensor.op == "cast":
            return self._cast(tensor.arguments[0].dtype, tensor.dtype, arguments[0])
        operation = OPERATIONS[tensor.op]
        self.cost += operation.cost
        operand = tensor.arguments[-1].dtype
        template = operation.real if is_float(operand) else operation.whole
        assert template, f"{tensor.op} on {operand}"
        return template.format(*arguments)

    def _cast(self, source: str, target: str, text: str) -> str:
        if target == "bool":
            return f"{text} != 0"
        if not is_float(target):
            return f"({value_type(target)}){text}"
        narrow = target in FLOATS and target != "float32" and is_float(source)
        return f"(float)({self.storage(target)}){text}" if narrow else f"(float){text}"

    def _chosen(self, tensor: Choice, index: Index, home: Scope) -> str:
        tests: list[Test] = []
        for test in tensor.tests(index):
            if _holds(test):
                continue
            if _holds(Test(test.left, test.right, not test.at_least)):
                return self.value(tensor.outside, index, home)
            tests.append(test)
        if not tests:
            return self.value(tensor.inside, index, home)
        condition = " && ".join(
            f"{self.text(t.left)} {'>=' if t.at_least else '<'} {self.text(t.right)}" for t in tests
        )
        name, kind = self.fresh(tensor.label), value_type(tensor.dtype)
        inside = Scope(home, guarded=True, depth=home.depth + 1)
        inside.add(f"{name} = {self.value(tensor.inside, index, inside)};")
        if isinstance(tensor.outside, Constant):
            home.add(f"{kind} {name} = {literal(tensor.outside.value, tensor.outside.dtype)};")
            home.add(f"if ({condition}) {{")
            home.lines += inside.lines
        else:
            outside = Scope(home, guarded=True, depth=home.depth + 1)
            outside.add(f"{name} = {self.value(tensor.outside, index, outside)};")
            home.add(f"{kind} {name};")
            home.add(f"if ({condition}) {{")
            home.lines += inside.lines
            home.add("} else {")
            home.lines += outside.lines
        home.add("}")
        return name

    def _looked_up(self, tensor: Lookup, index: Index, scope: Scope) -> str:
        found = []
        for subscript, limit, asked in zip(tensor.subscripts, tensor.limits, tensor.asked, strict=True):
            place = asked(index)
            key = (-id(subscript), place)
            name = scope.find(key)
            if name is None:
                text = self.value(subscript, place, scope)
                home = scope.home(_variables(place))
                name = self.fresh(f"{subscript.label}_at")
                home.add(f"const long long {name} = {text} < 0 ? {text} + {self.text(limit, inside=True)} : {text};")
                home.variables |= {Var(name, limit)}
                home.known[key] = name
            found.append(as_expr(Var(name, limit)))
        return self.value(tensor.source, tensor.remap(index, tuple(found)), scope)


def _variables(index: Index) -> frozenset[Var]:
    return frozenset(v for e in index for v in e.variables)


def _holds(test: Test) -> bool:
    """Whether a test is provably true."""
    if test.at_least:
        return never_negative(test.left - test.right)
    return below(test.left, test.right)
