"""Further variants: they leave the first set as it was, do what they say, are seen by the features, and are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.features.extract import extract
from cudaperf_agent.features.model import Features
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from training.dataset.bench import SOURCE, Bench, BenchConfig
from training.dataset.edits.every import (
    COMPOUND,
    FURTHER_STRATEGIES,
    MOST_COMPOUND,
    every_variant,
    further_variants,
)
from training.dataset.edits.fission import joined, stored_apart, unfused
from training.dataset.edits.shapes import block_rows, laid_out
from training.dataset.edits.text import accesses, kernels, statements
from training.dataset.edits.tiles import shared_tile
from training.dataset.edits.vector_planes import plane
from training.dataset.edits.vectors import each, inner, split_index, strided
from training.dataset.emulated import emulated_bench, emulator_compile
from training.dataset.export import DATA
from training.dataset.families import FAMILIES, all_programs
from training.dataset.job import JobConfig, judge, make_job, program_named
from training.dataset.mutate import Edit
from training.dataset.plan import described
from training.dataset.table import read_rows
from training.dataset.variants import DataVariant, SeriesConfig, variants_of


def task_of(name: str) -> Task:
    program = program_named(name)
    return load_task(source=program.source, entry=program.entry)


def source_of(name: str, strategy: str) -> str:
    return next(v.source for v in variants_of(task_of(name), config=SeriesConfig(most=99)) if v.strategy == strategy)


def naive_of(task: Task) -> str:
    return next(v.source for v in variants_of(task) if v.naive)


def edited(edit: Edit, name: str, strategy: str) -> tuple[Features, Features, str]:
    """Features before and after an edit, and the edited text."""
    source = source_of(name, strategy)
    text = edit.apply(task_of(name), source)
    assert text is not None
    return extract(source), extract(text), text


def unordered(source: str) -> str:
    """Without barriers of a warp: `codegen` has put more of them in since the first set was measured."""
    return source.replace("    __syncwarp();\n", "")


PINNED = ("axpy_shift/0", "five_point/3", "weighted_total/1", "matvec/1", "bin_counts/4", "fir/5", "upper_case/6")


@pytest.mark.parametrize("name", PINNED)
def test_what_was_measured_is_generated_as_it_was(name: str) -> None:
    turn = next(i for i, p in enumerate(all_programs()) if p.name == name)
    rows = [r for r in read_rows(DATA / "variants.parquet") if r["task"] == name]
    first = [r for r in rows if r["strategy"] not in FURTHER_STRATEGIES]
    now = variants_of(task_of(name), turn=turn)
    assert len(first) >= 10
    assert {unordered(r["source"]) for r in first} == {unordered(v.source) for v in now}
    same = {r["variant"] for r in first} & {v.digest for v in now}
    assert len(same) >= (len(first) - 3 if name == "matvec/1" else len(first))


def test_further_variants_come_after_the_first_and_are_new() -> None:
    task = task_of("axpy_shift/0")
    first, every = variants_of(task, turn=3), every_variant(task, turn=3)
    assert every[: len(first)] == first
    further = every[len(first) :]
    assert {v.strategy for v in further} == {"vector_stride", "vector_each", "unfused", COMPOUND}
    assert {v.strategy for v in further} <= FURTHER_STRATEGIES
    assert not FURTHER_STRATEGIES & {v.strategy for v in first}
    assert len({v.digest for v in every}) == len(every)
    assert further == further_variants(task, turn=3)


def test_compound_variants_differ_in_more_than_others() -> None:
    task = task_of("row_spread/1")
    naive = extract(naive_of(task))

    def differs(variant: DataVariant) -> int:
        return sum(a != b for a, b in zip(extract(variant.source).vector, naive.vector, strict=True))

    variants = every_variant(task, turn=5)
    compound = [v for v in variants if v.strategy == COMPOUND]
    assert len(compound) == MOST_COMPOUND
    assert len({v.parameters["first"] for v in compound}) == MOST_COMPOUND
    others = [differs(v) for v in variants if v.strategy != COMPOUND and not v.naive]
    assert min(map(differs, compound)) > sorted(others)[len(others) // 2]
    assert compound != [v for v in every_variant(task, turn=6) if v.strategy == COMPOUND]


@pytest.mark.slow
def test_most_families_have_vector_loads_and_split_or_joined_kernels() -> None:
    vectors, fusion = set(), set()
    for family in FAMILIES:
        for variant in further_variants(task_of(f"{family.name}/0")):
            if variant.strategy.startswith("vector_"):
                vectors.add(family.name)
                assert (extract(variant.source).extended["vector_loads"] or 0) > 0, variant.source
            if variant.strategy in ("unfused", "joined"):
                fusion.add(family.name)
    assert len(vectors) >= 45
    assert len(fusion) >= 55


@pytest.mark.parametrize(
    ("edit", "name", "strategy", "share"),
    [
        (strided(16, "vector_stride"), "axpy_shift/0", "grid_stride", 0.5),
        (strided(16, "vector_rows"), "matvec/0", "warp_rows", 0.5),
        (strided(16, "vector_tree"), "weighted_total/0", "tree", 0.3),
        (inner(16), "matvec/0", "restrict", 0.5),
        (each(16), "activation/0", "restrict", 1 / 11),
        (plane(16), "five_point/0", "restrict", 4 / 11),
    ],
)
def test_vector_loads_are_seen(edit: Edit, name: str, strategy: str, share: float) -> None:
    before, after, text = edited(edit, name, strategy)
    assert before.extended["vector_loads"] == 0
    assert after.extended["vector_loads"] == pytest.approx(share, abs=0.03)
    assert after.missing == before.missing
    assert "% sizeof(float4) == 0" in text  # what is not aligned is not loaded so


def test_wide_types_take_two_and_bytes_sixteen() -> None:
    double = next(p for p in all_programs() if "double" in p.source and p.family == "axpy_shift")
    text = each(16).apply(task_of(double.name), source_of(double.name, "restrict"))
    assert text is not None
    assert "double2" in text
    assert "double4" not in text
    short = next(p for p in all_programs() if "short" in p.source and p.family == "xor_stream")
    text = each(16).apply(task_of(short.name), source_of(short.name, "restrict"))
    assert text is not None
    assert "ushort4" in text  # as words they would be another type's
    assert "uint" not in text.split("__global__")[1].replace("unsigned int", "")
    assert "*(const uint4 *)" in (each(16).apply(task_of("upper_case/0"), source_of("upper_case/0", "naive")) or "")


def test_a_split_kernel_keeps_its_values_in_memory_and_a_joined_one_is_one() -> None:
    before, after, text = edited(unfused("first"), "scale_clamp/0", "naive")
    assert after["kernels"] == before["kernels"] + 1
    assert text.count("cudaMallocAsync") == text.count("cudaFreeAsync") == 1
    _, apart, _ = edited(stored_apart(), "axpy_shift/0", "naive")
    assert apart["kernels"] == 2
    _, several, _ = edited(unfused("all"), "row_spread/0", "restrict")
    assert several["kernels"] > 2
    two, one, text = edited(joined(), "weighted_total/0", "tree")
    assert (two["kernels"], one["kernels"]) == (2, 1)
    assert "__threadfence" in text


def test_layouts_of_a_plane_and_a_block_per_row() -> None:
    _, threads, _ = edited(laid_out("row_threads"), "row_gain/0", "naive")
    before, blocks, _ = edited(laid_out("row_blocks"), "row_gain/0", "naive")
    assert threads["coal"] < blocks["coal"] <= before["coal"]
    warp, block, text = edited(block_rows(256), "matvec/0", "warp_rows")
    assert block["sync"] > warp["sync"]
    assert "__shared__ float" in text
    assert "__shfl" not in text
    before, tiled, text = edited(shared_tile(), "box_blur/0", "restrict")
    assert tiled["sync"] > before["sync"]
    assert "raster_tile[10][34]" in text


def test_an_edit_without_a_place_is_none() -> None:
    source, task = source_of("axpy_shift/0", "naive"), task_of("axpy_shift/0")
    for edit in (plane(16), laid_out("flat"), block_rows(64), shared_tile(), joined(), inner(16), unfused("all")):
        assert edit.apply(task, source) is None, edit.strategy
    for edit in (each(16), stored_apart()):
        assert edit.apply(task, "int nothing;") is None


def test_the_parts_of_a_text_are_read() -> None:
    found = accesses("a[b[i] + 1] = c[i];", ["a", "b"])
    assert [(f.name, f.index) for f in found] == [("a", "b[i] + 1"), ("b", "i")]
    assert split_index("row * ld + i - 1", "i") == ("row * ld", -1)
    assert split_index("i", "i") == ("", 0)
    assert split_index("i * 2", "i") is None
    assert split_index("(i + j", "j") is None
    body = "    int a = 1;\n    if (a) {\n        a = 2;\n    } else {\n        a = 3;\n    }\n    b[0] = a;\n"
    assert [s.splitlines()[0].strip() for s in statements(body, "    ")] == ["int a = 1;", "if (a) {", "b[0] = a;"]
    (kernel,) = kernels(source_of("axpy_shift/0", "restrict"))
    assert kernel.parameters["input"].const
    assert not kernel.parameters["n"].pointer


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return emulated_bench(SOURCE, tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("name", ["three_way_blend/0", "wave_step/0", "normalise_rows/1", "plain_sum/2"])
def test_further_variants_are_right_on_ragged_sizes(name: str, tmp_path: Path, program: Path) -> None:
    task, given = task_of(name), program_named(name)
    variants = every_variant(task, config=SeriesConfig(most=1))
    line = {"source": given.source, "entry": given.entry, "sizes": given.sizes}
    line["variants"] = [described(v) for v in variants]
    job = make_job(name, 0, tmp_path, emulator_compile, JobConfig(small_cases=5, shrink=1000), line)
    assert not job.error
    bench = Bench(program, BenchConfig(warmups=0, samples=1, seconds=0.0), 0)
    try:
        rows = judge(job, bench.time(job))
    finally:
        bench.stop()
    assert len(rows) == len(variants) > 3
    assert {r["strategy"]: r["message"] for r in rows if r["status"] != "correct"} == {}


@pytest.mark.parametrize(
    ("name", "strategy"), [("lookup/1", "vector_each"), ("matvec/2", "vector_rows"), ("five_point/2", "vector_plane")]
)
async def test_vector_variants_pass_the_checker(name: str, strategy: str) -> None:
    variant: DataVariant = next(v for v in further_variants(task_of(name)) if v.strategy == strategy)
    verifier = Verifier(gpu=None)
    try:
        verdict = await verifier.test(await prepare(task_of(name)), variant.source)
    finally:
        await verifier.aclose()
    assert verdict.correct, verdict.message
    assert re.search(r"\b\w+[24] \w+_four", variant.source)
