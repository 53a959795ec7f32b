"""What the entry does with each buffer: reads it, changes it, or writes every element before anything is read.

``out`` is only claimed where it is proven that every element is written before it is read, for all sizes; a buffer
that may keep part of its old content is ``inout``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cudaperf_agent.tasks.accesses import Access, Findings, Loop
from cudaperf_agent.tasks.model import CType, Role, TypeKind
from cudaperf_agent.tasks.poly import Facts, Poly, non_negative


def infer_role(findings: Findings, base: str, ctype: CType, extent: Poly | None) -> Role:
    """The role of one buffer.

    Args:
        findings: Of the walk.
        base: Parameter.
        ctype: Its element type.
        extent: Number of elements; without it nothing is proven to be written whole.
    """
    accesses = findings.of(base)
    if not any(a.write for a in accesses):
        return Role.IN
    if extent is None:
        return Role.INOUT
    return Role.OUT if all(_written_first(findings.facts, accesses, m, extent) for m in leaves(ctype)) else Role.INOUT


def leaves(ctype: CType, path: str = "") -> list[str]:
    """Paths of the members that make up a type, ``""`` for a scalar; an array member stands as ``name[]``."""
    if ctype.kind is not TypeKind.STRUCT:
        return [path]
    found = []
    for member in ctype.fields:
        inner = f"{path}.{member.name}" if path else member.name
        found += [f"{inner}[]"] if member.shape else leaves(member.type, inner)
    return found


def _concerns(access: Access, member: str) -> bool:
    bare = member.removesuffix("[]")
    return access.member == "" or bare == access.member or bare.startswith(f"{access.member}.")


def _written_first(facts: Facts, accesses: Sequence[Access], member: str, extent: Poly) -> bool:
    concerned = [a for a in accesses if _concerns(a, member)]
    for position, access in enumerate(concerned):
        # One write to an array member is one of its elements only; as part of the whole struct it is all of them.
        partial = member.endswith("[]") and access.member == member.removesuffix("[]")
        if access.write and not partial and covers(access, extent):
            reads = [a for a in concerned if not a.write]
            early = [a for a in concerned[:position] if not a.write]
            return not early and all(_after(facts, access, read) for read in reads)
    return False


def covers(write: Access, extent: Poly) -> bool:
    """Whether a write reaches every element from 0 to ``extent - 1``, whatever the sizes."""
    if not write.certain or write.offset is None:
        return False
    for guard in write.guards:
        for constraint in guard.constraints:
            if any("#" in atom for atom in constraint.atoms):
                continue  # the domain of a loop, which is complete or not
            if not _empty_without(constraint, extent):
                return False
    span = contiguous(write.offset, write.loops)
    return span is not None and span == extent


def _empty_without(constraint: Poly, extent: Poly) -> bool:
    """Whether there are no elements at all where ``constraint >= 0`` fails: it is ``size >= 1`` of a factor."""
    if non_negative(constraint):
        return True
    size = constraint.plus(1)
    if len(size.terms) != 1 or len(size.terms[0][0]) != 1 or size.terms[0][1] != 1:
        return False
    atom = size.terms[0][0][0]
    return all(atom in monomial for monomial, _ in extent.terms)


def contiguous(offset: Poly, loops: Sequence[Loop]) -> Poly | None:
    """The number of elements that a write to `offset` in `loops` covers, if these are 0, 1, 2, … without a gap."""
    start = offset
    open_loops: list[tuple[Poly, Poly]] = []
    for loop in loops:
        if loop.atom is None or loop.low is None or loop.high is None or not loop.complete:
            return None
        trips = (loop.high - loop.low).plus(1)
        if any("#" in atom for atom in trips.atoms):
            return None
        if loop.atom not in offset.atoms:
            if trips.constant is None or trips.constant < 1:
                return None
            continue
        if offset.degree(loop.atom) != 1:
            return None
        step = offset.coefficient(loop.atom)
        if any("#" in atom for atom in step.atoms):
            return None
        falling = non_negative(step.scaled(-1))
        start = start.substitute(loop.atom, loop.high if falling else loop.low)
        open_loops.append((step.scaled(-1) if falling else step, trips))
    if start.terms:
        return None
    covered = Poly.number(1)
    while open_loops:
        following = next((pair for pair in open_loops if pair[0] == covered), None)
        if following is None:
            return None
        open_loops.remove(following)
        covered = covered * following[1]
    return covered


def _after(facts: Facts, write: Access, read: Access) -> bool:
    """Whether what `read` reads was written by `write` in the same iteration of the loops they share, or in all."""
    shared = [a for a, b in zip(write.loops, read.loops, strict=False) if a is b]
    if not shared:
        return True
    if read.offset is None or write.offset is None:
        return False
    private = write.loops[len(shared) :]
    first = write.offset
    for loop in private:
        if loop.atom is None or loop.low is None:
            return False
        first = first.substitute(loop.atom, loop.low)
    span = contiguous(write.offset - first, private) if private else Poly.number(1)
    if span is None:
        return False
    fixed = {loop.atom for loop in shared}
    local = Facts({name: bounds for name, bounds in facts.known.items() if name not in fixed})
    distance = read.offset - first
    if distance.atoms & {a for a in fixed if a is not None}:
        return False
    low, high = local.lower(distance), local.upper(distance)
    if low is None or high is None:
        return False
    return non_negative(low) and non_negative(span.plus(-1) - high)
