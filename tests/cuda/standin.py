"""The whole GPU path without a GPU: a device by name only, with the emulator where nvcc and the driver would be.

Compiling gives libraries of the emulator (fast mode), the waiting processes find a driver that makes no context, and
the device's ceilings are given. All between those is what runs on a GPU: the pool, the timer, turns, checks, verdicts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.cuda import building, emulator, measuring, on_gpu, verifier
from cudaperf_agent.cuda.ceilings import Ceilings
from cudaperf_agent.cuda.compile import Compiled
from cudaperf_agent.cuda.emulated import build_emulated
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import ChildResult, Limits
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.execution.standby import WaitingWorker

GPU = Gpu("Stand-in", "sm_90", 132, 8 << 30, 1 << 20, 1_000_000, 2_000_000, 4096, "13.0")
CEILINGS = Ceilings(4e12, 4e12, 4e12, 8e12, 6e13, 3e13, 1e-7, 1e-6)
DRIVER = """
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 0; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = 0; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
"""


def stand_in(config: VerifierConfig, folder: Path, patch: pytest.MonkeyPatch) -> Verifier:
    """A verifier on a device that is not there."""
    drivers = folder / "drivers"
    drivers.mkdir()
    (drivers / "driver.c").write_text(DRIVER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", drivers / "libcuda.so.1", drivers / "driver.c"], check=True)
    for place in (*folder.parents, folder, drivers):
        if place != Path("/") and place.stat().st_uid == os.geteuid():
            place.chmod(place.stat().st_mode | 0o055)
    runtime = emulator.runtime_library("fast")

    async def compiled(_nvcc: object, text: str, kind: str, *, linked: str | None = None, **_: Any) -> Compiled:
        if kind == "program":
            home = folder / f"program{abs(hash(text))}"
            if not home.exists():
                home.mkdir()
                built = await emulator.build(text, path_name="p.cu", folder=home, mode="fast", program=True)
                assert built.program is not None, built
                built.program.rename(home / "program")
                for place in (home, home / "program"):
                    place.chmod(0o755)
            return Compiled(True, home / "program", (), (), "", 0.0)
        made = await build_emulated(text, linked, wrap=None, limits=Limits(seconds=60), mode="fast")
        errors = made.diagnostics
        return Compiled(made.artefact is not None, made.artefact, errors, (), "", made.seconds)

    async def ceilings(*_: object, **__: object) -> Ceilings:
        return CEILINGS

    async def work(self: WaitingWorker, library: Path, request: Path, response: Path, limits: Limits) -> ChildResult:
        os.chmod(request, 0o644)
        return await self.child.finish(limits, f"{request} {response} {library} {runtime}\n".encode())

    def environment() -> Mapping[str, str]:
        return {"LD_LIBRARY_PATH": str(drivers)}

    patch.setattr(building, "compile_cuda", compiled)
    patch.setattr(measuring, "compile_cuda", compiled)
    patch.setattr(measuring, "device_ceilings", ceilings)
    patch.setattr(measuring, "tracer_library", lambda _: None)
    patch.setattr(WaitingWorker, "work", work)
    for module in (on_gpu, verifier, measuring):
        patch.setattr(module, "gpu_environment", environment)
    cache = Path(runtime).parents[2]
    sandbox = detect().reading(runtime, drivers, cache, folder)
    return Verifier(config, sandbox=sandbox, gpu=GPU)
