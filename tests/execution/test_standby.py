"""Processes that wait for a job: each does one, sees nothing of the others, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Argument, NativeRun, call_native
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.execution.standby import Standby, StandbyConfig

# A driver that makes no context, so that the waiting can be tested where there is no GPU.
DRIVER = """
int cuInit(unsigned flags) { return FAILS; }
int cuDeviceGet(int *device, int ordinal) { *device = 0; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = 0; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
"""
LIBRARY = """
#include <stdlib.h>
static int calls;
void cudaperf_call(void *const *args)
{
    int n = *(int *)args[0];
    float *x = (float *)args[1];
    if (n < 0) abort();
    while (n == 7) ;
    for (int i = 0; i < n; i++) x[i] = x[i] * 2 + calls;
    calls++;
}
"""


def built(folder: Path, name: str, text: str, *flags: str) -> Path:
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-fPIC", *flags, "-o", target, source], check=True)
    return target


def pool_of(folder: Path, fails: int = 0, waiting: int = 2) -> Standby:
    drivers = folder / "drivers"
    drivers.mkdir()
    built(drivers, "libcuda.so.1", DRIVER, f"-DFAILS={fails}")
    for place in (*reversed(folder.parents[: len(folder.parents) - 2]), folder, drivers):
        if place.stat().st_uid == os.geteuid():
            place.chmod(0o755)
    wrap = detect().reading(drivers).wrap
    return Standby(wrap, {"LD_LIBRARY_PATH": str(drivers)}, StandbyConfig(waiting=waiting), asyncio.Semaphore(4))


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Standby]:
    made = pool_of(tmp_path)
    yield made
    await made.aclose()


async def call(pool: Standby, library: Path, n: int, seconds: float = 10.0) -> NativeRun:
    data = np.arange(max(n, 1), dtype=np.float32)
    arguments = [Argument(np.array(n, np.int32)), Argument(data, returned=True)]
    worker = await pool.take()
    try:
        return await call_native(library, [arguments], limits=Limits(seconds=seconds), worker=worker)
    finally:
        await worker.discard()


async def test_each_job_has_a_process_of_its_own(pool: Standby, tmp_path: Path) -> None:
    library = built(tmp_path, "library.so", LIBRARY)
    runs = await asyncio.gather(*(call(pool, library, 5) for _ in range(6)))
    for run in runs:
        assert run.child.ok, run.child.stderr
        # A second call in the same process would add one.
        assert run.outcomes[0].outputs[1].tolist() == [0, 2, 4, 6, 8]


async def test_a_job_that_dies_or_hangs_costs_no_other(pool: Standby, tmp_path: Path) -> None:
    library = built(tmp_path, "library.so", LIBRARY)
    dead, hung, fine = await asyncio.gather(
        call(pool, library, -1), call(pool, library, 7, seconds=0.5), call(pool, library, 3)
    )
    assert not dead.child.ok
    assert not dead.outcomes
    assert hung.child.timed_out
    assert fine.outcomes[0].outputs[1].tolist() == [0, 2, 4]


async def test_waiting_does_not_count_as_the_jobs_time(pool: Standby, tmp_path: Path) -> None:
    library = built(tmp_path, "library.so", LIBRARY)
    worker = await pool.take()
    assert worker.child.process.returncode is None
    arguments = [Argument(np.array(2, np.int32)), Argument(np.zeros(2, np.float32), returned=True)]
    run = await call_native(library, [arguments], limits=Limits(seconds=5.0), worker=worker)
    assert run.child.ok
    assert run.child.seconds < 5.0
    assert not worker.folder.exists()


async def test_closing_ends_what_waits(tmp_path: Path) -> None:
    pool = pool_of(tmp_path)
    worker = await pool.take()
    folders = [worker.folder, *[(await task).folder for task in list(pool._ready)]]
    processes = [worker.child.process, *[(await task).child.process for task in list(pool._ready)]]
    await worker.discard()
    await pool.aclose()
    assert all(process.returncode is not None for process in processes)
    assert not any(folder.exists() for folder in folders)


async def test_a_driver_that_does_not_work_is_the_machines_fault(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, fails=999)
    with pytest.raises(BackendUnavailable, match="no context"):
        await pool.take()
    await pool.aclose()
