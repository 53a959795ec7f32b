"""What `cudaperf doctor --calibrate` does and says."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cudaperf_agent.cli.output import say

if TYPE_CHECKING:
    from cudaperf_agent.cuda.calibrate import Calibration


def calibrated() -> Calibration:
    """Measure this machine's GPU, with progress on stderr.

    Raises:
        BackendUnavailable: There is no GPU, or it cannot be measured.
    """
    from cudaperf_agent.cuda.calibrate import calibrate, no_gpu
    from cudaperf_agent.cuda.gpu import find_gpu
    from cudaperf_agent.cuda.workplace import VerifierConfig, Workplace
    from graph import loop

    if find_gpu() is None:
        raise no_gpu()
    return loop.run(calibrate(Workplace(VerifierConfig()), say))


def told(found: Calibration) -> str:
    """The result for a person."""
    c = found.ceilings
    rows = [
        ("device", found.device),
        ("memory", f"copy {c.copy / 1e12:.3g} TB/s, read {c.read / 1e12:.3g}, write {c.write / 1e12:.3g}"),
        ("L2", f"copy {c.l2_copy / 1e12:.3g} TB/s"),
        ("arithmetic", f"float {c.f32 / 1e12:.3g} TFLOP/s, double {c.f64 / 1e12:.3g}"),
        ("empty call", f"{c.launch_seconds * 1e6:.3g} µs, with the L2 flushed {c.null_call_seconds * 1e6:.3g} µs"),
    ]
    for point in found.spread.points:
        share, milliseconds = 100 * point.deviation, point.seconds * 1e3
        rows.append(("spread", f"{share:.2g} % between {point.processes} processes, calls of {milliseconds:.3g} ms"))
    if found.pairs.pairs:
        text = f"{found.pairs.covered} of {found.pairs.pairs} intervals of two processes of one kernel contain 1"
        rows.append(("pairs", text))
    rows += [("kept in", str(path)) for path in found.files]
    return "\n".join(f"{name + ':':<12}{text}" for name, text in rows)


def as_data(found: Calibration) -> dict[str, Any]:
    """The result for ``--json``."""
    return {
        "device": found.device,
        "ceilings": asdict(found.ceilings),
        "spread": [asdict(point) for point in found.spread.points],
        "pairs": asdict(found.pairs),
        "processes": found.processes,
        "files": [str(path) for path in found.files],
    }
