"""Tasks written out by hand, for tests of parts that must not depend on the parser."""

from __future__ import annotations

from typing import Any

from cudaperf_agent.tasks.model import CType, Extent, Origin, Parameter, Role, Task, TypeKind

FLOAT = CType("float", TypeKind.FLOAT, 4, 4)
DOUBLE = CType("double", TypeKind.FLOAT, 8, 8)
INT = CType("int", TypeKind.INT, 4, 4)


def scalar(name: str, type_: CType = INT, **more: Any) -> Parameter:
    return Parameter(name, type_, False, Role.SCALAR, Origin.TYPE, f"{type_.spelling} {name}", **more)


def buffer(
    name: str,
    type_: CType,
    role: Role,
    extent: str | None = "n",
    *,
    origin: Origin = Origin.LOOP_BOUNDS,
    **more: Any,
) -> Parameter:
    const = "const " if role is Role.IN else ""
    declaration = f"{const}{type_.spelling} *{name}"
    known = None if extent is None else Extent(extent, origin)
    return Parameter(name, type_, True, role, Origin.LOOP_BOUNDS, declaration, known, **more)


def task(name: str, source: str, *parameters: Parameter, **more: Any) -> Task:
    return Task(name, "function", source, f"{name}.c", parameters, **more)


SAXPY = task(
    "saxpy",
    "void saxpy(int n, float a, const float *x, float *y)\n"
    "{\n    for (int i = 0; i < n; i++)\n        y[i] = a * x[i] + y[i];\n}\n",
    scalar("n"),
    scalar("a", FLOAT),
    buffer("x", FLOAT, Role.IN),
    buffer("y", FLOAT, Role.INOUT),
)
