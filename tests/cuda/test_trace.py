"""Traces of the device: what kernels, copies and allocation took, read from text that is not trusted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.cuda.trace import Interval, length, make_trace, merged, parse_call, without
from cudaperf_agent.cuda.tracer import tracer_library
from cudaperf_agent.cuda.verdict import Timing

DEVICE = """api 1000 1400 7 cudaLaunchKernel_v7000
kernel 2000 5000 64 256 32 0 4096 tile(int, float const*)
kernel 4000 6000 1 32 16 128 0 finish(int)
call 500 7000
"""
# A drop-in: allocate, copy in, a kernel, and a copy out that waits for it.
WHOLE = """api 1000 2000 1 cudaMalloc_v3020
api 2000 4000 2 cudaMemcpy_v3020
copy 1 4096 3000 3900 2
kernel 4500 9000 64 256 32 0 0 work(float*)
api 4200 4400 3 cudaLaunchKernel_v7000
api 4400 11000 4 cudaMemcpy_v3020
copy 2 4096 9500 10500 4
api 11000 12000 5 cudaFree_v3020
api 12000 13000 6 cudaMemcpy2D_v3020
copy 2 64 12100 12900 6
call 500 13500
"""


def test_kernels_count_once_where_they_overlap() -> None:
    found = parse_call(DEVICE)
    assert found is not None
    assert found.kernel_seconds == pytest.approx(4000e-9)
    assert [k.name for k in found.kernels] == ["tile(int, float const*)", "finish(int)"]
    assert found.kernels[0].shared_bytes == 4096


def test_resident_leaves_out_allocation_and_copies_but_not_what_a_copy_waits_for() -> None:
    found = parse_call(WHOLE)
    assert found is not None
    # Hidden: 1000–4000, 4400–12000 less the kernel's 4500–9000; the copy by rows is work of the candidate.
    assert found.resident_seconds == pytest.approx((13000 - 3000 - (7600 - 4500)) * 1e-9)
    assert found.copied_bytes == {"to_device": 4096, "to_host": 4160}


def test_nothing_is_taken_off_where_the_host_is_called_back() -> None:
    found = parse_call(WHOLE + "api 4450 4460 9 cudaLaunchHostFunc_v10000\n")
    assert found is not None
    assert found.resident_seconds == pytest.approx(13000e-9)


@pytest.mark.parametrize("text", ["", "kernel 1 2\ncall 1 2\n", "kernel a b 1 1 1 1 1 k\ncall 1 2\n", DEVICE[:-14]])
def test_what_is_not_whole_is_not_read(text: str) -> None:
    assert parse_call(text) is None


def test_a_trace_leaves_the_cold_call_out_and_names_kernels() -> None:
    cold = DEVICE.replace("2000 5000", "2000 3500")
    found = make_trace([cold, DEVICE, DEVICE], {"threads_per_sm": 2048, "blocks_per_sm": 32, "registers_per_sm": 65536})
    assert found is not None
    assert found.kernel_seconds == pytest.approx(4000e-9)
    profile = found.profile()
    assert profile["kernels"]["tile(int, float const*)"]["share"] == pytest.approx(0.6)
    assert profile["kernels"]["tile(int, float const*)"]["occupancy"] == 1.0
    assert [t.kind for t in found.timings(Timing("device", "n=1", (1.0,)))] == ["kernels"]
    assert [t.kind for t in found.timings(Timing("end_to_end", "n=1", (1.0,)))] == ["kernels", "resident"]
    assert make_trace(["call 1 2\n"], {}) is None


def test_intervals() -> None:
    a, b = Interval(0, 10), Interval(5, 20)
    assert merged([b, a, Interval(30, 30)]) == [Interval(0, 20)]
    assert length([a, b, Interval(25, 26)]) == 21
    assert without([Interval(0, 20)], [Interval(5, 7), Interval(15, 30)]) == [Interval(0, 5), Interval(7, 15)]


async def test_the_tracer_builds_where_cupti_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path))
    tracer_library.cache_clear()
    built = await asyncio.to_thread(tracer_library, find_nvcc())
    tracer_library.cache_clear()
    if built is None:
        pytest.skip("CUPTI's headers are not here")
    assert built.path.stat().st_size > 0
