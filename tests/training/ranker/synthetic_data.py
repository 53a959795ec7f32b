"""Measured data with a known structure: speed follows coalescing and occupancy, and nothing else."""

from __future__ import annotations

import numpy as np

from cudaperf_agent.features.model import ORDER
from training.dataset.table import EXTENDED, Table


def synthetic(*, families: int = 16, tasks: int = 4, variants: int = 10, noise: float = 0.1, seed: int = 0) -> Table:
    """φ is random; gain = 1.5·coal + 0.8·occ − 0.5·[div > 1] + noise, with an offset of the task's own."""
    rng = np.random.default_rng(seed)
    rows = families * tasks * variants
    phi = np.zeros((rows, len(ORDER)))
    phi[:, ORDER.index("coal")] = rng.choice([-0.5, 0.1, 0.4, 1.0], rows)
    phi[:, ORDER.index("occ")] = rng.choice([-0.5, 0.1, 0.4, 1.0], rows)
    phi[:, ORDER.index("div")] = rng.integers(0, 4, rows)
    phi[:, ORDER.index("ai")] = rng.uniform(0, 2, rows)
    phi[:, ORDER.index("ops")] = rng.uniform(1, 5, rows)
    phi[:, ORDER.index("kernels")] = 1
    task = np.repeat(np.arange(families * tasks), variants)
    gain = (
        1.5 * phi[:, ORDER.index("coal")]
        + 0.8 * phi[:, ORDER.index("occ")]
        - 0.5 * (phi[:, ORDER.index("div")] > 1)
        + rng.normal(0, noise, rows)
        + rng.normal(0, 3, families * tasks)[task]
    )
    return Table(
        phi=phi,
        extended=np.zeros((rows, len(EXTENDED))),
        gain=gain,
        error=np.full(rows, noise / 4),
        task=np.array([f"f{t // tasks:02d}/{t % tasks}" for t in task]),
        family=np.array([f"f{t // tasks:02d}" for t in task]),
        strategy=np.array([f"s{int(s)}" for s in rng.integers(0, 5, rows)]),
        origin=np.array(["series"] * rows),
        parameters=np.array(["{}"] * rows),
        length=rng.uniform(500, 3000, rows),
        digest="0" * 64,
    )
