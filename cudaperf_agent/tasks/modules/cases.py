"""Cases of a PyTorch module: shapes of the inputs, how their values are drawn, their element type and layout.

A case is only described here; the child process that runs the module itself draws the values (by seed), since it has
torch. What a case is there to find: a size, rank or stride that is written into the kernel; a sign, scale or constant
that it relies on; a result that is kept from an earlier call.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cudaperf_agent.tasks.modules.spec import ModuleSpec

LAYOUTS = ("contiguous", "spaced", "transposed")
_VISIBLE = ("normal", "negative", "normal", "large")
_HIDDEN = ("positive", "shifted", "outlier", "small", "constant", "zeros", "negative", "normal")
_EDGES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025, 2049)
_LARGE = (300, 2500)
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 37, 41, 43, 53, 61, 67, 79, 97, 113, 131, 149, 173, 197, 229, 263, 293)


@dataclass(frozen=True, slots=True)
class ModuleCase:
    """One call of ``forward``.

    Attributes:
        name: Short and readable.
        dtype: Element type of floating-point inputs and of the state.
        shapes: Of each argument; ``()`` too for one that is no tensor.
        contents: How values are drawn (of inputs whose range is open): ``normal``, ``negative``, ``large``, …
        layout: Of the inputs in memory, one of `LAYOUTS`.
        over_previous: The inputs are written over those of the case before, at the same addresses.
        hidden: Kept for the final check.
        probe: Only its launches are counted, so that it may be large; what it must give is not computed.
    """

    name: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    contents: str = "normal"
    layout: str = "contiguous"
    over_previous: bool = False
    hidden: bool = False
    probe: bool = False


def growth_cases(module: ModuleSpec, elements: int = 1 << 20) -> tuple[ModuleCase, ...]:
    """Cases in which each changeable size in turn is large, the others small: do launches get wider with them?

    Args:
        module: A described module.
        elements: Of all inputs, at most.
    """
    made = []
    for size in _LARGE:
        for at in range(len(module.dimensions)):
            sizes = tuple(size if i == at else 3 for i in range(len(module.dimensions)))
            case = _case(module, module.tested_dtypes[0], sizes, "normal", "contiguous", False)
            if _elements(case.shapes) <= elements:
                made.append(replace(case, name=f"{case.name} (launches only)", probe=True))
    return tuple(_named_apart(made))


def module_cases(module: ModuleSpec, *, hidden: bool, seed: int, elements: int | None = None) -> tuple[ModuleCase, ...]:
    """The cases of a described module.

    Args:
        module: It.
        hidden: The final ones, or those that a policy may be told of.
        seed: Of the sizes; the values are drawn elsewhere.
        elements: Of all inputs, at most; `None` takes what the emulator can do in reasonable time.
    """
    chance = random.Random(f"{seed} {hidden} {module.class_name}")
    assigned = list(dict.fromkeys(_hidden_sizes(module, chance) if hidden else _visible_sizes(module)))
    if elements is not None:
        own = tuple(d.size for d in module.dimensions)
        fits = _elements(shapes_of(module, own)) <= elements
        assigned = list(dict.fromkeys([*assigned, own])) if fits else assigned
    made: list[ModuleCase] = []
    for dtype in module.tested_dtypes:
        contents = _HIDDEN if hidden else _VISIBLE
        for number in range(max(len(assigned), len(contents))):
            sizes = assigned[number % len(assigned)]
            made.append(_case(module, dtype, sizes, contents[number % len(contents)], "contiguous", hidden))
        made.append(_case(module, dtype, assigned[0], "shifted", "contiguous", hidden))
        made.append(_case(module, dtype, assigned[0], "normal", "contiguous", hidden, over=True))
        if module.strided:
            layouts = LAYOUTS[1:] if hidden else LAYOUTS[1:2]
            made += [_case(module, dtype, assigned[0], "normal", layout, hidden) for layout in layouts]
    return tuple(_named_apart(made))


def shapes_of(module: ModuleSpec, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Shapes of the inputs where the changeable dimensions have the given sizes, in their order, or their least."""
    shapes = [list(i.shape) for i in module.inputs]
    for dimension, size in zip(module.dimensions, sizes, strict=True):
        for which, place in dimension.places:
            shapes[which][place] = max(size, dimension.least)
    return tuple(tuple(s) for s in shapes)


def small_shapes(module: ModuleSpec) -> tuple[tuple[int, ...], ...]:
    """Shapes for a run that only has to work: no changeable dimension is larger than it must be."""
    return shapes_of(module, _visible_sizes(module)[0])


def _visible_sizes(module: ModuleSpec) -> list[tuple[int, ...]]:
    count = len(module.dimensions)
    if not count:
        return [()]
    room = max(1, module.reduced)
    middle = [p for p in _PRIMES if p <= room * 2 // 3] or [max(1, room)]
    first = tuple(middle[-1 - (i % len(middle))] for i in range(count))
    found = [_within(module, first), tuple(min(2 + i, room) for i in range(count))]
    found += [_stretched(module, i, 3) for i in range(min(count, 3))]
    return list(dict.fromkeys(found))


def _hidden_sizes(module: ModuleSpec, chance: random.Random) -> list[tuple[int, ...]]:
    count = len(module.dimensions)
    if not count:
        return [()]
    room = max(1, module.reduced)
    small = [e for e in _EDGES if e <= room] or [1]
    found = [_within(module, tuple(chance.choice(_PRIMES) for _ in range(count)))]
    found += [(1,) * count, *(_stretched(module, i, 2) for i in range(min(count, 3)))]
    found += [_within(module, tuple(chance.choice(small) for _ in range(count))) for _ in range(4)]
    return list(dict.fromkeys(found))


def _stretched(module: ModuleSpec, which: int, others: int) -> tuple[int, ...]:
    """One dimension as large as the budget allows, the others small."""
    room = max(1, module.reduced)
    rest = [max(d.least, min(others, room)) for d in module.dimensions]
    taken = _product([r for i, r in enumerate(rest) if i != which])
    most = max(1, room ** len(rest) // taken)
    size = next((e for e in reversed(_EDGES) if e <= most), 1)
    return tuple(size if i == which else r for i, r in enumerate(rest))


def _within(module: ModuleSpec, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes, the largest halved until all together are within the budget (or as small as the module takes)."""
    most = max(1, module.reduced) ** len(sizes)
    least = [d.least for d in module.dimensions]
    found = [max(s, m) for s, m in zip(sizes, least, strict=True)]
    while _product(found) > most and found != least:
        at = max((i for i, s in enumerate(found) if s > least[i]), key=lambda i: found[i])
        found[at] = max(least[at], found[at] // 2)
    return tuple(found)


def _case(
    module: ModuleSpec,
    dtype: str,
    sizes: tuple[int, ...],
    contents: str,
    layout: str,
    hidden: bool,
    over: bool = False,
) -> ModuleCase:
    shapes = shapes_of(module, sizes)
    shown = " ".join("×".join(map(str, s)) or "scalar" for s, i in zip(shapes, module.inputs, strict=True) if i.dtype)
    words = [dtype, shown, contents, *([layout] if layout != "contiguous" else []), *(["same buffers"] if over else [])]
    return ModuleCase(" ".join(words), dtype, shapes, contents, layout, over, hidden)


def _named_apart(cases: list[ModuleCase]) -> Iterator[ModuleCase]:
    seen: set[str] = set()
    for case in cases:
        if case.name not in seen:
            seen.add(case.name)
            yield case


def _elements(shapes: tuple[tuple[int, ...], ...]) -> int:
    return sum(_product(s) for s in shapes)


def _product(sizes: tuple[int, ...] | list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
