"""The tensor IR: every value is a shape and a rule that gives an element from its index; nothing says how it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cudaperf_agent.codegen.modules.sizes import ONE, Expr, Size, product

Index = tuple[Expr, ...]
Remap = Callable[[Index], Index]

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
SUPPORTED = (*FLOATS, *INTEGERS, "bool")
"""Element types, by torch's names; ``compute`` is for partial results, always in float."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tensor:
    """A value of the graph.

    Attributes:
        shape: Sizes of its dimensions.
        dtype: Element type, by torch's name.
        label: The graph's name for it, used for names in the code.
    """

    shape: Index
    dtype: str
    label: str = "v"

    @property
    def count(self) -> Expr:
        """How many elements."""
        return product(self.shape)

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What it is computed from."""
        return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Buffer(Tensor):
    """Contiguous memory: an input, a parameter, or a result that was written before.

    Attributes:
        name: In the generated code.
    """

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Constant(Tensor):
    """One number everywhere."""

    value: float | int | bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Position(Tensor):
    """An integer computed from the index itself, as in ``arange``."""

    at: Callable[[Index], Expr]


@dataclass(frozen=True, eq=False, kw_only=True)
class Point(Tensor):
    """An operation on elements of the same index; all arguments have its shape.

    Attributes:
        op: A key of the table of operations.
        arguments: Operands.
    """

    op: str
    arguments: tuple[Tensor, ...]

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The operands."""
        return self.arguments


@dataclass(frozen=True, eq=False, kw_only=True)
class View(Tensor):
    """The elements of another tensor, at other indices."""

    source: Tensor
    remap: Remap

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What is looked at."""
        return (self.source,)


@dataclass(frozen=True, slots=True)
class Test:
    """``left < right`` on indices, or with `at_least` ``left >= right``."""

    left: Expr
    right: Expr
    at_least: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice(Tensor):
    """`inside` where all tests of the index hold, else `outside`; neither is read where it is not chosen."""

    tests: Callable[[Index], tuple[Test, ...]]
    inside: Tensor
    outside: Tensor

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """Both sides."""
        return (self.inside, self.outside)


@dataclass(frozen=True, eq=False, kw_only=True)
class Lookup(Tensor):
    """Elements of `source` at subscripts that are themselves read from tensors.

    Attributes:
        source: What is read.
        subscripts: Integer tensors; a negative value counts from the end.
        limits: For each subscript, the extent of the dimension that it selects from.
        asked: For each subscript, its index for an index of this tensor.
        remap: From an index and the looked-up values to an index of `source`.
    """

    source: Tensor
    subscripts: tuple[Tensor, ...]
    limits: tuple[Expr, ...]
    asked: tuple[Remap, ...]
    remap: Callable[[Index, Index], Index]

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What is read, and where."""
        return (self.source, *self.subscripts)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Tensor):
    """Trailing dimensions of `source` combined into one element.

    Attributes:
        kind: ``sum``, ``prod``, ``max``, ``min``, ``argmax`` or ``argmin``; the last two give the flat position of the
            first best.
        source: Its shape is this shape and then the reduced dimensions.
    """

    kind: str
    source: Tensor

    @property
    def reduced(self) -> Index:
        """Extents of the reduced dimensions."""
        return self.source.shape[len(self.shape) :]

    @property
    def length(self) -> Expr:
        """How many elements are combined into one."""
        return product(self.reduced)

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What is combined."""
        return (self.source,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contraction(Reduce):
    """A sum of products that tiles can share: ``out[b…, m, n] = Σ_k left[b…, m, k] · right[b…, n, k]``.

    `source` is the product itself, over ``(b…, m, n, k)``. The last axis before ``k`` counts as ``n``.

    Attributes:
        left: Of shape ``(b…, m, k)``.
        right: Of shape ``(b…, n, k)``.
        batch: How many leading dimensions both have.
    """

    left: Tensor
    right: Tensor
    batch: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan(Tensor):
    """Running sum or product along the last dimension."""

    kind: str
    source: Tensor

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What is summed up."""
        return (self.source,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Partial(Tensor):
    """Partial results of a long reduction: its shape, and then the chunks that each row is cut into.

    Attributes:
        reduce: The whole reduction.
        places: For ``argmax`` and ``argmin``, holds the positions instead of the values.
    """

    reduce: Reduce
    places: bool = False

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What is reduced."""
        return (self.reduce.source,)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole graph.

    Attributes:
        inputs: Buffers of forward's tensor arguments, in order.
        state: Parameters and buffers, with their paths in the module.
        outputs: What forward returns.
        structure: ``one``, ``tuple`` or ``list``.
        hints: Values of the sizes in the example.
        sizes: All of them, computed ones behind those that they are computed from.
        main: The float type of the trace; it stands for the type that the module is used in.
    """

    inputs: tuple[Buffer, ...]
    state: tuple[tuple[Buffer, str], ...]
    outputs: tuple[Tensor, ...]
    structure: str
    hints: dict[str, int]
    sizes: tuple[Size, ...]
    main: str


def walk(*roots: Tensor) -> Iterator[Tensor]:
    """All tensors that the roots are computed from, each once, operands first."""
    seen: set[int] = set()
    stack: list[tuple[Tensor, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        tensor, done = stack.pop()
        if done:
            yield tensor
        elif id(tensor) not in seen:
            seen.add(id(tensor))
            stack.append((tensor, True))
            stack += [(p, False) for p in reversed(tensor.parts)]


def is_float(dtype: str) -> bool:
    """Whether elements are floats."""
    return dtype in FLOATS or dtype == "compute"


def category(dtype: str) -> int:
    """bool, integer or float: torch's order of promotion."""
    return 2 if is_float(dtype) else 0 if dtype == "bool" else 1


def broadcast_shape(shapes: Sequence[Index]) -> Index:
    """The shape that several broadcast to; a size that is not one wins."""
    rank = max((len(s) for s in shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = [s[axis] for s in shapes if len(s) >= -axis]
        result.append(next((n for n in sizes if n != ONE), ONE))
    return tuple(result)
