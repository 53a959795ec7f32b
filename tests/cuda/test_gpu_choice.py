"""Which GPU candidates run on: what the environment says, what their processes see, and what the driver is asked."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cudaperf_agent.cuda import gpu as asking
from cudaperf_agent.cuda.gpu import chosen_environment, chosen_gpu, find_gpu, read_clocks
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.execution.child import run_child
from cudaperf_agent.execution.sandbox import Sandbox, _candidates, _works

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

MONITOR = r"""
#include <stdlib.h>
#include <string.h>
/* Two devices in another order than the driver's: its second one is the first here. */
int nvmlDeviceGetCount_v2(unsigned *n) { *n = atoi(getenv("MONITORED")); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(size_t)(i + 1); return 0; }
int nvmlDeviceGetHandleByUUID(const char *u, void **d) {
  if (strncmp(u, "GPU-3131", 8) && strncmp(u, "GPU-3030", 8)) return 6;
  *d = (void *)(size_t)(u[5] == '1' ? 1 : 2);
  return 0;
}
int nvmlDeviceGetClockInfo(void *d, int k, unsigned *v) { *v = 1000 * (size_t)d; return 0; }
int nvmlDeviceGetMaxClockInfo(void *d, int k, unsigned *v) { *v = 1000 * (size_t)d; return 0; }
int nvmlDeviceGetTemperature(void *d, int k, unsigned *v) { *v = 40; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *v) { *v = 70000; return 0; }
"""


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No choice is made, and nothing is known from before."""
    for name in ("CUDAPERF_GPU", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    find_gpu.cache_clear()
    chosen_environment.cache_clear()
    yield
    find_gpu.cache_clear()
    chosen_environment.cache_clear()


def library(folder: Path, name: str, source: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    made = folder / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(made), str(folder / f"{name}.c")], check=True)
    return made


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver with two GPUs, for this process and for those that start from now on."""
    made = library(tmp_path, "libcuda.so.1", DRIVER)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setattr(asking, "_driver", lambda: ctypes.CDLL(str(made)))


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


def test_what_is_set_later_is_not_meant_for_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert gpu_environment()["CUDA_VISIBLE_DEVICES"] == "1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert gpu_environment()["CUDA_VISIBLE_DEVICES"] == "1"


def test_without_a_choice_nothing_is_set() -> None:
    assert not {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} & gpu_environment().keys()


@pytest.mark.parametrize("sandbox", _candidates(), ids=lambda s: s.name)
async def test_a_candidate_in_its_sandbox_sees_the_chosen_gpu_alone(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _works(sandbox):
        pytest.skip(f"{sandbox.name} does not work on this machine")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.setenv("CUDAPERF_GPU", "1")
    monkeypatch.setenv("CUDAPERF_SECRET", "x")
    with TemporaryDirectory() as name:  # not below pytest's folder, which another user may not enter
        argv = sandbox.for_gpu().wrap(["/usr/bin/env"], Path(name))
        child = await run_child(argv, cwd=Path(name), env={"PATH": "/usr/bin:/bin", **gpu_environment()})
    assert child.ok, child.stderr
    seen = dict(line.split("=", 1) for line in child.stdout.decode().splitlines())
    assert seen["CUDA_VISIBLE_DEVICES"] == "1"
    assert seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"  # else the number might mean another one there
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
def test_nothing_of_the_working_folder_is_run_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ctypes.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDAPERF_GPU", "1")
    assert find_gpu() is not None


def test_one_gpu_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", "0,1")
    with pytest.raises(ConfigError, match="`0,1` is more than one GPU"):
        find_gpu()


@pytest.mark.usefixtures("driver")
def test_a_visible_gpu_that_is_not_there_is_no_silent_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(BackendUnavailable, match="of the GPUs here `7` shows none") as raised:
        find_gpu()
    assert raised.value.where == "CUDA_VISIBLE_DEVICES"
    assert "CUDAPERF_GPU=off" in (raised.value.hint or "")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("hiding", ["-1", "", "NoDevFiles"])
def test_who_hides_every_gpu_gets_the_emulator(hiding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hiding)
    assert find_gpu() is None


def test_a_variable_alone_makes_no_error_where_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_driver", lambda: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert find_gpu() is None


@pytest.fixture
def monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What NVML says of two GPUs; no nvidia-smi is found."""
    made = library(tmp_path, "libnvidia-ml.so.1", MONITOR)
    monkeypatch.setattr(asking, "_nvml", lambda: ctypes.CDLL(str(made)))
    monkeypatch.setattr(asking, "_by_smi", dict)
    monkeypatch.setenv("MONITORED", "2")


@pytest.mark.usefixtures("driver", "monitor")
@pytest.mark.parametrize(("named", "clock"), [("0", "2000"), ("1", "1000")])
def test_clocks_are_those_of_the_chosen_gpu(named: str, clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", named)
    assert read_clocks()["clocks.sm"] == clock


@pytest.mark.usefixtures("monitor")
@pytest.mark.parametrize(("devices", "known"), [("1", True), ("2", False)])
def test_clocks_of_another_gpu_are_never_taken(devices: str, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a device has a UUID that NVML does not know as a device's."""
    monkeypatch.setattr(asking, "_known_uuid", lambda: "GPU-9999")
    monkeypatch.setenv("MONITORED", devices)
    assert bool(read_clocks()) is known


@pytest.mark.usefixtures("driver")
def test_nvidia_smi_is_asked_about_the_chosen_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        "#!/bin/sh\nfor a; do case $a in --id=GPU-31313131-*) echo 1980, 1980, 2619, 40, 70, 0x0;; esac; done\n"
    )
    smi.chmod(0o755)
    monkeypatch.setattr(asking, "_nvml", lambda: None)
    monkeypatch.setattr("shutil.which", lambda name: str(smi))
    monkeypatch.setenv("CUDAPERF_GPU", "1")
    assert read_clocks()["clocks.sm"] == "1980"


@pytest.mark.usefixtures("driver")
def test_off_hides_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", "Off")
    assert find_gpu() is None
