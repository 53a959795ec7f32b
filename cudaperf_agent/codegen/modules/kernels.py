"""What a program is run as: kernels over a domain of loops, each with the tensors that it writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaperf_agent.codegen.modules.sizes import ONE, ZERO, Expr, Var, as_expr
from cudaperf_agent.codegen.modules.tensors import Buffer, Contraction, Index, Program, Reduce, Scan, Tensor

TILES = ((128, 128, 8, 8), (128, 64, 8, 4), (64, 64, 4, 4), (32, 32, 4, 4))
"""Tiles of matrix products, the largest first."""
SKINNY, SKINNY_DEPTH = (4, 128, 4, 4), 8
"""The tile of products that have few rows, and how deep it goes at once: one warp has to fetch all of it."""


@dataclass(frozen=True, slots=True)
class Style:
    """The choices that turn one program into different sources.

    Attributes:
        name: Short and stable.
        description: One sentence for people.
        fuse: Reductions share a kernel with what is computed from them.
        worker: Who handles a row: ``thread``, ``warp``, ``block``, or ``auto`` by layout and example sizes.
        tile: Rows and columns of a matrix product that a block computes at most, and those of one thread, multiples
            of four; smaller ones of `TILES` are taken where there would be too few blocks. None for a thread per
            element.
        depth: Products that are staged in shared memory at once.
        block: Threads per block.
        items: Elements per thread of elementwise kernels.
        split: Long rows in chunks, a block each: ``auto`` where a block per row would leave a GPU idle, ``eager`` where
            it might, ``needed`` only where the number of rows does not grow with the input.
    """

    name: str
    description: str
    fuse: bool = True
    worker: str = "auto"
    tile: tuple[int, int, int, int] | None = TILES[0]
    depth: int = 8
    block: int = 256
    items: int = 1
    split: str = "auto"

    @property
    def parameters(self) -> dict[str, int | str]:
        """The numbers, for reports."""
        tile = "x".join(map(str, self.tile)) if self.tile else "none"
        return {"block": self.block, "worker": self.worker, "tile": tile, "items": self.items, "split": self.split}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers behind the choices.

    Attributes:
        long_row: A row at least this long may be cut into chunks.
        few_rows: Fewer rows than this may leave a GPU idle with one block each.
        idle_rows: Fewer rows than this do.
        endless_row: A row at least this long is worth being cut even among `few_rows`.
        chunk: Elements of a chunk.
        most_chunks: Per row.
        short_row: Up to this length a thread handles a row alone.
        warp_row: Up to this length a warp does.
        warp_row_many, many_rows: Up to this length too, where there are so many rows.
        wide_row, widest_row: From these lengths on a block has at least 512 threads, and 1024.
        narrow_row: Up to this length it has at most 128.
        enough_blocks: So many keep a GPU busy with matrix products.
        skinny_rows: A matrix product with at most so many rows has tiles of its own.
        cheap: A producer of a matrix product costing more than this is written to memory first.
    """

    long_row: int = 4096
    few_rows: int = 264
    idle_rows: int = 64
    endless_row: int = 262144
    chunk: int = 4096
    most_chunks: int = 1024
    short_row: int = 32
    warp_row: int = 256
    warp_row_many: int = 1024
    many_rows: int = 8192
    narrow_row: int = 1024
    enough_blocks: int = 120
    skinny_rows: int = 16
    wide_row: int = 4096
    widest_row: int = 8192
    cheap: int = 6


THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Sink:
    """A tensor that a kernel writes: where to, and its index at a point of the domain."""

    tensor: Tensor
    buffer: Buffer
    index: Index


@dataclass(frozen=True, slots=True)
class MapKernel:
    """One thread per element.

    Attributes:
        variables: The index of an element.
        sinks: What is written, all of one shape.
    """

    variables: Index
    shape: Index
    sinks: list[Sink]


@dataclass(frozen=True, slots=True)
class RowKernel:
    """Rows, each reduced (perhaps several times, one level after another) by a thread, a warp or a block.

    Attributes:
        shape: Extents of the rows' dimensions.
        rows: Their variables; a zero for a dimension of extent one.
        reduced: Extents of the reduced dimensions.
        inner: Their variables.
        levels: Reductions in the order in which they are needed, each with its index.
        row_sinks: Written once per row.
        full_sinks: Written once per row and reduced element.
        worker: ``thread``, ``warp`` or ``block``.
        threads: Per block.
    """

    shape: Index
    rows: Index
    reduced: Index
    inner: Index
    levels: list[list[tuple[Reduce, Index]]]
    row_sinks: list[Sink]
    full_sinks: list[Sink]
    worker: str
    threads: int


@dataclass(frozen=True, slots=True)
class TileKernel:
    """A matrix product in shared-memory tiles, with what is computed from each element of it.

    Attributes:
        contraction: The product.
        variables: Index of one of its elements.
        sinks: What is written.
        tiles: Rows and columns of a block, and of a thread: of the first, if that makes `enough` blocks, else of the
            last.
        enough: How many blocks keep a GPU busy.
        few: With at most so many rows the tile is `SKINNY`.
    """

    contraction: Contraction
    variables: Index
    sinks: list[Sink]
    tiles: tuple[tuple[int, int, int, int], ...]
    enough: int
    few: int


@dataclass(frozen=True, slots=True)
class PartialKernel:
    """Blocks that each reduce one chunk of a row."""

    reduce: Reduce
    chunks: Expr
    values: Buffer
    places: Buffer | None


@dataclass(frozen=True, slots=True)
class ScanKernel:
    """A running sum or product of every row, one warp each (or a thread each)."""

    scan: Scan
    buffer: Buffer
    worker: str


Kernel = MapKernel | RowKernel | TileKernel | PartialKernel | ScanKernel


@dataclass(slots=True)
class Schedule:
    """Kernels in order.

    Attributes:
        program: What is run, with long reductions in two steps.
        kernels: What is launched.
        outputs: Buffers of forward's results, in order; an input's own buffer where it is returned as it is.
        scratch: Buffers that only kernels see.
        written: Buffers of tensors that are in memory, by the tensors' identity.
    """

    program: Program
    kernels: list[Kernel] = field(default_factory=list)
    outputs: list[Buffer] = field(default_factory=list)
    scratch: list[Buffer] = field(default_factory=list)
    written: dict[int, Buffer] = field(default_factory=dict)


def loop_variables(prefix: str, shape: Index) -> Index:
    """A variable for every dimension, or zero where the extent is one."""
    return tuple(ZERO if n == ONE else as_expr(Var(f"{prefix}{k}", n)) for k, n in enumerate(shape))
