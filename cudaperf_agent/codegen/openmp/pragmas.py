"""The C of a task with ``#pragma omp parallel for`` before each outermost loop that is proven parallel.

The proof is that of the generator's launches (`dependence.carried`): no two iterations touch one element of which one
stores, and scalars are private to an iteration or reductions that OpenMP knows. A loop that cannot be placed in the
text for sure (two on one line, made by a macro, names that differ) is left as it is.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cudaperf_agent.codegen.dependence import carried
from cudaperf_agent.codegen.known import Context
from cudaperf_agent.codegen.nests import declared_by, leaves_early, nest_of
from cudaperf_agent.codegen.plan import Planner, begun_anew
from cudaperf_agent.codegen.scalars import Reduction, carried_scalars, declared, find_reductions, stored_scalars
from cudaperf_agent.codegen.steps import Declined, Step
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower import lower_task
from cudaperf_agent.tasks.lowered import Module, Unlowered
from cudaperf_agent.tasks.model import Task, TypeKind

_OWN = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b", re.M)
_FOR = re.compile(r"\bfor\s*\(")
_OPERATORS = frozenset({"+", "*", "&", "|", "^", "&&", "||"})
_BEST = {"<": "min", "<=": "min", ">": "max", ">=": "max"}
# How the lowering tells declarations of one name apart, and those that C++ does not take.
_RENAMED = re.compile(r"_\d*$")
_REDUCED = frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.FLOAT})


@dataclass(frozen=True, slots=True)
class OpenMpSource:
    """C that runs on several cores.

    Attributes:
        text: The whole file.
        lines: Lines (1-based) of the original file before which a pragma was put; ``()`` where it has its own.
    """

    text: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProvenLoop:
    """An outermost parallel loop: its line, the scalars that each iteration has for itself, and reductions."""

    line: int
    private: tuple[str, ...]
    reductions: tuple[str, ...]

    @property
    def pragma(self) -> str:
        """The directive."""
        private = f" private({', '.join(self.private)})" if self.private else ""
        return "#pragma omp parallel for" + private + "".join(f" reduction({r})" for r in self.reductions)


def openmp_source(task: Task) -> OpenMpSource | None:
    """The C with OpenMP: as written where it has pragmas, else with those that are proven; `None` where none is."""
    if _OWN.search(task.source):
        return OpenMpSource(task.source)
    lines = task.source.split("\n")
    chosen = [loop for loop in proven_loops(task) if _placed(lines, loop)]
    if not chosen:
        return None
    for loop in sorted(chosen, key=lambda one: -one.line):
        lines.insert(loop.line - 1, loop.pragma)
    return OpenMpSource("\n".join(lines), tuple(sorted(loop.line for loop in chosen)))


def proven_loops(task: Task) -> tuple[ProvenLoop, ...]:
    """Loops of the entry that are parallel, each not inside another such loop."""
    module = lower_task(task)
    if isinstance(module, Unlowered):
        return ()
    extents = {p.name: p.extent.expr for p in task.buffers if p.extent is not None}

    def proven(device: frozenset[str]) -> tuple[ProvenLoop, ...]:
        finder = _Finder(module, extents, device)
        # What was proven before the planner gives up holds nevertheless.
        with contextlib.suppress(Declined):
            finder.plan()
        return tuple(finder.proven)

    try:
        return begun_anew(proven)
    except Declined:
        return ()


def _placed(lines: Sequence[str], loop: ProvenLoop) -> bool:
    """Whether a directive on a line of its own before the loop's line belongs to this loop, and to nothing else."""
    if not 0 < loop.line <= len(lines):
        return False
    text, before = lines[loop.line - 1].lstrip(), lines[loop.line - 2] if loop.line > 1 else ""
    return _FOR.match(text) is not None and len(_FOR.findall(text)) == 1 and not before.rstrip().endswith("\\")


class _Finder(Planner):
    """Plans the entry, and notes on the way which loops of the text are parallel as a whole."""

    def __init__(self, module: Module, extents: dict[str, str], device: frozenset[str]) -> None:
        super().__init__(module, extents, device)
        self.proven: list[ProvenLoop] = []
        # Loops that the planner makes of others are not in the text.
        self._open = {id(n): n for n in ir.walk(*module.entry.body) if isinstance(n, ir.For)}

    def _loop(self, loop: ir.For, context: Context, following: Sequence[ir.Stmt]) -> list[Step]:
        if id(loop) in self._open:
            proof = self._proof(loop, context)
            if proof is not None:
                self.proven.append(proof)
                for inner in ir.walk(loop):
                    self._open.pop(id(inner), None)
        return super()._loop(loop, context, following)

    def _proof(self, loop: ir.For, context: Context) -> ProvenLoop | None:
        if leaves_early(loop.body) or any(isinstance(n, ir.Allocate) and not n.declares for n in ir.walk(*loop.body)):
            return None
        nest = nest_of(loop)
        found = carried(self.accesses(nest, context), nest.variables)[loop.variable]
        if found.order or found.updates:
            return None
        shared = carried_scalars(nest.inner, nest.variables, context.live - declared_by(nest))
        reductions = find_reductions(nest.inner, sorted(shared), self.module) if shared else []
        if isinstance(reductions, str):
            return None
        clauses = [_clause(r) for r in reductions]
        own = stored_scalars(loop.body) - declared(loop.body) - {loop.variable} - shared
        if None in clauses or not (own | shared) <= self._spelled:
            return None
        return ProvenLoop(loop.line, tuple(sorted(own)), tuple(sorted(c for c in clauses if c is not None)))

    @property
    def _spelled(self) -> set[str]:
        """Names that the entry declares only once, and that are the same in the text and in the lowered form."""
        nodes = list(ir.walk(*self.module.entry.body))
        made = [n.name for n in nodes if isinstance(n, ir.Declare) or (isinstance(n, ir.Point) and n.declares)]
        made += [n.variable for n in nodes if isinstance(n, ir.For) and n.declared]
        made += [p.name for p in self.module.entry.params]
        renamed = {name for name in made if _RENAMED.search(name)}
        return set(made) - renamed - {_RENAMED.sub("", name) for name in renamed}


def _clause(reduction: Reduction) -> str | None:
    """As in a directive, `None` for what OpenMP has no operator for."""
    place = reduction.place
    if not isinstance(place, ir.Ref) or place.type.kind not in _REDUCED or reduction.payload:
        return None
    if reduction.kind == "best":
        operator = _BEST.get(reduction.relation)
    else:
        operator = reduction.kind if reduction.kind in _OPERATORS else None
    return f"{operator}: {place.name}" if operator else None
