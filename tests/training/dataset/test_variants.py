"""Variants of a task: enough of them, distinct, and each edit does what its label says."""

from __future__ import annotations

import re

import pytest

from cudaperf_agent.features.extract import extract
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.dataset import mutate
from training.dataset.job import program_named
from training.dataset.variants import SeriesConfig, variants_of


def task_of(name: str) -> Task:
    program = program_named(name)
    return load_task(source=program.source, entry=program.entry)


def naive_of(task: Task) -> str:
    return next(v.source for v in variants_of(task) if v.naive)


@pytest.mark.parametrize("name", ["axpy_shift/0", "matmul/1", "row_totals/2", "sparse_rows/3", "bin_counts/4"])
def test_a_task_has_distinct_variants_a_third_of_them_a_series(name: str) -> None:
    variants = variants_of(task_of(name), config=SeriesConfig(most=18))
    assert len(variants) >= 10
    assert variants[0].naive
    assert sum(v.naive for v in variants) == 1
    assert len({v.digest for v in variants}) == len(variants)
    assert sum(v.origin in ("series", "edit") for v in variants) >= len(variants) / 3


def test_the_turn_chooses_among_series_and_edits_and_repeats() -> None:
    task = task_of("axpy_shift/0")
    first = [v.digest for v in variants_of(task, turn=0)]
    assert first == [v.digest for v in variants_of(task, turn=0)]
    assert first != [v.digest for v in variants_of(task, turn=9)]


@pytest.mark.parametrize(("items", "coal"), [(2, 0.4), (3, 0.1), (4, 0.1), (8, -0.5)])
def test_neighbouring_items_give_the_strides_of_the_paper(items: int, coal: float) -> None:
    task = task_of("activation/0")
    source = naive_of(task)
    edited = mutate.chunked(items).apply(task, source)
    assert edited is not None
    assert extract(source)["coal"] == 1.0
    assert extract(edited)["coal"] == pytest.approx(coal)


def test_interleaved_items_stay_coalesced_and_both_shrink_the_grid() -> None:
    task = task_of("activation/0")
    source = naive_of(task)
    for edit in (mutate.interleaved(4), mutate.chunked(4)):
        edited = edit.apply(task, source)
        assert edited is not None
        assert "256 * 4" not in edited
        assert re.search(r"blocks_for\(\w+, 1024, ", edited)
    assert extract(mutate.interleaved(4).apply(task, source) or "")["coal"] == 1.0


def test_crossed_planes_lose_coalescing() -> None:
    task = task_of("five_point/0")
    source = naive_of(task)
    crossed = mutate.crossed().apply(task, source)
    assert crossed is not None
    assert extract(source)["coal"] == 1.0
    assert extract(crossed)["coal"] < 0


def test_added_atomics_barriers_copies_and_kernels_are_seen_as_such() -> None:
    task = task_of("activation/0")
    before = extract(naive_of(task))
    changed = {
        "atomics": mutate.counted(True),
        "sync": mutate.halted(2),
        "xfer": mutate.staged(),
        "kernels": mutate.cleared(),
    }
    for feature, edit in changed.items():
        edited = edit.apply(task, naive_of(task))
        assert edited is not None
        after = extract(edited)
        assert after[feature] > before[feature], feature


def test_an_edit_without_a_place_is_none() -> None:
    task = task_of("edit_table/0")
    assert mutate.crossed().apply(task, naive_of(task)) is None
    assert mutate.chunked(2).apply(task, "int nothing;") is None
