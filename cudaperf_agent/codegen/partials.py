"""Partial results of a reduction: the struct that holds them, and the device functions that combine two of them."""

from __future__ import annotations

from cudaperf_agent.codegen.emit import Emitter
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.scalars import Reduction
from cudaperf_agent.codegen.steps import Reduce
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import CType, TypeKind


class Partials:
    """The struct and its functions, by their names in the source.

    Args:
        emitter: Gives the names, and says whether blocks combine by a tree.
        step: Whose results these are.

    Attributes:
        type: Name of the struct.
        combine: Name of the function that combines a second value into a first one.
        gather: Name of the function that combines those of a block; empty without a tree.
        orders: Field with the iteration number of each reduction whose position counts, by the reduction's place.
    """

    def __init__(self, emitter: Emitter, step: Reduce) -> None:
        self.reductions = step.reductions
        self.type = emitter.fresh(f"{emitter.task.name}_Partial")
        self.combine = emitter.fresh(f"{emitter.task.name}_combine")
        self.orders = {r.place: emitter.fresh(f"{field(r)}_order") for r in step.reductions if r.payload}
        self.unused = emitter.fresh("unused")
        self.gather = emitter.fresh(f"{emitter.task.name}_gather") if emitter.strategy.tree else ""

    def definitions(self) -> list[str]:
        """The struct and its functions, as they stand before the kernels."""
        return [self._struct(), self._combine(), *([self._gather()] if self.gather else [])]

    def fields(self) -> list[tuple[CType, str]]:
        """Type and name of each field."""
        fields: list[tuple[CType, str]] = []
        for reduction in self.reductions:
            fields.append((_widened(reduction.type), field(reduction)))
            if reduction.payload:
                fields += [(_widened(p.type), p.name) for p in reduction.payload]
                fields.append((ir.LONG_LONG, self.orders[reduction.place]))
        if sum(kind.size for kind, _ in fields) % max(kind.size for kind, _ in fields):
            fields.append((ir.INT, self.unused))
        # Largest first and filled up: no byte of a partial result is padding, which nobody would have written.
        return sorted(fields, key=lambda f: -f[0].size)

    def _struct(self) -> str:
        members = [f"{INDENT}{spelled(kind)} {name};" for kind, name in self.fields()]
        return "\n".join([f"struct {self.type} {{", *members, "};"])

    def _combine(self) -> str:
        lines = [f"static __device__ void {self.combine}({self.type} &a, const {self.type} &b)", "{"]
        for reduction in self.reductions:
            lines += [INDENT + line for line in self._merge(reduction, "a.", "b.")]
        return "\n".join([*lines, "}"])

    def _merge(self, reduction: Reduction, a: str, b: str) -> list[str]:
        """Lines that combine one reduction's value `b` into `a`."""
        name, relation = field(reduction), reduction.relation
        if reduction.kind == "best" and reduction.payload:
            order = self.orders[reduction.place]
            earlier = "<" if relation in ("<", ">") else ">"
            strict = relation.rstrip("=")
            test = (
                f"{b}{order} >= 0 && ({a}{order} < 0 || {b}{name} {strict} {a}{name} || "
                f"({b}{name} == {a}{name} && {b}{order} {earlier} {a}{order}))"
            )
            moved = [f"{a}{n} = {b}{n};" for n in (name, *(p.name for p in reduction.payload), order)]
            return [f"if ({test}) {{", *(INDENT + m for m in moved), "}"]
        if reduction.kind == "best" and relation.startswith("f"):
            single = "f" if reduction.type.size == 4 else ""
            function = f"fmin{single}" if relation == "f<" else f"fmax{single}"
            return [f"{a}{name} = {function}({a}{name}, {b}{name});"]
        if reduction.kind == "best":
            return [f"if ({b}{name} {relation} {a}{name})", f"{INDENT}{a}{name} = {b}{name};"]
        if reduction.kind == "set":
            assert reduction.constant is not None
            value = f"({spelled(reduction.type)})({Printer({}).expr(reduction.constant)})"
            return [f"if ({b}{name} == {value})", f"{INDENT}{a}{name} = {b}{name};"]
        if reduction.kind in ("&&", "||"):
            return [f"{a}{name} = {a}{name} {reduction.kind} {b}{name};"]
        return [f"{a}{name} {reduction.kind}= {b}{name};"]

    def _gather(self) -> str:
        """Combination within a block: by shuffles in each warp, then over the warps."""
        moved = [
            f"{INDENT * 2}other.{name} = __shfl_down_sync(0xffffffffu, mine.{name}, offset);"
            for _, name in self.fields()
        ]
        return "\n".join(
            [
                "// The whole block calls this; the combination of all threads' values ends up in thread 0.",
                f"static __device__ {self.type} {self.gather}({self.type} mine)",
                "{",
                f"{INDENT}__shared__ {self.type} warps[32];",
                f"{INDENT}for (int offset = 16; offset > 0; offset >>= 1) {{",
                f"{INDENT * 2}{self.type} other;",
                *moved,
                f"{INDENT * 2}{self.combine}(mine, other);",
                f"{INDENT}}}",
                f"{INDENT}if (threadIdx.x % 32 == 0)",
                f"{INDENT * 2}warps[threadIdx.x / 32] = mine;",
                f"{INDENT}__syncthreads();",
                f"{INDENT}if (threadIdx.x == 0)",
                f"{INDENT * 2}for (int warp = 1; warp < (int)blockDim.x / 32; warp++)",
                f"{INDENT * 3}{self.combine}(mine, warps[warp]);",
                f"{INDENT}return mine;",
                "}",
            ]
        )


def field(reduction: Reduction) -> str:
    """Name of a reduction's value in the partial results."""
    place = reduction.place
    if isinstance(place, ir.Member) and isinstance(place.base, ir.Ref):
        return f"{place.base.name}_{place.field}"
    return place.name if isinstance(place, ir.Ref) else place.field


def _widened(kind: CType) -> CType:
    """Small integers are kept as ``int`` or ``unsigned int`` in partial results."""
    if kind.size >= 4:
        return kind
    return CType("unsigned int", TypeKind.UINT, 4, 4) if kind.kind is TypeKind.UINT else ir.INT


def names_of(reduction: Reduction) -> set[str]:
    """Variables that a reduction assigns."""
    owner = ir.root(reduction.place)
    mine = {owner.name} if isinstance(owner, ir.Ref) else set()
    return mine | {p.name for p in reduction.payload}
