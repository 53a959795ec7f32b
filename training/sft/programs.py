"""Random C programs of the kinds that the generator translates, each from a seed.

They are what the families are too few for: that a model learns to carry a loop over, whatever is written in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from training.sft import gather_programs, map_programs
from training.sft.draft import Draft, Node
from training.sft.expressions import Kind

_KINDS: tuple[tuple[Kind, int], ...] = (("float", 5), ("double", 3), ("int", 3), ("unsigned", 1))
_TWICE = 0.06
"""Share of programs that do two things one after the other."""


@dataclass(frozen=True, slots=True)
class Written:
    """One C program: its text, its entry, and what made it."""

    source: str
    entry: str
    made_by: str


def write_program(seed: int) -> Written:
    """The program of a seed: the same text for the same seed."""
    rng = random.Random(f"program {seed}")
    kind = rng.choices([k for k, _ in _KINDS], [w for _, w in _KINDS])[0]
    draft = Draft(rng, kind)
    shapes = map_programs.SHAPES + gather_programs.SHAPES
    chosen = [rng.choices([s for s, _ in shapes], [w for _, w in shapes])[0]]
    if rng.random() < _TWICE:
        firsts = [map_programs.elementwise, map_programs.moved, gather_programs.lines, map_programs.stencil]
        chosen.insert(0, rng.choice(firsts))
    body: list[Node] = []
    for shape in chosen:
        body += shape(draft)
    return Written(draft.source(body), draft.entry, "+".join(shape.__name__ for shape in chosen))
