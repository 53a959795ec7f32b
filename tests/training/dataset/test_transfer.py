"""The transfer set: complete, of tasks that load, of kernels that the verifier and the measuring path find correct."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.cuda import building
from cudaperf_agent.cuda.compile import Compiled
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.model import Role
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from training.dataset.bench import SOURCE, Bench, BenchConfig
from training.dataset.bundle import bundle, compile_bundle
from training.dataset.emulated import emulated_bench, emulator_compile
from training.dataset.families import FAMILIES
from training.dataset.job import JobConfig, judge, make_job
from training.dataset.transfer import contained, hand_written, is_hand_written, transfer_lines, transfer_names

NAMES = transfer_names()
JOB = JobConfig(small_cases=2, shrink=64)
FAST = BenchConfig(warmups=1, samples=2, seconds=0.05, deadline=30.0, reserve=0.0)


def test_the_set_has_fifteen_tasks_of_eight_kernels_that_are_no_family() -> None:
    assert len(NAMES) == 15
    assert all(is_hand_written(name) for name in NAMES)
    assert not {name.removeprefix("transfer/") for name in NAMES} & {family.name for family in FAMILIES}
    for name in NAMES:
        kernels = hand_written(name).kernels
        assert [kernel.naive for kernel in kernels] == [True] + [False] * 7
        assert len({kernel.digest for kernel in kernels}) == 8


@pytest.mark.parametrize("name", NAMES)
def test_a_task_says_all_that_the_tool_must_know(name: str) -> None:
    program = hand_written(name)
    task = load_task(source=program.source, entry=program.entry)
    assert f"transfer/{task.name}" == name
    for buffer in task.buffers:
        assert buffer.extent is not None
        assert buffer.extent.origin.declared
        assert buffer.role_origin.declared
    assert any(buffer.role is Role.OUT for buffer in task.buffers)
    small = sized_case(task, {size: min(value, 16) for size, value in program.sizes.items()}, 1)
    assert set(program.sizes) <= set(small.values)


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(ConfigError, match="no hand-written task nothing"):
        hand_written("transfer/nothing")


def test_a_task_without_size_or_kernels_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("void a(void) {}\n")
    (tmp_path / "sizes.json").write_text("{}")
    with pytest.raises(ConfigError, match="no size"):
        hand_written("transfer/a", tmp_path)
    (tmp_path / "sizes.json").write_text('{"a": {}}')
    with pytest.raises(ConfigError, match="no kernels"):
        hand_written("transfer/a", tmp_path)


def test_macros_of_one_kernel_do_not_reach_the_next() -> None:
    text = contained("#define T 8\n  # define AT(i) \\\n    (i)\n#define T 8\nint x = T;")
    assert text.endswith("int x = T;\n#undef T\n#undef AT\n")


def test_lines_are_a_family_each_with_features() -> None:
    (line,) = transfer_lines(["transfer/prefix_max"])
    assert (line["task"], line["family"]) == ("transfer/prefix_max", "prefix_max")
    assert all(len(variant["phi"]) == len(ORDER) for variant in line["variants"])
    assert len({tuple(variant["phi"]) for variant in line["variants"]}) >= 6


def timed_statuses(name: str, tmp_path: Path, bench: Bench) -> list[str]:
    job = make_job(name, 0, tmp_path, emulator_compile, JOB)
    assert not job.error
    rows = judge(job, bench.time(job))
    assert [row["origin"] for row in rows] == ["hand"] * 8
    return [row["status"] for row in rows]


def test_the_measuring_path_takes_kernels_by_hand(tmp_path: Path) -> None:
    bench = Bench(emulated_bench(SOURCE, tmp_path), FAST, 0)
    try:
        assert timed_statuses("transfer/run_expand", tmp_path, bench) == ["correct"] * 8
    finally:
        bench.stop()


@pytest.mark.slow
def test_the_measuring_path_finds_all_of_them_correct(tmp_path: Path) -> None:
    bench = Bench(emulated_bench(SOURCE, tmp_path), replace(FAST, deadline=120.0), 0)
    try:
        found = {name: timed_statuses(name, tmp_path, bench) for name in NAMES}
    finally:
        bench.stop()
    assert found == {name: ["correct"] * 8 for name in NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nvcc_takes_them_in_one_library(name: str, tmp_path: Path) -> None:
    program = hand_written(name)
    task = load_task(source=program.source, entry=program.entry)
    whole = bundle(task, [contained(k.source) for k in program.kernels])
    made = compile_bundle(find_nvcc().path, "sm_90", whole, tmp_path, "all")
    assert isinstance(made, Path), made


async def taken(*_: object, **__: object) -> Compiled:
    """As if nvcc had taken it; the emulator's build is what runs."""
    return Compiled(True, None, (), (), "", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_every_kernel_passes_the_visible_and_the_hidden_cases(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc is asked about the first one, with the drop-in around it: the test before this one asks about the others."""
    program = hand_written(name)
    task = await prepare(load_task(source=program.source, entry=program.entry))
    verifier = Verifier(gpu=None)
    try:
        for kernel in program.kernels:
            for hidden in (False, True):
                verdict = await verifier.test(task, kernel.source, hidden=hidden)
                assert verdict.correct, f"{kernel.strategy}: {verdict.status}: {verdict.message}"
            monkeypatch.setattr(building, "compile_cuda", taken)
    finally:
        await verifier.aclose()
