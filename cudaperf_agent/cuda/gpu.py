"""Which GPU candidates run on, and what it is, asked of the driver without torch; no GPU is an answer, not an error.

``CUDAPERF_GPU`` names it by number or UUID, as ``CUDA_VISIBLE_DEVICES`` would; else it is the first one that is visible
to us. What runs candidates sees that one only.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

from cudaperf_agent.errors import BackendUnavailable, ConfigError

_CHOICE, _VISIBLE = "CUDAPERF_GPU", "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"  # what the numbers mean: by speed, or by place on the bus
_OFF = ("off", "no", "false")
_HIDING = ("none", "void", "nodevfiles")  # what is written besides -1 to hide every device
_OTHERS = f"nvidia-smi -L lists them; {_CHOICE}=off tests on the emulator"
_ASK_SECONDS = 60.0
_SMI_SECONDS = 15.0
_NVML_SM, _NVML_MEMORY = 1, 2  # nvmlClockType_t
# CUdevice_attribute of the driver API.
_ATTRIBUTES = {
    "sms": 16,
    "l2_bytes": 38,
    "clock_khz": 13,
    "memory_clock_khz": 36,
    "bus_bits": 37,
    "major": 75,
    "minor": 76,
    "persisting_l2_bytes": 108,
    "threads_per_sm": 39,
    "blocks_per_sm": 106,
    "registers_per_sm": 82,
    "shared_per_sm": 81,
    "shared_reserved": 111,
}
_CLOCK_FIELDS = (
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
    "clocks_event_reasons.active",
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device.

    Attributes:
        name: As the driver says it.
        arch: ``sm_90``.
        sms: Multiprocessors.
        memory: Bytes.
        l2_bytes: L2 cache.
        clock_khz, memory_clock_khz: Highest clocks.
        bus_bits: Width of the memory bus.
        driver: CUDA version that the driver supports, ``13.0``.
        attributes: Numbers of the driver, by our names.
        uuid: ``GPU-…``; empty where the driver does not say.
    """

    name: str
    arch: str
    sms: int
    memory: int
    l2_bytes: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    driver: str
    attributes: dict[str, int] = field(default_factory=dict)
    uuid: str = ""

    @property
    def datasheet_bandwidth(self) -> float:
        """Bytes per second of two transfers per memory clock over the bus: an upper bound, not a measurement."""
        return 2.0 * self.memory_clock_khz * 1e3 * self.bus_bits / 8


@lru_cache(maxsize=1)
def chosen_environment() -> Mapping[str, str]:
    """Variables by which a process sees the GPU of candidates alone; none where the environment says nothing.

    Decided by the first call: what is set later, while an engine starts, is not meant for candidates.
    """
    named = os.environ.get(_CHOICE, "").strip()
    if not named or named.lower() in _OFF:
        named = os.environ.get(_VISIBLE, "").split(",")[0].strip()
    order = os.environ.get(_ORDER, "")
    return MappingProxyType({name: value for name, value in ((_VISIBLE, named), (_ORDER, order)) if value})


def chosen_gpu() -> str | None:
    """Number or UUID of the GPU that the environment names for candidates; `None` where it names none."""
    return chosen_environment().get(_VISIBLE)


@lru_cache(maxsize=1)
def find_gpu() -> Gpu | None:
    """The GPU of candidates, `None` where there is none or it is hidden, as by ``CUDAPERF_GPU=off``.

    Raises:
        BackendUnavailable: The variables name one that is not there.
        ConfigError: ``CUDAPERF_GPU`` names several.
    """
    named = os.environ.get(_CHOICE, "").strip()
    if named.lower() in _OFF:
        return None
    chosen = chosen_gpu()
    if not named:
        found = _first_visible()
        if found is None and _names_device(chosen) and _driver() is not None and _asked(None) is not None:
            visible = os.environ.get(_VISIBLE, "")
            raise BackendUnavailable(f"of the GPUs here `{visible}` shows none", where=_VISIBLE, hint=_OTHERS)
        return found
    if "," in named:
        raise ConfigError(f"`{named}` is more than one GPU", where=_CHOICE, hint=f"for instance {_CHOICE}=0")
    found = _asked(named)
    if found is None:
        raise BackendUnavailable(f"there is no GPU `{named}`", where=_CHOICE, hint=_OTHERS)
    return found


def _names_device(entry: str | None) -> bool:
    return entry is not None and not entry.startswith("-") and entry.lower() not in _HIDING


def _asked(visible: str | None) -> Gpu | None:
    """The first device that a process of its own sees, of one that is named or of all.

    What this process sees is not ours to change: the driver may be at work in it already.
    """
    code = "import json; from cudaperf_agent.cuda import gpu; print(json.dumps(gpu.told()))"
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    ours = {name: value for name, value in os.environ.items() if name not in (_CHOICE, _VISIBLE)}
    named = {} if visible is None else {_VISIBLE: visible}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],  # nothing is imported from the working folder
            env={**ours, **named, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=True,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        where = _VISIBLE if visible is None else _CHOICE
        raise BackendUnavailable(f"the driver cannot be asked: {error}", where=where, hint=_OTHERS) from error
    return None if answer is None else Gpu(**answer)


def told() -> dict[str, Any] | None:
    """The first visible device as JSON has it: what a process that is asked for another one prints."""
    found = _first_visible()
    return None if found is None else asdict(found)


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _first_visible() -> Gpu | None:
    cuda = _driver()
    if cuda is None:
        return None
    count, device, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return None
    if cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    cuda.cuDriverGetVersion(ctypes.byref(version))
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, len(name), device)
    memory = ctypes.c_size_t()
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    attributes: dict[str, int] = {}
    for key, number in _ATTRIBUTES.items():
        value = ctypes.c_int()
        attributes[key] = value.value if not cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device) else 0
    return Gpu(
        name=name.value.decode("utf-8", "replace"),
        arch=f"sm_{attributes['major']}{attributes['minor']}",
        sms=attributes["sms"],
        memory=memory.value,
        l2_bytes=attributes["l2_bytes"],
        clock_khz=attributes["clock_khz"],
        memory_clock_khz=attributes["memory_clock_khz"],
        bus_bits=attributes["bus_bits"],
        driver=f"{version.value // 1000}.{version.value % 1000 // 10}",
        attributes=attributes,
        uuid=_uuid(cuda, device),
    )


def _uuid(cuda: ctypes.CDLL, device: ctypes.c_int) -> str:
    found = (ctypes.c_ubyte * 16)()
    call = getattr(cuda, "cuDeviceGetUuid_v2", None) or getattr(cuda, "cuDeviceGetUuid", None)
    return "" if call is None or call(ctypes.byref(found), device) else f"GPU-{UUID(bytes=bytes(found))}"


def read_clocks() -> dict[str, Any]:
    """Clocks, temperature, power and throttling now, named as nvidia-smi does; empty where it cannot be asked.

    By NVML, which takes microseconds; by nvidia-smi where that is not there.
    """
    return _by_nvml() or _by_smi()


def _by_nvml() -> dict[str, Any]:
    nvml = _nvml()
    if nvml is None:
        return {}
    device, value, reasons = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_ulonglong()
    # Its numbers are not those of CUDA, which takes the fastest first and leaves out what is hidden.
    uuid = _known_uuid().encode()
    if not uuid or nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(device)):
        # A part of a device has a UUID that is not its device's. Where there are several, the first may be another.
        several = nvml.nvmlDeviceGetCount_v2(ctypes.byref(value)) or value.value != 1
        if (uuid and several) or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
            return {}
    found: dict[str, Any] = {}

    def ask(name: str, function: str, *arguments: int, scale: float = 1.0) -> None:
        call = getattr(nvml, function, None)
        if call is not None and not call(device, *arguments, ctypes.byref(value)):
            found[name] = str(value.value if scale == 1.0 else round(value.value * scale, 2))

    ask("clocks.sm", "nvmlDeviceGetClockInfo", _NVML_SM)
    ask("clocks.max.sm", "nvmlDeviceGetMaxClockInfo", _NVML_SM)
    ask("clocks.mem", "nvmlDeviceGetClockInfo", _NVML_MEMORY)
    ask("temperature.gpu", "nvmlDeviceGetTemperature", 0)
    ask("power.draw", "nvmlDeviceGetPowerUsage", scale=1e-3)
    for function in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        call = getattr(nvml, function, None)
        if call is not None and not call(device, ctypes.byref(reasons)):
            found["clocks_event_reasons.active"] = f"0x{reasons.value:016x}"
            break
    return found


def _known_uuid() -> str:
    gpu = find_gpu()
    return gpu.uuid if gpu is not None else ""


@lru_cache(maxsize=1)
def _nvml() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return None if library.nvmlInit_v2() else library


def _by_smi() -> dict[str, Any]:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return {}
    command = [smi, f"--query-gpu={','.join(_CLOCK_FIELDS)}", "--format=csv,noheader,nounits"]
    command.append(f"--id={_known_uuid() or 0}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [v.strip() for v in done.stdout.strip().split(",")]
    return dict(zip(_CLOCK_FIELDS, values, strict=False)) if done.returncode == 0 and len(values) > 1 else {}
