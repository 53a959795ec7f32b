"""Collects what a walk over a kernel or over host code meets: accesses, operations, branches, calls, launches."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.lanes import stride_along_x
from cudaperf_agent.features.model import Access, Evidence, Gap
from cudaperf_agent.features.symbolic import Poly, Space
from cudaperf_agent.features.values import Pointer, Value


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One launch met on a walk over host code.

    Attributes:
        kernel: The kernel's definition.
        node: The launch expression.
        block, grid: Extents in x, y and z; `None` where only known at run time.
        arguments: Value of each kernel argument.
        in_loop: Whether a host loop surrounds it.
    """

    kernel: Node
    node: Node
    block: tuple[int | None, int | None, int | None]
    grid: tuple[int | None, int | None, int | None]
    arguments: tuple[Value, ...]
    in_loop: bool


@dataclass(slots=True)
class Recorder:
    """What was met, in the order of the walk.

    Attributes:
        kernel: Name of the kernel, ``""`` on the host.
        operations: Weighted arithmetic operations by line.
        tensor: Weighted matrix operations of tensor cores.
    """

    kernel: str = ""
    accesses: list[Access] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    launches: list[LaunchSite] = field(default_factory=list)
    operations: dict[tuple[int, int], int] = field(default_factory=dict)
    tensor: int = 0

    def access(
        self,
        node: Node,
        pointer: Pointer,
        width: int,
        unit: int,
        vector: bool,
        store: bool,
        depth: int,
        weight: int,
        space: Space,
    ) -> None:
        """Note one load or store.

        Args:
            node: The expression that reads or writes.
            pointer: The address.
            width: Bytes moved.
            unit: Bytes that one machine access moves; a struct that is not aligned to its size goes member by member.
            vector: Whether several values move as one.
            store: Whether it writes.
            depth: Loops around it.
            weight: Its weight.
            space: The atoms of the address.
        """
        if pointer.space not in ("global", "shared"):
            return
        stride = stride_along_x(pointer.offset, space, unit)
        elements = None if stride.size is None else -(-stride.size // unit)
        text = stride.text if stride.size is None else str(elements)
        place = node.place()
        rows = None
        width_x = space.block[0]
        if width_x is not None and width_x < 32:
            rows = self._row_distance(pointer.offset, space)
        self.accesses.append(
            Access(
                line=place.line,
                column=place.column,
                text=place.text,
                kernel=self.kernel,
                space=pointer.space,
                store=store,
                stride=elements,
                stride_text=text,
                stride_bytes=stride.size,
                width=width,
                weight=weight,
                depth=depth,
                root=pointer.root,
                address=str(pointer.offset),
                warp_rows=rows,
                vector=vector,
            )
        )

    @staticmethod
    def _row_distance(offset: Poly, space: Space) -> int | None:
        y = space.builtins["threadIdx.y"]
        if not y.terms or y.constant is not None:
            return None
        (atom,) = next(iter(y.terms))
        slope = {m: c for m, c in offset.terms.items() if atom in m}
        if set(slope) <= {(atom,)}:
            return abs(slope.get((atom,), 0))
        return None

    def note(self, feature: str, node: Node, weight: float, value: float = 1.0, detail: str = "") -> None:
        """Note one piece of evidence at a node."""
        place = node.place()
        self.evidence.append(
            Evidence(feature, place.line, place.column, place.text, weight, value, detail, self.kernel)
        )

    def operation(self, node: Node, count: int, weight: int) -> None:
        """Note arithmetic."""
        place = node.unit.line_column(node.cursor)
        self.operations[place] = self.operations.get(place, 0) + count * weight

    def gap(self, features: tuple[str, ...], reason: str, node: Node | None = None) -> None:
        """Note something that could not be told."""
        line = node.place().line if node is not None else None
        if not any(g.reason == reason and g.line == line for g in self.gaps):
            self.gaps.append(Gap(features, reason, line))
