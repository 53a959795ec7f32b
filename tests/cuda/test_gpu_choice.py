"""Which GPU candidates run on: what the environment says, what their processes see, and what the driver is asked."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudaperf_agent.cuda.gpu import chosen_environment, chosen_gpu, find_gpu
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import run_child
from cudaperf_agent.execution.sandbox import detect

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Two GPUs: the variable shows one of them, or none where there is no such one. */
static const char *visible(void) { const char *v = getenv("CUDA_VISIBLE_DEVICES"); return v ? v : "0"; }
int cuInit(unsigned f) { return 0; }
int cuDeviceGetCount(int *n) { *n = visible()[0] == '0' || visible()[0] == '1'; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "device %s", visible()); return 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = 1024; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = 9; return 0; }
int cuDeviceGetUuid_v2(unsigned char *u, int d) { memset(u, visible()[0], 16); return 0; }
"""


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No choice is made, and nothing is known from before."""
    for name in ("CUDAPERF_GPU", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    find_gpu.cache_clear()
    yield
    find_gpu.cache_clear()


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver with two GPUs, for processes that start from now on."""
    (tmp_path / "cuda.c").write_text(DRIVER)
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "cuda.c")], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))


@pytest.mark.parametrize(
    ("named", "visible", "chosen"),
    [(None, None, None), (None, "1", "1"), (None, "1,0", "1"), ("0", "1", "0"), ("GPU-5a0", None, "GPU-5a0"),
     ("off", "1", "1"), ("", "", None)],
)  # fmt: skip
def test_the_named_gpu_goes_before_the_first_visible_one(
    named: str | None, visible: str | None, chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CUDAPERF_GPU", named), ("CUDA_VISIBLE_DEVICES", visible)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert chosen_gpu() == chosen
    assert chosen_environment() == ({} if chosen is None else {"CUDA_VISIBLE_DEVICES": chosen})


async def test_a_candidate_in_its_sandbox_sees_the_chosen_gpu_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("CUDAPERF_GPU", "1")
    monkeypatch.setenv("CUDAPERF_SECRET", "x")
    argv = detect().for_gpu().wrap(["/usr/bin/env"], tmp_path)
    child = await run_child(argv, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", **gpu_environment()})
    seen = dict(line.split("=", 1) for line in child.stdout.decode().splitlines())
    assert seen["CUDA_VISIBLE_DEVICES"] == "1"
    assert not {"CUDAPERF_SECRET", "CUDAPERF_GPU"} & seen.keys()


@pytest.mark.usefixtures("driver")
def test_what_is_told_of_the_gpu_is_of_the_named_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("CUDAPERF_GPU", "1")
    gpu = find_gpu()
    assert gpu is not None
    assert (gpu.name, gpu.arch, gpu.driver) == ("device 1", "sm_99", "13.0")
    assert gpu.uuid == "GPU-31313131-3131-3131-3131-313131313131"


@pytest.mark.usefixtures("driver")
def test_a_gpu_that_is_not_there_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", "7")
    with pytest.raises(BackendUnavailable, match="there is no GPU `7`") as raised:
        find_gpu()
    assert raised.value.where == "CUDAPERF_GPU"
    assert "nvidia-smi -L" in raised.value.hint


@pytest.mark.usefixtures("driver")
def test_off_hides_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", "Off")
    assert find_gpu() is None
