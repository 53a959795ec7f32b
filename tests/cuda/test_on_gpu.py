"""What a GPU is needed for, and what of that path can be tested without one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import pytest

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.gpu import chosen_environment, find_gpu, read_clocks
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.measure import C_END_TO_END, C_ONE_CORE, NAIVE
from cudaperf_agent.cuda.measuring import TIMER
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.timing import TIMING
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import run_child
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

CHEATS = Path(__file__).parent.parent / "cheats"
HONEST = (CHEATS / "00_honest.cu").read_text()
needs_gpu = pytest.mark.skipif(find_gpu() is None, reason="no NVIDIA GPU here")
WHO = r"""
#include <cstdio>
int main() {
  int count = 0;
  cudaDeviceProp device;
  if (cudaGetDeviceCount(&count) || cudaGetDeviceProperties(&device, 0)) return 1;
  printf("%d ", count);
  for (int i = 0; i < 16; i++) printf("%02x", (unsigned char)device.uuid.bytes[i]);
}
"""


def all_gpus() -> list[str]:
    """UUIDs of the machine's GPUs."""
    if shutil.which("nvidia-smi") is None:
        return []
    asked = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.split() if done.returncode == 0 else []


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No GPU is named; what was known is asked anew, before and after."""
    for name in ("CUDA_VISIBLE_DEVICES", "CUDAPERF_GPU"):
        monkeypatch.delenv(name, raising=False)
    yield
    monkeypatch.undo()
    find_gpu.cache_clear()
    chosen_environment.cache_clear()


def test_no_gpu_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", "off")
    find_gpu.cache_clear()
    assert find_gpu() is None
    find_gpu.cache_clear()


async def test_nvcc_links_a_candidate_with_its_calls() -> None:
    task = await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))
    dropin = make_dropin(task, HONEST)
    assert dropin is not None
    built = await compile_cuda(find_nvcc(), dropin.cu, "library", linked=linked_c(task, dropin), wrap=detect().wrap)
    assert built.artefact is not None, built.diagnostics
    symbols = (await run_child(["nm", "-D", "--defined-only", str(built.artefact)])).stdout.decode()
    for name in ("saxpy", "saxpy_device", "cudaperf_call", "cudaperf_device_call", "cudaperf_table"):
        assert f" T {name}\n" in symbols


async def test_nvcc_takes_the_timer() -> None:
    built = await compile_cuda(find_nvcc(), await asyncio.to_thread(TIMER.read_text), "program", wrap=detect().wrap)
    assert built.artefact is not None, built.diagnostics


@pytest.mark.gpu
@needs_gpu
async def test_a_gpu_verdict_is_measured() -> None:
    config = VerifierConfig(timing=replace(TIMING, size_bytes=32 << 20, contents_bytes=128 << 20))
    verifier = Verifier(config)
    assert verifier.backend == "gpu"
    task = await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))
    verdict = await verifier.test(task, HONEST, hidden=True)
    assert verdict.correct, verdict.message
    assert verdict.backend == "gpu"
    measured = await verifier.measure(task, HONEST, verdict)
    assert measured.correct, measured.message
    assert measured.measured
    assert {t.kind for t in measured.timings} >= {"device", "end_to_end", "reference"}
    assert {s.baseline for s in measured.speedups} >= {C_ONE_CORE, C_END_TO_END}
    naive = next((s for s in measured.speedups if s.baseline == NAIVE), None)
    assert naive is None or 0.2 < naive.value < 5  # the same kernel but for its shape
    assert measured.profile["share_of_datasheet_bandwidth"] < 1
    assert read_clocks()
    await verifier.aclose()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", ["29_too_many_threads", "30_no_tail", "35_host_memory", "18_on_the_cpu", "13_all_nan"])
async def test_cheats_fail_on_a_gpu_too(name: str) -> None:
    verifier = Verifier()
    task = await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))
    verdict = await verifier.test(task, await asyncio.to_thread((CHEATS / f"{name}.cu").read_text))
    assert not verdict.correct
    await verifier.aclose()


@pytest.mark.gpu
@needs_gpu
async def test_work_on_another_stream_is_waited_for() -> None:
    """Row 3: the time runs to the synchronisation of the whole device, whatever stream the work is on."""
    config = VerifierConfig(timing=replace(TIMING, size_bytes=64 << 20, contents_bytes=192 << 20))
    verifier = Verifier(config)
    task = await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))
    slow = HONEST.replace(
        "y[i] = a * x[i] + y[i];",
        "{ float v = y[i]; for (int k = 0; k < 2000; k++) v += 0.0f * k; y[i] = a * x[i] + v; }",
    )
    hidden = slow.replace(
        "    if (n > 0)\n",
        "    static cudaStream_t own;\n    if (!own) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);\n"
        "    if (n > 0)\n",
    ).replace(", 0, stream>>>", ", 0, own>>>")
    times = []
    for source in (slow, hidden):
        verdict = await verifier.test(task, source)
        measured = await verifier.measure(task, source, replace(verdict, status="correct"))  # type: ignore[arg-type]
        device = measured.timing("device")
        assert device is not None, measured.message
        times.append(device.median)
    assert times[1] > 0.7 * times[0]
    await verifier.aclose()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.usefixtures("undecided")
async def test_a_candidate_runs_on_the_gpu_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What we are told, what a process in the sandbox sees and what the clocks are read of is one device."""
    uuids = await asyncio.to_thread(all_gpus)
    if len(uuids) < 2:
        pytest.skip("needs two GPUs")
    built = await compile_cuda(find_nvcc(), WHO, "program", wrap=detect().wrap)
    assert built.artefact is not None, built.diagnostics
    found: dict[str, str] = {}
    for named in ("0", "1", *uuids[:2]):
        monkeypatch.setenv("CUDAPERF_GPU", named)
        find_gpu.cache_clear()
        chosen_environment.cache_clear()
        gpu = find_gpu()
        assert gpu is not None
        with TemporaryDirectory() as folder:  # not below pytest's folder, which another user may not enter
            argv = detect().for_gpu().wrap([str(built.artefact)], Path(folder))
            child = await run_child(argv, cwd=Path(folder), env={"PATH": "/usr/bin:/bin", **gpu_environment()})
        assert child.ok, child.stderr
        count, uuid = child.stdout.decode().split()
        assert count == "1"
        assert f"GPU-{UUID(uuid)}" == gpu.uuid
        assert named in (gpu.uuid, "0", "1")
        assert read_clocks()
        found[named] = gpu.uuid
    assert found["0"] != found["1"]
