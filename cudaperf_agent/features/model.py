"""The values of this package: the vector, its evidence, its gaps, and the extended set, all plain and JSON-ready."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

ORDER = ("coal", "ai", "occ", "div", "xfer", "atomics", "sync", "kernels", "tpb", "gmem", "ops")
"""The order of φ(y), as the paper states it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing in the source that a feature was computed from.

    Attributes:
        feature: Which of `ORDER` it belongs to; an access serves ``coal``, ``ai``, ``gmem`` and is listed as ``coal``.
        line, column: 1-based place in the source that was handed in.
        text: The source text there, one line, shortened.
        weight: 10^min(loop depth, 2), or 10 for a copy inside a host loop.
        value: What it contributes before weighting (score of an access, threads per block of a launch, operations).
        detail: One phrase for a person, e.g. ``stride ld`` or ``block of 1024``.
        kernel: The kernel's name, ``""`` on the host.
    """

    feature: str
    line: int
    column: int
    text: str
    weight: float
    value: float
    detail: str = ""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of memory inside a kernel.

    Attributes:
        line, column, text: Where.
        kernel: In which kernel.
        space: ``global`` or ``shared``.
        store: Whether it writes.
        stride: Elements between neighbours in `threadIdx.x`, without sign; `None` if not a number.
        stride_text: The stride as a formula, ``indirect`` or ``unknown``.
        stride_bytes: The same in bytes, `None` if not a number.
        width: Bytes that one thread moves at once.
        weight: 10^min(loop depth, 2).
        depth: Loops around it inside the kernel.
        root: The pointer or array it goes through.
        address: The index as a formula in bytes.
        warp_rows: Rows that a warp touches through `threadIdx.y` when a block is narrower than a warp, as stride
            in bytes; `None` if not known or not so.
        vector: Whether several values move as one (``float4`` and the like).
    """

    line: int
    column: int
    text: str
    kernel: str
    space: str
    store: bool
    stride: int | None
    stride_text: str
    stride_bytes: int | None
    width: int
    weight: int
    depth: int
    root: str
    address: str
    warp_rows: int | None = None
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One reachable launch site.

    Attributes:
        kernel: Name of the kernel.
        line, column, text: Where.
        block: Threads in x, y and z; `None` where only known at run time.
        grid: Blocks in x, y and z; `None` where only known at run time.
        in_loop: Whether a host loop surrounds it.
    """

    kernel: str
    line: int
    column: int
    text: str
    block: tuple[int | None, int | None, int | None]
    grid: tuple[int | None, int | None, int | None]
    in_loop: bool

    @property
    def threads(self) -> int | None:
        """Threads per block, `None` if only known at run time."""
        x, y, z = self.block
        return None if x is None or y is None or z is None else x * y * z

    @property
    def blocks(self) -> int | None:
        """Blocks in the grid, `None` if only known at run time."""
        x, y, z = self.grid
        return None if x is None or y is None or z is None else x * y * z


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be told, and the features that it leaves incomplete."""

    features: tuple[str, ...]
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Features:
    """φ(y) of one source, with evidence.

    Attributes:
        values: The eleven by name. A feature named by a gap holds what could be told, 0 if nothing.
        evidence: What each was computed from, in source order.
        gaps: What could not be told.
        flags: Plain remarks: ``no global accesses``, ``no host code: all kernels count``, …
        accesses: Every access of global and shared memory.
        launches: Every reachable launch site.
        extended: The extended set by name; never mixed into the eleven. `None` where not known.
    """

    values: dict[str, float]
    evidence: tuple[Evidence, ...] = ()
    gaps: tuple[Gap, ...] = ()
    flags: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()
    launches: tuple[Launch, ...] = ()
    extended: dict[str, float | None] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """The value of one of the eleven."""
        return self.values[name]

    @property
    def vector(self) -> tuple[float, ...]:
        """The eleven in the paper's order."""
        return tuple(self.values[name] for name in ORDER)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the features that a gap leaves incomplete, in order."""
        named = {name for gap in self.gaps for name in gap.features}
        return tuple(name for name in ORDER if name in named)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {**asdict(self), "missing": list(self.missing)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Features:
        """The inverse of `to_dict`, also after a round through JSON."""
        launches = [
            Launch(**{**site, "block": _three(site["block"]), "grid": _three(site["grid"])})
            for site in data["launches"]
        ]
        return cls(
            values=dict(data["values"]),
            evidence=tuple(Evidence(**e) for e in data["evidence"]),
            gaps=tuple(Gap(tuple(g["features"]), g["reason"], g["line"]) for g in data["gaps"]),
            flags=tuple(data["flags"]),
            accesses=tuple(Access(**a) for a in data["accesses"]),
            launches=tuple(launches),
            extended=dict(data["extended"]),
        )


def _three(extents: Any) -> tuple[int | None, int | None, int | None]:
    x, y, z = extents
    return x, y, z


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that keep extraction short, whatever the source holds.

    Attributes:
        seconds: Wall time of one extraction.
        source_bytes: Longest source that is read.
        statement_bytes: Longest stretch without ``;``, ``{``, ``}``, ``,`` or line of directive: a deep expression
            overflows a parser's stack.
        nodes: Most syntax nodes that are kept.
        start_seconds: Wall time that the parsing process may take to start.
        answer_seconds: Wall time after which the parsing process is given up.
        memory_bytes: Address space of the parsing process.
        steps: Most nodes that are walked, inlining counted each time.
        inline_depth: Deepest chain of inlined calls.
        loop_weight_depth: Depth at which the weight 10^depth stops growing [ours].
    """

    seconds: float = 2.0
    source_bytes: int = 200_000
    statement_bytes: int = 4_000
    nodes: int = 60_000
    steps: int = 120_000
    start_seconds: float = 20.0
    answer_seconds: float = 4.0
    memory_bytes: int = 3 << 30
    inline_depth: int = 12
    loop_weight_depth: int = 2


LIMITS = Limits()
