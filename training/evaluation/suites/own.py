"""Our own suites: ``handed`` (C as people write it), ``held-out`` (of the programs we made), ``own-c`` (both), and
``validation``, by which checkpoints are chosen: what it says of them is no result."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.dataset.families import MEMBERS, Program, all_programs
from training.evaluation.suite import Item, Suite
from training.evaluation.suites.folder import c_items
from training.splits import split_of

HANDED = Path(__file__).parent / "handed"
UNSEEN, HELD_OUT, VALIDATION = "unseen-families", "held-out-members", "validation"
_GROUPS = {"unseen_family": UNSEEN, "held_out_member": HELD_OUT}


def handed() -> Suite:
    """The C files that come with the package."""
    return Suite("handed", c_items(HANDED, "handed", packaged=True))


def held_out() -> Suite:
    """Programs that may not be learned from: of families nobody has seen, and one member of each seen family, apart."""
    programs = [p for p in all_programs() if split_of(p.family, p.member) in _GROUPS]
    # Member by member: whatever prefix is evaluated spans the families.
    items = [_item(p) for p in sorted(programs, key=lambda p: (_group(p) != UNSEEN, p.member % MEMBERS))]
    return Suite("held-out", tuple(items))


def own_c() -> Suite:
    """`handed` and `held_out`."""
    first, second = handed(), held_out()
    return Suite("own-c", (*first.items, *second.items), (*first.notes, *second.notes))


def validation() -> Suite:
    """One member of each seen family that is neither learned from nor held out."""
    programs = [p for p in all_programs() if split_of(p.family, p.member) == VALIDATION]
    note = "Checkpoints are chosen by these tasks: the chosen one's figures are too good."
    return Suite(VALIDATION, tuple(_item(p) for p in programs), (note,))


def _group(program: Program) -> str:
    split = split_of(program.family, program.member)
    return _GROUPS.get(split, split)


def _item(program: Program) -> Item:
    name = f"{program.family}-{program.member}"
    load = partial(_load, program, name)
    return Item(f"{_group(program)}/{name}", _group(program), program.family, program.source, load)


def _load(program: Program, name: str) -> Task:
    return load_task(Path(f"{name}.c"), source=program.source, entry=program.entry)
