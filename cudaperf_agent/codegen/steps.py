"""The steps of a plan: what the host does in order, most of it launches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from cudaperf_agent.codegen.fold import SUM, Fold
from cudaperf_agent.codegen.scalars import Reduction
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import Module
from cudaperf_agent.tasks.model import CType

RESULT = "result"
"""Name of the pointer through which a device-form entry returns its value; the lowering keeps it free."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable that a kernel may need: a scalar, or a pointer with the sizes of its dimensions."""

    name: str
    type: CType
    pointer: bool = False
    const: bool = False
    dims: tuple[ir.Expr | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """One loop of a nest and the declarations between it and the next loop inside."""

    loop: ir.For
    prefix: tuple[ir.Stmt, ...] = ()

    @property
    def variable(self) -> str:
        """Its loop variable."""
        return self.loop.variable


@dataclass(frozen=True, slots=True)
class Nest:
    """A perfect nest of loops around a body."""

    levels: tuple[Level, ...]
    body: tuple[ir.Stmt, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """Loop variables from outside in."""
        return tuple(level.variable for level in self.levels)

    @property
    def inner(self) -> tuple[ir.Stmt, ...]:
        """What one iteration of the whole nest executes: all declarations sunk into the body."""
        return (*(s for level in self.levels for s in level.prefix), *self.body)

    @property
    def line(self) -> int:
        """Of the outermost loop."""
        return self.levels[0].loop.line

    def level(self, variable: str) -> Level:
        """The level of a loop variable."""
        return next(level for level in self.levels if level.variable == variable)

    def rebuilt(self, start: int = 0) -> ir.Stmt:
        """The loop statement from a level on."""
        level = self.levels[start]
        rest = self.body if start + 1 == len(self.levels) else (self.rebuilt(start + 1),)
        return replace(level.loop, body=(*level.prefix, *rest))


@dataclass(frozen=True, slots=True)
class HostStatement:
    """A declaration or assignment of host scalars or pointers."""

    statement: ir.Stmt


@dataclass(frozen=True, slots=True)
class Fetch:
    """Copy a scalar from the device, since the host's control flow or a size needs it."""

    name: str
    type: CType


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop that must keep its order: the host runs it and launches the body's steps."""

    loop: ir.For | ir.While
    steps: tuple[Step, ...]
    tests: tuple[Fetch, ...] = ()


@dataclass(frozen=True, slots=True)
class HostBranch:
    """A condition on host scalars."""

    condition: ir.Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class RowPart:
    """A statement of a parallel loop's body, as the lanes of a warp run it (see `codegen.rows`).

    Attributes:
        statement: The statement.
        who: ``loop``: the lanes share its iterations; ``all``: every lane; ``one``: the first lane.
        reductions: For a loop: what its iterations combine into.
        stores: For a loop: it stores to memory.
        fence: It stores to a buffer that other lanes may have read since the last barrier.
    """

    statement: ir.Stmt
    who: str
    reductions: tuple[Reduction, ...] = ()
    stores: bool = False
    fence: bool = False


@dataclass(frozen=True, slots=True)
class Parallel:
    """A launch over some loops of a nest; the others run inside each thread, in order.

    Attributes:
        nest: The nest.
        mapped: Loop variables over which threads are spread, outermost first, at most three.
        atomic: Buffers whose updates need atomics.
        stored: Buffers that are stored to.
        rows: The body's parts where a warp can share one iteration of a single mapped loop; ``()`` elsewhere.
    """

    nest: Nest
    mapped: tuple[str, ...]
    atomic: frozenset[str]
    stored: frozenset[str]
    rows: tuple[RowPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A launch whose iterations combine into scalars, then one block that finishes.

    Attributes:
        nest: The nest; its first `spread` levels are spread over threads.
        reductions: What is combined.
        before: Scalar statements just before, which both kernels repeat.
        after: Scalar statements just after, which the finishing kernel runs.
    """

    nest: Nest
    spread: int
    reductions: tuple[Reduction, ...]
    before: tuple[ir.Stmt, ...]
    after: tuple[ir.Stmt, ...]
    atomic: frozenset[str]
    stored: frozenset[str]


@dataclass(frozen=True, slots=True)
class ScalarWork:
    """Statements on single values in device memory, between launches that use all threads."""

    statements: tuple[ir.Stmt, ...]


@dataclass(frozen=True, slots=True)
class ScanSums:
    """Exclusive combination of a buffer in place, with the total behind the last (see `codegen.rules.chunks`)."""

    sums: str
    type: CType
    count: ir.Ref
    fold: Fold = SUM


@dataclass(frozen=True, slots=True)
class Finish:
    """``return``; the value has been stored by then."""


Step: TypeAlias = HostStatement | Fetch | HostLoop | HostBranch | Parallel | Reduce | ScalarWork | ScanSums | Finish


@dataclass(frozen=True, slots=True)
class Plan:
    """How an entry runs on the device.

    Attributes:
        module: The lowered C.
        steps: In order.
        symbols: Every variable by name.
        device_scalars: Scalars that live in device memory.
        roots: Buffer that each pointer made outside kernels points into.
        extents: Elements of the buffers whose size is a constant.
    """

    module: Module
    steps: tuple[Step, ...]
    symbols: dict[str, Symbol]
    device_scalars: frozenset[str]
    roots: dict[str, str]
    extents: dict[str, int]


class OnDevice(Exception):
    """Control flow inside the planner: scalars that turned out to be computed by kernels."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


class Declined(Exception):
    """Control flow inside the planner; it leaves `variants.generate` as a `Decline`.

    A `vague` one says that nothing was found rather than what stands in the way.
    """

    def __init__(self, reason: str, line: int, *, vague: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.vague = vague
