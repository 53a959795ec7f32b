"""What the walk over a function finds: which elements of which buffer are read and written, in which loops, when."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaperf_agent.tasks.poly import Facts, Poly


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: of the element `offset` of one of `bases`.

    Attributes:
        bases: Parameters it may point into; empty for memory of the function's own.
        offset: In elements of the base; `None` if unknown.
        dims: Sizes of the array dimensions below it, outermost first: ``p[i]`` moves by their product.
        size: Bytes of one element.
        member: Path of the struct member it lies in, ``""`` for whole elements.
        table: Name of the file-scope or local array it points into, if any.
    """

    bases: frozenset[str] = frozenset()
    offset: Poly | None = None
    dims: tuple[Poly | None, ...] = ()
    size: int = 0
    member: str = ""
    table: str = ""

    def moved(self, by: Poly | None) -> Pointer:
        """The address `by` steps on."""
        if self.member:
            return self
        step: Poly | None = Poly.number(1)
        for dim in self.dims:
            step = step * dim if step is not None and dim is not None else None
        known = self.offset is not None and by is not None and step is not None
        offset = self.offset + by * step if known else None  # type: ignore[operator]
        return Pointer(self.bases, offset, self.dims, self.size, self.member, self.table)

    def inside(self) -> Pointer:
        """The address of the first element of the row it points to."""
        return Pointer(self.bases, self.offset, self.dims[1:], self.size, self.member, self.table)


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value: a polynomial, if it is an integer; an address; the buffers it was computed from."""

    poly: Poly | None = None
    pointer: Pointer | None = None
    taint: frozenset[str] = frozenset()


UNKNOWN = Value()


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which something happens.

    Attributes:
        constraints: Each is known to be ``>= 0``.
        certain: It holds whenever the sizes in it are at least one (and no pointer is null).
    """

    constraints: tuple[Poly, ...] = ()
    certain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop around an access.

    Attributes:
        atom: Its variable, one step per iteration; `None` where the iterations are not understood.
        low: First value.
        high: Last value.
        complete: It visits every value from low to high: no ``break``, ``return`` or ``goto`` leaves it.
    """

    atom: str | None = None
    low: Poly | None = None
    high: Poly | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One read or write of one element.

    Attributes:
        base: Parameter.
        offset: Element; `None` if unknown.
        write: It is written, else read.
        member: Struct member path, ``""`` for the whole element.
        loops: Around it, outermost first.
        guards: Conditions on it.
        line: 1-based source line.
        exact: It touches `base` for certain, rather than perhaps another buffer.
    """

    base: str
    offset: Poly | None
    write: bool
    member: str
    loops: tuple[Loop, ...]
    guards: tuple[Guard, ...]
    line: int
    exact: bool = True

    @property
    def certain(self) -> bool:
        """Whether nothing but sizes decides that it happens, in every iteration of its loops."""
        return self.exact and all(g.certain for g in self.guards)


@dataclass(frozen=True, slots=True)
class Subscript:
    """A subscript computed from elements of `taint`, into the parameter or table `target`.

    Attributes:
        taint: Buffers whose elements went into it.
        target: Parameters it indexes.
        table: File-scope or local array it indexes, if any.
        plain: Buffer whose element, unchanged, is the subscript.
        line: 1-based source line.
    """

    taint: frozenset[str]
    target: frozenset[str]
    table: str
    plain: str | None
    line: int


@dataclass(slots=True)
class Findings:
    """Everything the walk recorded, in program order."""

    facts: Facts
    accesses: list[Access] = field(default_factory=list)
    subscripts: list[Subscript] = field(default_factory=list)
    compared: set[frozenset[str]] = field(default_factory=set)

    def of(self, base: str) -> list[Access]:
        """Accesses of one parameter."""
        return [a for a in self.accesses if a.base == base]
