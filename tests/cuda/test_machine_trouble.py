"""What fails on our side is an error and never a verdict, and nothing of it is remembered."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.cuda import emulated, emulator, workplace
from cudaperf_agent.cuda.cached import CacheLimits, prune
from cudaperf_agent.cuda.compile import COMPILE_LIMITS, CompileConfig, compile_cuda
from cudaperf_agent.cuda.emulated import Emulated, RunPlan, build_emulated, run_emulated
from cudaperf_agent.cuda.emulator import compiler
from cudaperf_agent.cuda.once import Once
from cudaperf_agent.cuda.toolchain import Nvcc, find_nvcc
from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n"
HONEST = (Path(__file__).parent.parent / "cheats" / "00_honest.cu").read_text()
LINKED = "int cudaperf_call(void) { return 0; }\n"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, sharing only the emulator's runtime with the others."""
    home = tmp_path / "cache"
    home.mkdir()
    shared = compiler.runtime_library().parent.parent
    compiler.precompiled_headers("check")
    (home / "emulator").symlink_to(shared)
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(home))
    return home


def kept(cache: Path) -> list[Path]:
    """Results in the cache."""
    return [p for kind in ("nvcc", "emulated") for p in (cache / kind).glob("??/*/result.json")]


def fake_nvcc(folder: Path, script: str) -> Nvcc:
    """The real one behind a shell script that may fail first."""
    real = find_nvcc()
    path = folder / "nvcc"
    path.write_text(f'#!/bin/sh\nhere={folder}\nreal="{real.path}"\n{script}\n')
    path.chmod(0o755)
    return replace(real, path=path)


@pytest.mark.parametrize(
    "script",
    [
        "echo 'cc1plus: fatal error: error writing to x.s: No space left on device' >&2; exit 1",
        "echo '/usr/include/prelude.h: No such file or directory' >&2; exit 1",
        "echo 'bwrap: cannot make a mount' >&2; exit 1",
        "exit 127",
    ],
)
async def test_a_broken_compiler_is_no_verdict(script: str, tmp_path: Path, own_cache: Path) -> None:
    with pytest.raises(BackendUnavailable):
        await compile_cuda(fake_nvcc(tmp_path, script), KERNEL, "cubin")
    assert kept(own_cache) == []
    again = await compile_cuda(find_nvcc(), KERNEL, "cubin")
    assert again.ok
    assert not again.cached


async def test_a_missing_compiler_is_no_verdict(tmp_path: Path, own_cache: Path) -> None:
    with pytest.raises(BackendUnavailable):
        await compile_cuda(replace(find_nvcc(), path=tmp_path / "gone"), KERNEL, "cubin")
    assert kept(own_cache) == []


async def test_a_passing_failure_is_tried_again(tmp_path: Path, own_cache: Path) -> None:
    nvcc = fake_nvcc(tmp_path, 'if [ ! -e "$here/once" ]; then touch "$here/once"; exit 1; fi; exec "$real" "$@"')
    assert (await compile_cuda(nvcc, KERNEL, "cubin")).ok
    assert len(kept(own_cache)) == 1


async def test_the_candidates_own_words_are_not_the_machines(own_cache: Path) -> None:
    result = await compile_cuda(find_nvcc(), '#error "No space left on device"\n' + KERNEL, "cubin")
    assert not result.ok
    assert result.diagnostics[0].line == 1
    assert len(kept(own_cache)) == 1


def no_sandbox(argv: list[str], folder: Path) -> list[str]:
    """A sandbox that starts nothing."""
    del argv, folder
    return ["sh", "-c", "echo 'bwrap: no permission' >&2; exit 1"]


@pytest.mark.usefixtures("own_cache")
async def test_a_broken_sandbox_is_no_verdict(own_cache: Path) -> None:
    limits = Limits(seconds=60.0)
    with pytest.raises(BackendUnavailable, match="no permission"):
        await compile_cuda(find_nvcc(), KERNEL, "cubin", wrap=no_sandbox)
    with pytest.raises(BackendUnavailable):
        await build_emulated(KERNEL, LINKED, wrap=no_sandbox, limits=limits)
    task = await prepare(load_task(Path(__file__).parent.parent / "cheats" / "tasks" / "saxpy.c"))
    cases = make_cases(task, hidden=False)
    built = await build_emulated(KERNEL, LINKED, wrap=None, limits=limits)
    assert built.artefact is not None
    with pytest.raises(BackendUnavailable, match="no permission"):
        await run_emulated(built, task, cases, RunPlan(), limits=limits, wrap=no_sandbox)


async def test_a_limit_of_the_compiler_is_not_remembered(own_cache: Path) -> None:
    task = await prepare(load_task(Path(__file__).parent.parent / "cheats" / "tasks" / "saxpy.c"))
    hasty = Verifier(VerifierConfig(compile=CompileConfig(limits=replace(COMPILE_LIMITS, seconds=0.001))), gpu=None)
    first = await hasty.test(task, HONEST)
    assert first.status is Status.COMPILE_ERROR
    assert "limit" in first.message
    assert first.transient
    assert await hasty.test(task, HONEST) is not first
    await hasty.aclose()
    assert kept(own_cache) == []
    patient = Verifier(gpu=None)
    assert (await patient.test(task, HONEST)).correct
    await patient.aclose()


def changed_header(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another header."""
    copied = shutil.copytree(compiler.INCLUDE, folder / "include")
    (copied / "added.h").write_text("// one more\n")
    monkeypatch.setattr(compiler, "INCLUDE", copied)


def changed_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another source of the runtime."""
    copied = shutil.copytree(compiler.RUNTIME, folder / "runtime")
    shutil.copytree(compiler.INCLUDE, folder / "include")  # found beside it
    (copied / "added.cpp").write_text("// one more\n")
    monkeypatch.setattr(compiler, "RUNTIME", copied)


def changed_rewriter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another module of the rewriter."""
    copied = shutil.copytree(Path(emulator.__file__).parent, folder / "emulator")
    with (copied / "rewrite.py").open("a") as out:
        out.write("# one more\n")
    monkeypatch.setattr(emulator, "__file__", str(copied / "__init__.py"))


@pytest.mark.parametrize("change", [changed_header, changed_runtime, changed_rewriter], ids=lambda f: f.__name__)
async def test_another_emulator_builds_anew(
    change: Callable[[Path, pytest.MonkeyPatch], None],
    tmp_path: Path,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def home() -> Path:
        emulated._emulator_version.cache_clear()
        built = await build_emulated(KERNEL, LINKED, wrap=None, limits=Limits(seconds=60.0))
        assert built.artefact is not None, built.unsupported
        return built.artefact.parent

    first = await home()
    assert await home() == first
    with monkeypatch.context() as patched:
        change(tmp_path, patched)
        assert await home() != first
    assert await home() == first
    assert len(kept(own_cache)) == 2


async def test_what_was_removed_is_built_again(own_cache: Path) -> None:
    task = await prepare(load_task(Path(__file__).parent.parent / "cheats" / "tasks" / "saxpy.c"))
    verifier = Verifier(gpu=None)
    assert (await verifier.test(task, HONEST)).correct
    for result in kept(own_cache):
        shutil.rmtree(result.parent)
    assert (await verifier.test(task, HONEST, hidden=True)).correct
    await verifier.aclose()


def test_the_cache_keeps_what_was_used_last(own_cache: Path) -> None:
    now = time.time()
    for age in range(6):
        home = own_cache / "nvcc" / "ab" / f"entry{age}"
        home.mkdir(parents=True)
        (home / "result.json").write_bytes(b"x" * 1000)
        os.utime(home, (now - 100 * age, now - 100 * age))
    assert prune(CacheLimits(bytes=3000, young_seconds=50)) == 3
    assert sorted(p.parent.name for p in kept(own_cache)) == ["entry0", "entry1", "entry2"]
    assert prune(CacheLimits(bytes=0, young_seconds=150)) == 1
    assert sorted(p.parent.name for p in kept(own_cache)) == ["entry0", "entry1"]


async def test_a_result_that_does_not_last_is_made_again() -> None:
    made: list[int] = []

    async def make() -> int:
        made.append(len(made))
        return made[-1]

    once: Once[int] = Once(8, keep=lambda value: value > 0)
    assert [await once.get("key", make) for _ in range(3)] == [0, 1, 1]


def test_an_emulated_failure_of_ours_is_told_from_a_refusal() -> None:
    assert not emulated._unexplained(Emulated(None, (), "line 3: inline PTX (asm)", 0.1))
    assert emulated._unexplained(Emulated(None, (), "the emulator's compiler failed: it said nothing", 0.1))


async def test_many_builds_at_once_look_through_the_cache_once(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[CacheLimits] = []

    def look(limits: CacheLimits) -> int:
        looked.append(limits)
        return prune(limits)

    monkeypatch.setattr(workplace, "prune", look)
    place = Workplace(VerifierConfig(), gpu=None)
    await asyncio.gather(*(place.note_build() for _ in range(40)))
    assert len(looked) == 1
    for _ in range(500):
        await place.note_build()
    assert len(looked) == 2
