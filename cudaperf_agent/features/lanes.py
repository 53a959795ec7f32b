"""What neighbouring threads see: the stride of an address along `threadIdx.x`, whether a condition splits a warp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cudaperf_agent.features.sampling import evaluate
from cudaperf_agent.features.symbolic import Atom, Poly, Space, X, Y, Z

WARP = 32
_DRAWS = 3
_DEFAULT_BLOCK_X = 256
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class Stride:
    """Distance in bytes between the addresses of neighbours, without sign; `None` and a word where it is no number."""

    size: int | None
    text: str


def stride_along_x(offset: Poly, space: Space, unit: int) -> Stride:
    """How far apart two neighbours in `threadIdx.x` are: a number in bytes, a formula in units of `unit` bytes.

    What is linear is differentiated; where ``/``, ``%``, ``min`` and the like take part, the most frequent distance
    within a warp is taken, over several draws of all that is unknown.
    """
    if not offset.mask & X:
        return Stride(0, "0")
    for atom in offset.atoms():
        if atom.mask & X and atom.sort in ("load", "unknown"):
            return Stride(None, "indirect" if atom.sort == "load" else "unknown")
    slope: dict[tuple[Atom, ...], int] = {}
    for monomial, c in offset.terms.items():
        varying = [a for a in monomial if a.mask & X]
        if not varying:
            continue
        if len(varying) > 1 or varying[0].operator:
            return _sampled_stride(offset, space)
        rest = tuple(a for a in monomial if not a.mask & X)
        slope[rest] = slope.get(rest, 0) + c
    derivative = Poly(slope)
    value = derivative.constant
    if value is not None:
        return Stride(abs(value), str(abs(value)))
    if all(c % unit == 0 for c in derivative.terms.values()):
        return Stride(None, str(Poly({m: c // unit for m, c in derivative.terms.items()})))
    return Stride(None, f"({derivative}) bytes")


def _sampled_stride(offset: Poly, space: Space) -> Stride:
    width = space.block[0]
    count = WARP if width is None else min(WARP, width)
    found: set[int] = set()
    for seed in range(_DRAWS):
        given = _draw(offset, seed, np.arange(count, dtype=np.int64))
        distances = np.abs(np.diff(evaluate(offset, given, count)))
        values, counts = np.unique(distances, return_counts=True)
        found.add(int(values[np.argmax(counts)]))
    if len(found) == 1:
        value = found.pop()
        return Stride(value, str(value))
    return Stride(None, "unknown")


def _draw(value: Poly, seed: int, x: Any, y: Any = None, z: Any = None) -> Mapping[Atom, Any]:
    generator = np.random.default_rng(seed)
    given: dict[Atom, Any] = {}
    lanes = {X: x, Y: y, Z: z}
    for atom in value.atoms():
        if atom.operator or atom in given:
            continue
        drawn = int(generator.integers(1, 6))
        if atom.sort == "thread" and lanes.get(atom.mask) is not None:
            given[atom] = lanes[atom.mask]
        elif atom.name == "blockDim.x":
            given[atom] = _DEFAULT_BLOCK_X
        elif atom.high is not None:
            given[atom] = min(atom.high, (atom.low or 0) + drawn)
        elif atom.sort in ("loop", "block", "thread"):
            given[atom] = drawn
        else:
            given[atom] = int(generator.integers(10_000, 20_000))
    return given


def splits_warp(condition: Poly, space: Space) -> bool:
    """Whether threads of one warp may disagree about a condition.

    A block whose x is not known is taken to be a multiple of the warp, so that `threadIdx.y` is the same across one.
    """
    relevant = X
    width, height, _ = space.block
    if width is not None and width % WARP:
        relevant |= Y
        if height is None or (width * height) % WARP:
            relevant |= Z
    return _splits(condition, space, relevant)


def _splits(value: Poly, space: Space, relevant: int) -> bool:
    if not value.mask & relevant:
        return False
    if len(value.terms) == 1:
        (monomial, _), *_rest = value.terms.items()
        if len(monomial) == 1 and monomial[0].operator in ("&&", "||", "!"):
            return any(_splits(a, space, relevant) for a in monomial[0].arguments)
        if len(monomial) == 1 and monomial[0].operator in _COMPARISONS:
            left, right = monomial[0].arguments
            return _comparison_splits(value, left - right, space, relevant)
    return _comparison_splits(value, value, space, relevant)


def _comparison_splits(condition: Poly, difference: Poly, space: Space, relevant: int) -> bool:
    if not difference.mask & relevant:
        return False
    atoms = list(difference.atoms())
    if any(a.mask & relevant and a.sort in ("load", "unknown") for a in atoms):
        return True
    top = [a for monomial in difference.terms for a in monomial]
    unknown = any(not a.mask & relevant for a in top)
    plain = any(a.mask & relevant and not a.operator for a in top)
    if plain and unknown:
        return True
    subject = [Poly({(a,): 1}) for a in top if a.mask & relevant] if unknown else [condition]
    return any(_disagree(value, space) for value in subject)


def _disagree(value: Poly, space: Space) -> bool:
    width = space.block[0] or _DEFAULT_BLOCK_X
    height = space.block[1] or 1
    depth = space.block[2] or 1
    count = min(width * height * depth, 1024)
    flat = np.arange(count, dtype=np.int64)
    for seed in range(_DRAWS):
        given = _draw(value, seed, flat % width, flat // width % height, flat // (width * height))
        seen = evaluate(value, given, count)
        for start in range(0, count, WARP):
            warp = seen[start : start + WARP]
            if (warp != warp[0]).any():
                return True
    return False


def same_trips(condition: Poly) -> bool:
    """Whether a loop runs equally often in all threads of a warp, give or take its last round.

    That is so where the threads start next to each other, step by at least a warp, and share the bound: a grid-stride
    or block-stride loop. A step that is not a number is taken to be a block or grid size.
    """
    if not condition.mask:
        return True
    if len(condition.terms) != 1:
        return False
    (monomial,) = condition.terms
    if len(monomial) != 1 or not monomial[0].operator:
        return False
    atom = monomial[0]
    if atom.operator == "&&":
        return all(same_trips(a) for a in atom.arguments)
    if atom.operator not in _COMPARISONS:
        return False
    left, right = atom.arguments
    spread = 0
    step: int | None = 0
    for product, c in (left - right).terms.items():
        varying = [a for a in product if a.mask]
        if varying:
            if len(product) != 1 or varying[0].sort != "thread":
                return False
            spread = max(spread, abs(c))
        elif any(a.sort == "loop" for a in product):
            step = None if step is None or len(product) > 1 else max(step, abs(c))
    return step is None or step >= spread * (WARP - 1)
