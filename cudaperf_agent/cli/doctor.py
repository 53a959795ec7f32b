"""`cudaperf doctor`: what this machine offers, what is missing, and what the sandbox does not cover."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer

from cudaperf_agent import __version__
from cudaperf_agent.cli.output import JsonFlag, put, put_json
from cudaperf_agent.errors import EXIT_BACKEND, EXIT_OK, CudaPerfError

_VERSION_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What.
        state: ``ok``, ``absent`` (can be done without) or ``missing`` (cannot).
        text: What was found, one sentence.
        hint: The remedy, if it is not there.
        details: For ``--json`` and further lines.
    """

    name: str
    state: str
    text: str
    hint: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def doctor(
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Measure the GPU instead, with nothing else on it: some two minutes."),
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Say what this machine offers: compilers, GPU, sandbox and what it does not cover, store, endpoint.

    Ends with 3 if something that a translation needs is missing.

    With --calibrate, measure what the GPU can do at most (memory, L2, arithmetic, empty calls), and how much fresh
    processes that run the same code differ. Both are kept per device and driver, and used by every later measurement.
    Ends with 3 where there is no GPU.
    """
    if calibrate:
        from cudaperf_agent.cli.calibrate import as_data, calibrated, told

        found = calibrated()
        if as_json:
            put_json({"calibration": as_data(found)})
        else:
            put(told(found))
        return EXIT_OK
    checks = [_python(), _nvcc(), _compiler(), _gpu(), _sandbox(), _store(), _endpoint()]
    if as_json:
        put_json({"cudaperf": __version__, "checks": [asdict(check) for check in checks]})
    else:
        put("\n".join(_lines(checks)))
    return EXIT_BACKEND if any(check.state == "missing" for check in checks) else EXIT_OK


def _lines(checks: list[Check]) -> list[str]:
    lines = [f"cudaperf {__version__}"]
    for check in checks:
        lines.append(f"{check.state:<8} {check.name}: {check.text}")
        if check.hint and check.state != "ok":
            lines.append(f"{'':<9}{check.hint}")
        lines += [f"{'':<9}{label}: {', '.join(v)}" for label, v in check.details.items() if isinstance(v, list) and v]
    return lines


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} on {platform.platform()}")


def _nvcc() -> Check:
    from cudaperf_agent.cuda.toolchain import find_nvcc

    try:
        nvcc = find_nvcc()
    except CudaPerfError as error:
        return Check("nvcc", "missing", error.message, error.hint or "")
    return Check("nvcc", "ok", f"{nvcc.version} at {nvcc.path} (by {nvcc.origin})")


def _compiler() -> Check:
    found = {}
    for name in ("gcc", "g++"):
        path = shutil.which(name)
        if path is None:
            hint = "apt install build-essential, or what your system calls it"
            return Check("gcc and g++", "missing", f"{name} is not on the PATH", hint)
        try:
            done = subprocess.run(
                [path, "-dumpfullversion"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return Check("gcc and g++", "missing", f"{path} does not run", "reinstall the compiler")
        found[name] = f"{done.stdout.strip()} at {path}"
    return Check("gcc and g++", "ok", "; ".join(f"{name} {text}" for name, text in found.items()))


def _gpu() -> Check:
    from cudaperf_agent.cuda.gpu import find_gpu

    try:
        gpu = find_gpu()
    except CudaPerfError as error:
        return Check("GPU", "missing", str(error).partition("\n")[0], error.hint or "")
    if gpu is None:
        hint = "candidates are tested on the CPU emulator, and nothing is timed"
        return Check("GPU", "absent", "none is here or visible to this process", hint)
    from cudaperf_agent.cuda.ceilings import ceilings_file
    from cudaperf_agent.cuda.spread import known_spread

    text = f"{gpu.name} ({gpu.arch}, {gpu.memory / 2**30:.0f} GiB), driver for CUDA {gpu.driver}"
    known = ["ceilings"] if ceilings_file(gpu).exists() else []
    known += ["differences between processes"] if known_spread(gpu).points else []
    if not known:
        text += "; not calibrated: `cudaperf doctor --calibrate`"
    return Check("GPU", "ok", text, details={"calibrated": known})


def _sandbox() -> Check:
    from cudaperf_agent.execution.sandbox import detect

    found = detect()
    details = {"covers": list(found.covers), "does not cover": list(found.misses)}
    state = "absent" if found.kind == "none" else "ok"
    hint = 'pip install "cudaperf-agent[sandbox]", or install bubblewrap; until then translate only what you trust'
    return Check("sandbox", state, found.name, hint, details)


def _store() -> Check:
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings

    with open_store(load_settings().settings) as store:
        path = store.path
        newest = store.list_runs(1)
    size = os.path.getsize(path)
    text = f"{path} ({size / 2**20:.1f} MiB, newest run {newest[0].id if newest else 'none'})"
    return Check("store", "ok", text)


def _endpoint() -> Check:
    from cudaperf_agent.policies.endpoint import probe_now
    from cudaperf_agent.settings import load_settings

    endpoint = load_settings().settings.endpoint
    if endpoint.url is None:
        hint = "`--policy auto` takes the variants; CUDAPERF_ENDPOINT__URL names an OpenAI-compatible server"
        return Check("endpoint", "absent", "none is configured", hint)
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else None
    health = probe_now(endpoint.url, key, seconds=endpoint.probe_timeout)
    if not health.ok:
        hint = "`--policy auto` takes the variants; check the address, the key and the server"
        return Check("endpoint", "absent", f"{endpoint.url}: {health.reason}", hint)
    return Check("endpoint", "ok", endpoint.url, details={"serves": list(health.models)})
