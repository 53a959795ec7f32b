"""What a task is: a C entry function (or program) with the role, extent and legal values of every parameter.

These are plain, immutable values. `parse` makes them, `cases` draws inputs from them, `oracle` computes what a
candidate must return, `codegen` and the policies read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cudaperf_agent.tasks.modules.spec import ModuleSpec


class TypeKind(StrEnum):
    """What the bits of a value mean."""

    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    BOOL = "bool"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a struct.

    Attributes:
        name: Member name.
        type: Element type of the member.
        offset: Bytes from the struct's start.
        shape: Array dimensions, ``()`` for a single value.
    """

    name: str
    type: CType
    offset: int
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CType:
    """A complete object type without qualifiers, as an element of a buffer or as a scalar.

    Attributes:
        spelling: Canonical spelling, valid in C and in C++ (typedefs of scalars resolved: ``unsigned char``; a
            struct by its typedef or tag name: ``Body``).
        kind: Meaning of the bits.
        size: Bytes.
        align: Bytes.
        fields: Members, for structs only.
    """

    spelling: str
    kind: TypeKind
    size: int
    align: int
    fields: tuple[Field, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of the same layout; ``long double`` is ``longdouble``."""
        if self.kind is TypeKind.STRUCT:
            return np.dtype(
                {
                    "names": [f.name for f in self.fields],
                    "formats": [(f.type.dtype, f.shape) if f.shape else f.type.dtype for f in self.fields],
                    "offsets": [f.offset for f in self.fields],
                    "itemsize": self.size,
                }
            )
        if self.kind is TypeKind.FLOAT and self.size == 16:
            return np.dtype(np.longdouble)
        letter = {TypeKind.INT: "i", TypeKind.UINT: "u", TypeKind.FLOAT: "f", TypeKind.BOOL: "b"}[self.kind]
        return np.dtype("?" if letter == "b" else f"{letter}{self.size}")

    @property
    def has_floats(self) -> bool:
        """Whether any part of it is floating point."""
        return self.kind is TypeKind.FLOAT or any(f.type.has_floats for f in self.fields)


class Role(StrEnum):
    """What the entry does with a parameter. Scalars are `SCALAR`; buffers are one of the others."""

    SCALAR = "scalar"
    IN = "in"
    OUT = "out"
    INOUT = "inout"


class Origin(StrEnum):
    """Who settled a role, an extent or a range; in order of authority, the first wins."""

    SPEC = "spec"
    COMMENT = "comment"
    TYPE = "type"
    ATTRIBUTE = "attribute"
    CALL_SITE = "call site"
    LOOP_BOUNDS = "loop bounds"
    MEASURED = "measured"
    DEFAULT = "default"

    @property
    def declared(self) -> bool:
        """Whether the user wrote it (then the C is held to it), rather than us inferring it."""
        return self in (Origin.SPEC, Origin.COMMENT, Origin.TYPE, Origin.ATTRIBUTE)


@dataclass(frozen=True, slots=True)
class Extent:
    """How many elements a buffer has.

    Attributes:
        expr: C expression over integer parameters (macros already expanded), e.g. ``n*n`` or
            ``(h > 0 && w > 0) ? (h-1)*stride + 3*w : 0``. Evaluate with `tasks.expr.evaluate`; negative means 0.
        origin: Who says so.
        line: 1-based line in the source where it was read, if any.
    """

    expr: str
    origin: Origin
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Inclusive range of a scalar, or of each element of a buffer. Ends are C expressions; `None` is open."""

    low: str | None = None
    high: str | None = None
    odd: bool = False
    origin: Origin = Origin.DEFAULT


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the entry (or of its setup call).

    Attributes:
        name: As written.
        type: Type of the scalar, or of the elements a pointer points to.
        pointer: Whether it is a pointer or array parameter.
        role: What the entry does with it.
        role_origin: Who settled the role.
        extent: Elements behind the pointer; `None` for scalars.
        dims: C expressions of the dimensions of an array parameter, outermost first (``("n", "n")`` for
            ``int d[n][n]``); ``()`` where it was declared as a plain pointer.
        range: Legal values (of the scalar, or of each element).
        index: Values are used as subscripts.
        ascending: Values are non-decreasing.
        const: Declared pointer to const.
        declaration: C++ spelling of the parameter as passed (arrays as pointers), e.g. ``const float *x``.
        line: 1-based source line.
    """

    name: str
    type: CType
    pointer: bool
    role: Role
    role_origin: Origin
    declaration: str
    extent: Extent | None = None
    dims: tuple[str, ...] = ()
    range: ValueRange = ValueRange()
    index: bool = False
    ascending: bool = False
    const: bool = False
    line: int | None = None

    @property
    def read(self) -> bool:
        """Whether its content before the call matters."""
        return self.role in (Role.IN, Role.INOUT)

    @property
    def written(self) -> bool:
        """Whether the call may change its content."""
        return self.role in (Role.OUT, Role.INOUT)


@dataclass(frozen=True, slots=True)
class Table:
    """A file-scope variable that the entry (or a function it calls) reads.

    Attributes:
        name: As written.
        type: Element type, arrays flattened.
        dims: Array dimensions, ``()`` for a single value.
        constant: Never assigned in the file after its initialiser.
        line: 1-based line of its definition.
    """

    name: str
    type: CType
    dims: tuple[int, ...]
    constant: bool
    line: int

    @property
    def count(self) -> int:
        """Elements in all."""
        return int(np.prod(self.dims, dtype=np.int64)) if self.dims else 1


@dataclass(frozen=True, slots=True)
class StdinItem:
    """One item of the ``stdin`` clause: a scalar ``NAME in A..B`` or an array ``NAME[EXPR] in A..B``."""

    name: str
    extent: str | None
    range: ValueRange


@dataclass(frozen=True, slots=True)
class Task:
    """A C file and its entry, or a Python file and its PyTorch module, understood.

    Attributes:
        name: Entry function; ``main`` in program mode; the class in module mode.
        mode: ``function``, ``program`` or (PyTorch) ``module``.
        source: The whole C or Python text.
        path: Where it came from, for messages and ``#line``; ``<stdin>`` for standard input.
        parameters: Of the entry, in order.
        returns: Scalar return type, `None` for ``void``.
        tables: File-scope variables the entry reads, in definition order.
        setup: The setup call as written (``set_centroids(values, k)``), if any.
        setup_inputs: Inputs that only the setup call takes.
        kept_functions: Other functions with external linkage, which stay C in ``NAME_host.c``.
        type_declarations: Text of struct, enum and typedef declarations (and the object-like macros) that the
            prototype and the tables need, valid in C and C++.
        stdin: Items of the ``stdin`` clause, program mode only.
        stdin_files: Example inputs the user handed in, program mode only.
        include_dirs: Extra ``-I`` folders.
        defines: Extra ``-D`` definitions, ``NAME=VALUE``.
        assumptions: One sentence each: what was assumed or inferred that the source does not state.
        first_line: 1-based first line of the entry's definition.
        last_line: 1-based last line of it.
        module: What is known of the PyTorch module, module mode only.
        digest: SHA-256 (hex) over everything above that can change a verdict.
    """

    name: str
    mode: Literal["function", "program", "module"]
    source: str
    path: str
    parameters: tuple[Parameter, ...] = ()
    returns: CType | None = None
    tables: tuple[Table, ...] = ()
    setup: str | None = None
    setup_inputs: tuple[Parameter, ...] = ()
    kept_functions: tuple[str, ...] = ()
    type_declarations: str = ""
    stdin: tuple[StdinItem, ...] = ()
    stdin_files: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    first_line: int = 1
    last_line: int = 1
    module: ModuleSpec | None = None
    digest: str = ""

    @property
    def buffers(self) -> tuple[Parameter, ...]:
        """Pointer parameters of the entry."""
        return tuple(p for p in self.parameters if p.pointer)

    @property
    def scalars(self) -> tuple[Parameter, ...]:
        """Scalar parameters of the entry."""
        return tuple(p for p in self.parameters if not p.pointer)

    def inputs(self) -> Iterator[Parameter]:
        """Everything a case gives a value to: the entry's parameters, then the setup call's own."""
        yield from self.parameters
        yield from self.setup_inputs


Value = npt.NDArray[Any]
"""A scalar as a 0-d array or a buffer as a 1-d array, of the parameter's `CType.dtype`."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One call of the entry, or one run of the program.

    Attributes:
        name: Short and readable: ``n=257`` or ``rows=3 cols=0``.
        values: Input of every parameter and setup input by name. An ``out`` buffer is there too, with its size and
            dtype; its content is arbitrary and is poisoned before each call.
        hidden: Kept for the final check; never shown to a policy.
        stdin: Standard input, program mode only.
    """

    name: str
    values: dict[str, Value]
    hidden: bool = False
    stdin: bytes = b""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first output element that is outside its budget, or the whole output where it is not numeric.

    Attributes:
        output: Parameter name, ``return`` or ``stdout``.
        index: Flat element index; 0 for scalars; byte offset for ``stdout``.
        expected: As text.
        got: As text.
        error: Absolute error, `None` where it makes no sense.
        allowed: Absolute tolerance at that element.
        count: Elements outside the budget in this output.
        total: Elements of this output.
    """

    output: str
    index: int
    expected: str
    got: str
    error: float | None = None
    allowed: float | None = None
    count: int = 1
    total: int = 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether the outputs of one call are right. `worst_error` is the largest error ÷ allowance seen (≤ 1 passes)."""

    ok: bool
    worst_error: float
    mismatch: Mismatch | None = None
