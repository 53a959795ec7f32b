"""What this device can do at most, measured once per device and driver, and the least time a result can take."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from cudaperf_agent.cuda.compile import CompileConfig, compile_cuda
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.toolchain import Nvcc
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.execution.paths import cache_dir

PROGRAM = Path(__file__).with_name("ceilings.cu")
_LIMITS = Limits(seconds=60.0, memory=16 << 30)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Rates that no kernel on this device exceeds, and what a call costs that does nothing.

    Attributes:
        copy: Bytes per second of copying device memory, read and written bytes together.
        read, write: Bytes per second of reading, and of writing, alone.
        l2_copy: As `copy`, within the L2.
        f32, f64: Operations per second; a fused multiply-add counts two.
        launch_seconds: Least host seconds from the launch of an empty kernel to its end.
        null_call_seconds: The same right after the L2 was emptied, the median: what every timed call contains.
    """

    copy: float
    read: float
    write: float
    l2_copy: float
    f32: float
    f64: float
    launch_seconds: float
    null_call_seconds: float

    @property
    def memory(self) -> float:
        """The highest rate at which device memory was seen to work."""
        return max(self.copy, self.read, self.write)


@dataclass(frozen=True, slots=True)
class FloorRule:
    """When a time is too short to be true (row 17 of the list of cheats).

    Attributes:
        dram_from: Above so many times the L2 in bytes, device memory sets the floor, else the L2 and a launch.
        margin: Share by which a measured ceiling may be too low.
        launch_share: Share of the least launch time that a call with a result takes at least.
    """

    dram_from: float = 4.0
    margin: float = 0.1
    launch_share: float = 0.5


FLOOR = FloorRule()


def least_seconds(written: int, l2_bytes: int, ceilings: Ceilings, rule: FloorRule = FLOOR) -> float:
    """The time that a call cannot be faster than if it writes `written` bytes of results.

    Only what must be written counts: how much of its inputs a translation has to read depends on their content. What
    still lies in the L2 at the end has not been written to memory yet.
    """
    if written <= 0:
        return 0.0
    launch = rule.launch_share * ceilings.launch_seconds
    if written > rule.dram_from * l2_bytes:
        return max(launch, (written - l2_bytes) / (ceilings.memory * (1 + rule.margin)))
    return launch + written / (ceilings.l2_copy * (1 + rule.margin))


async def device_ceilings(
    nvcc: Nvcc, gpu: Gpu, *, wrap: Wrap | None, env: Mapping[str, str], again: bool = False
) -> Ceilings:
    """The ceilings of this device, from the cache folder, or measured (a few seconds) with nothing else on it.

    Args:
        nvcc: Compiles the program that measures.
        gpu: The device.
        wrap: The sandbox, with the GPU visible.
        env: Variables of every process on the GPU.
        again: Measure even if they are known.

    Raises:
        BackendUnavailable: The program does not compile or run.
    """
    path = ceilings_file(gpu)
    known = None if again else _load(path)
    if known is not None:
        return known
    config = replace(CompileConfig(), arch=gpu.arch, flags=("-O2", "-std=c++17"))
    text = PROGRAM.read_text()
    made = await compile_cuda(nvcc, text, "program", config=config)
    if made.artefact is None:
        raise BackendUnavailable(f"ceilings.cu does not compile: {made.diagnostics[0].message}")
    with TemporaryDirectory(prefix="cudaperf-ceilings-") as folder:
        argv = [str(made.artefact)]
        base = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": folder, "TMPDIR": folder}
        child = await run_child(
            wrap(argv, Path(folder)) if wrap else argv, limits=_LIMITS, cwd=Path(folder), env={**base, **env}
        )
    found = parse_ceilings(child.stdout.decode("utf-8", "replace")) if child.ok else None
    if found is None:
        said = child.stderr.decode("utf-8", "replace").strip()[-300:]
        raise BackendUnavailable(f"the device's ceilings cannot be measured: {said or f'status {child.returncode}'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    building = path.with_suffix(f".{os.getpid()}")
    building.write_text(json.dumps({"device": gpu.name, "driver": gpu.driver, **asdict(found)}, indent=1))
    os.replace(building, path)
    return found


def parse_ceilings(text: str) -> Ceilings | None:
    """What `ceilings.cu` printed; `None` if it is not whole or holds a rate that cannot be."""
    try:
        data = json.loads(text)
        found = Ceilings(**{name: float(data[name]) for name in Ceilings.__slots__})
    except (ValueError, KeyError, TypeError):
        return None
    return found if all(math.isfinite(v) and v > 0 for v in asdict(found).values()) else None


def ceilings_file(gpu: Gpu) -> Path:
    """Where its ceilings are kept."""
    key = "\0".join([gpu.name, gpu.arch, gpu.driver, str(gpu.sms), str(gpu.clock_khz), PROGRAM.read_text()])
    return cache_dir() / "machine" / f"ceilings-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _load(path: Path) -> Ceilings | None:
    try:
        return parse_ceilings(path.read_text())
    except OSError:
        return None
