"""A task written out by hand, for tests of what reads tasks."""

from __future__ import annotations

from pathlib import Path

from cudaperf_agent.tasks.model import CType, Extent, Origin, Parameter, Role, Task, TypeKind, ValueRange

SOURCE = (Path(__file__).parents[1] / "cases" / "c" / "saxpy.c").read_text()
FLOAT = CType("float", TypeKind.FLOAT, 4, 4)
INT = CType("int", TypeKind.INT, 4, 4)


def saxpy(**changes: object) -> Task:
    """The task of ``saxpy.c``; keyword arguments replace fields."""
    n = Extent("n", Origin.LOOP_BOUNDS, 4)
    fields: dict[str, object] = {
        "name": "saxpy",
        "mode": "function",
        "source": SOURCE,
        "path": "saxpy.c",
        "parameters": (
            Parameter("n", INT, False, Role.SCALAR, Origin.TYPE, "int n", range=ValueRange("0", None)),
            Parameter("a", FLOAT, False, Role.SCALAR, Origin.TYPE, "float a"),
            Parameter("x", FLOAT, True, Role.IN, Origin.TYPE, "const float *x", extent=n, const=True),
            Parameter("y", FLOAT, True, Role.INOUT, Origin.TYPE, "float *y", extent=n),
        ),
        "first_line": 2,
        "last_line": 6,
        "digest": "0" * 64,
    }
    return Task(**{**fields, **changes})  # type: ignore[arg-type]
