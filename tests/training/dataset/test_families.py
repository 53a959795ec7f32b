"""The families: deterministic, different, loadable, translated by the generator, legal under sanitizers."""

from __future__ import annotations

import random

import pytest

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.tasks.model import TypeKind
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from training.dataset.build import _differences
from training.dataset.families import FAMILIES, MEMBERS, Program, all_programs
from training.dataset.families.style import restyle

PROGRAMS = list(all_programs())
SAMPLE = random.Random(7).sample(PROGRAMS, 40)
PREPARED = random.Random(11).sample(PROGRAMS, 5)


def test_there_are_forty_families_and_more_of_eight_members_each() -> None:
    assert len(FAMILIES) >= 40
    assert len({f.name for f in FAMILIES}) == len(FAMILIES)
    assert len(PROGRAMS) == MEMBERS * len(FAMILIES)
    assert len({f.area for f in FAMILIES}) >= 10


def test_texts_repeat_and_no_two_are_the_same() -> None:
    again = [p.source for p in all_programs()]
    assert again == [p.source for p in PROGRAMS]
    assert len(set(again)) == len(again)


def test_a_prefix_of_the_programs_spans_all_families() -> None:
    assert {p.family for p in PROGRAMS[: len(FAMILIES)]} == {f.name for f in FAMILIES}


def test_members_differ_in_element_type_and_in_writing() -> None:
    programs = [p for p in PROGRAMS if p.family == "axpy_shift"]
    tasks = [load_task(source=p.source, entry=p.entry) for p in programs]
    assert len({b.type.spelling for t in tasks for b in t.buffers}) >= 3
    assert len({tuple(p.name for p in t.parameters) for t in tasks}) >= 6


def test_restyling_renames_everywhere_and_keeps_words_that_would_clash() -> None:
    head = "/* cudaperf: in x[n] */\nvoid f(int n, const int *x)\n{\n"
    text = head + "    for (int i = 0; i < n; i++)\n        g(x[i], src);\n}\n"
    styled = restyle(text, seed=1, member=0)
    assert styled.renamed["n"] == "count"
    assert "in x[count]" in styled.source.replace(styled.renamed.get("x", "x"), "x")
    assert "int n" not in styled.source
    taken = restyle(text.replace("src", "count"), seed=1, member=0)
    assert "n" not in taken.renamed


@pytest.mark.parametrize("program", SAMPLE, ids=lambda p: p.name)
def test_a_sampled_task_is_declared_in_full_and_translated(program: Program) -> None:
    task = load_task(source=program.source, entry=program.entry)
    assert all(p.extent is not None and p.extent.origin.declared and p.role_origin.declared for p in task.buffers)
    scalars = {p.name for p in task.parameters if not p.pointer and p.type.kind in (TypeKind.INT, TypeKind.UINT)}
    assert set(program.sizes) <= scalars
    generation = generate(task)
    assert generation.declined is None
    assert generation.naive is not None
    assert len(generation.variants) >= 3


@pytest.mark.parametrize("program", PREPARED, ids=lambda p: p.name)
async def test_a_sampled_task_is_legal_as_declared(program: Program) -> None:
    task = load_task(source=program.source, entry=program.entry)
    assert _differences(task, await prepare(task)) == ""
