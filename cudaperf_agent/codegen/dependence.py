"""Which loops of a nest carry dependences, decided by isl on integer sets.

Two accesses conflict when they may touch one element and one of them stores. A loop is *parallel* here when no two
conflicting accesses lie in different iterations of it, whatever the other loops of the nest do. That is stronger than
"carries no dependence", and it is what makes the loop movable to the outside: every dependence has distance 0 in it,
so any order of the remaining loops that keeps their relative order is legal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

from cudaperf_agent.codegen.accesses import Access, Domain
from cudaperf_agent.codegen.affine import Poly, isl_text, opaque, ratio, split, strides_of


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that may touch one element in different iterations.

    Attributes:
        root: The buffer.
        line: Where the storing access is.
        other: Where the other one is.
        update: Both are updates with one associative operator, so that atomics would settle it.
    """

    root: str
    line: int
    other: int
    update: bool

    def __str__(self) -> str:
        if self.line == self.other:
            return f"different iterations may touch the same element of '{self.root}'"
        lines = f"lines {min(self.line, self.other)} and {max(self.line, self.other)}"
        return f"different iterations may touch the same element of '{self.root}' ({lines})"


@dataclass(frozen=True, slots=True)
class Carried:
    """Conflicts that one loop of a nest carries; both empty: the loop is parallel."""

    order: tuple[Conflict, ...] = ()
    updates: tuple[Conflict, ...] = ()


def carried(accesses: Sequence[Access], loops: Sequence[str], fixed: Sequence[str] = ()) -> dict[str, Carried]:
    """For each loop of a nest the conflicts between its iterations.

    Args:
        accesses: Of the nest's body; the loops are the first dimensions of every domain.
        loops: Loop variables from outside in.
        fixed: Variables of loops around them that are in one and the same iteration.
    """
    found: dict[str, list[Conflict]] = {loop: [] for loop in loops}
    for root, mine in groups_by_root(accesses).items():
        if root.startswith("?") and any(a.write for a in accesses):
            lost = Conflict(root.lstrip("?"), mine[0].line, mine[0].line, False)
            return {loop: Carried((lost,)) for loop in loops}
        if not any(a.write for a in mine):
            continue
        subscripts = comparable(mine)
        for one, two in combinations_with_replacement(range(len(mine)), 2):
            a, b = mine[one], mine[two]
            if not (a.write or b.write):
                continue
            update = a.update is not None and a.update == b.update
            for loop in loops:
                known = any(
                    c.update is update and {c.line, c.other} == {a.line, b.line} and c.root == root for c in found[loop]
                )
                if not known and _meet_apart(a, b, subscripts[one], subscripts[two], loop, fixed):
                    stored, other = (a, b) if a.write else (b, a)
                    found[loop].append(Conflict(root, stored.line, other.line, update))
    return {
        loop: Carried(tuple(c for c in cs if not c.update), tuple(c for c in cs if c.update))
        for loop, cs in found.items()
    }


def groups_by_root(accesses: Iterable[Access]) -> dict[str, list[Access]]:
    """Accesses by buffer."""
    groups: dict[str, list[Access]] = {}
    for access in accesses:
        groups.setdefault(access.root, []).append(access)
    return groups


def comparable(accesses: Sequence[Access]) -> list[tuple[Poly, ...] | None]:
    """Subscripts of accesses to one buffer such that elements are equal exactly when all subscripts are.

    Returns:
        One tuple per access, all of one length; `None` for an access that may touch anything.
    """
    if all(a.indices is not None for a in accesses):
        return [a.indices if _affine(a) else None for a in accesses]
    variables = [set(a.domain.dims) | set(a.domain.free) for a in accesses]
    every = set().union(*variables)
    known = [a.flat for a in accesses if a.flat is not None]
    strides = strides_of(known, every)
    if strides is not None and len(strides) > 1:
        pairs = [_rows(a, strides, v) for a, v in zip(accesses, variables, strict=True)]
        if all(p is not None for p, a in zip(pairs, accesses, strict=True) if a.flat is not None):
            return pairs
    return [
        (a.flat,) if a.flat is not None and a.flat.affine_in(v) else None
        for a, v in zip(accesses, variables, strict=True)
    ]


def _affine(access: Access) -> bool:
    variables = set(access.domain.dims) | set(access.domain.free)
    return access.indices is not None and all(p.affine_in(variables) for p in access.indices)


def _rows(access: Access, strides: tuple, variables: set[str]) -> tuple[Poly, ...] | None:  # type: ignore[type-arg]
    if access.flat is None:
        return None
    for sizes_inside in (False, True):
        parts = split(access.flat, strides, variables, sizes_inside=sizes_inside)
        if parts is not None and all(
            always_within(access.domain, part, ratio(outer, inner))
            for part, outer, inner in zip(parts[1:], strides, strides[1:], strict=False)
        ):
            return parts
    return None


def always_within(domain: Domain, value: Poly, size: Poly) -> bool:
    """Whether ``0 <= value < size`` holds all over the domain."""
    text = [isl_text(value), isl_text(size)]
    names = value.names() | size.names()
    return empty(_set(domain, "", [f"{text[0]} < 0"], _parameters(domain, [value, size], names))) and empty(
        _set(domain, "", [f"{text[0]} >= {text[1]}"], _parameters(domain, [value, size], names))
    )


def never_negative(domain: Domain, value: Poly) -> bool:
    """Whether ``value >= 0`` holds all over the domain."""
    if not value.affine_in(set(domain.dims) | set(domain.free)):
        return False
    return empty(_set(domain, "", [f"{isl_text(value)} < 0"], _parameters(domain, [value])))


def _parameters(domain: Domain, polys: Sequence[Poly], _names: set[str] | None = None) -> set[str]:
    variables = set(domain.dims) | set(domain.free)
    names: set[str] = set()
    for poly in [*polys, *(c.poly for c in domain.constraints if c.poly.affine_in(variables))]:
        for monomial in poly.terms:
            if monomial and not (len(monomial) == 1 and monomial[0] in variables):
                names.add(opaque(monomial))
    return names


def conditions(domain: Domain, suffix: str = "") -> list[str]:
    """The affine constraints of a domain as isl text, its variables with a suffix."""
    variables = [*domain.dims, *domain.free]
    renaming = {v: v + suffix for v in variables} if suffix else {}
    return [
        f"{isl_text(c.poly.renamed(renaming))} {'=' if c.equal else '>='} 0"
        for c in domain.constraints
        if c.poly.affine_in(set(variables))
    ]


def _set(domain: Domain, suffix: str, more: list[str], parameters: set[str]) -> str:
    variables = [v + suffix for v in (*domain.dims, *domain.free)]
    clauses = " and ".join([*conditions(domain, suffix), *more]) or "true"
    return f"[{', '.join(sorted(parameters))}] -> {{ [{', '.join(variables)}] : {clauses} }}"


def meeting(
    a: Access, b: Access, left: tuple[Poly, ...] | None, right: tuple[Poly, ...] | None, more: Sequence[str] = ()
) -> str:
    """isl text of the pairs of iterations in which two accesses touch one element; the second's variables primed."""
    first, second = (*a.domain.dims, *a.domain.free), (*b.domain.dims, *b.domain.free)
    renaming = {v: f"{v}_p" for v in second}
    clauses = [*conditions(a.domain), *conditions(b.domain, "_p"), *more]
    parameters = _parameters(a.domain, left or ()) | _parameters(b.domain, right or ())
    if left is not None and right is not None:
        clauses += [f"{isl_text(p)} = {isl_text(q.renamed(renaming))}" for p, q in zip(left, right, strict=True)]
    names = ", ".join([*first, *renaming.values()])
    return f"[{', '.join(sorted(parameters))}] -> {{ [{names}] : {' and '.join(clauses) or 'true'} }}"


def _meet_apart(
    a: Access,
    b: Access,
    left: tuple[Poly, ...] | None,
    right: tuple[Poly, ...] | None,
    loop: str,
    fixed: Sequence[str],
) -> bool:
    held = [f"{v} = {v}_p" for v in fixed]
    return not all(empty(meeting(a, b, left, right, [*held, f"{loop} {relation} {loop}_p"])) for relation in ("<", ">"))


def meets_earlier(moved: Sequence[Access], passed: Sequence[Access], loop: str) -> bool:
    """Whether an access of `moved` may conflict with one of `passed` in an earlier iteration of a loop."""
    both = groups_by_root([*moved, *passed])
    for root, mine in both.items():
        if root.startswith("?"):
            return True
        subscripts = dict(zip(map(id, mine), comparable(mine), strict=True))
        for a in (x for x in moved if x.root == root):
            for b in (x for x in passed if x.root == root):
                apart = meeting(a, b, subscripts[id(a)], subscripts[id(b)], [f"{loop} > {loop}_p"])
                if (a.write or b.write) and not empty(apart):
                    return True
    return False


_WORDS = re.compile(
    r"\b(all|ceil|ceild|exists|false|floor|floord|iff|implies|infty|lt|le|gt|ge|eq|ne|"
    r"lexmax|lexmin|max|min|mod|not|or|project|rat)\b",
    re.IGNORECASE,
)
"""What isl's text format has a meaning for, besides the words that are used here; C has it as names."""


@lru_cache(maxsize=4096)
def empty(text: str) -> bool:
    """Whether isl proves a set, given as text, to be empty."""
    import islpy

    return bool(islpy.Set(_WORDS.sub(r"\1_name", text)).is_empty())
