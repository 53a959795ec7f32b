"""How much two processes that run the same code differ on this device: the A/A spread, by how long a call takes.

Samples of one process cannot show it: memory lies elsewhere in another, and so does all that depends on addresses. It
is measured with many processes of a few kernels (``cudaperf doctor --calibrate``) and kept per device and driver.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.execution.paths import cache_dir


@dataclass(frozen=True, slots=True)
class SpreadPoint:
    """One kernel: median seconds of a call, standard deviation of log medians between processes, processes seen."""

    seconds: float
    deviation: float
    processes: int


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """How the spread is computed.

    Attributes:
        resamples: Of the bootstrap that tells the spread within processes from that between them.
        unknown: Deviation assumed where nothing was measured.
        fewest: Processes of a kernel without which it says nothing.
    """

    resamples: int = 200
    unknown: float = 0.02
    fewest: int = 6


SPREAD = SpreadRule()


@dataclass(frozen=True, slots=True)
class Spread:
    """What was measured on one device, by rising duration."""

    points: tuple[SpreadPoint, ...] = ()

    def deviation(self, seconds: float, rule: SpreadRule = SPREAD) -> float:
        """For calls of this length: between two measured lengths by the logarithm, beyond them the nearest one's."""
        if not self.points or seconds <= 0:
            return rule.unknown
        lengths = [math.log(p.seconds) for p in self.points]
        return float(np.interp(math.log(seconds), lengths, [p.deviation for p in self.points]))


UNKNOWN = Spread()


def spread_point(processes: Sequence[Sequence[float]], rule: SpreadRule = SPREAD, seed: int = 0) -> SpreadPoint | None:
    """From raw samples, one sequence per process; `None` if there are too few.

    The variance of the processes' log medians, less what the scatter of samples within a process explains of it.
    """
    if len(processes) < rule.fewest:
        return None
    rng = np.random.default_rng(seed)
    medians, within = [], []
    for samples in processes:
        data = np.log(np.asarray(samples, dtype=np.float64))
        drawn = np.median(data[rng.integers(0, len(data), (rule.resamples, len(data)))], axis=1)
        medians.append(float(np.median(data)))
        within.append(float(np.var(drawn)))
    between = max(0.0, float(np.var(medians, ddof=1)) - float(np.mean(within)))
    return SpreadPoint(math.exp(float(np.median(medians))), math.sqrt(between), len(processes))


def make_spread(kernels: Sequence[Sequence[Sequence[float]]], rule: SpreadRule = SPREAD) -> Spread:
    """Of several kernels, each with its processes, each with its samples."""
    points = [p for p in (spread_point(processes, rule) for processes in kernels) if p is not None]
    return Spread(tuple(sorted(points, key=lambda p: p.seconds)))


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often the interval of a comparison of like with like contains 1, and the median of its width (high ÷ low)."""

    pairs: int
    covered: int
    width: float

    @property
    def share(self) -> float:
        """Of all pairs."""
        return self.covered / self.pairs if self.pairs else 0.0


def coverage(
    processes: Sequence[Sequence[float]], spread: Spread, *, disjoint: bool = False, most: int = 300
) -> Coverage:
    """Of pairs of processes of one kernel, drawn from all there are, or of pairs that share no process."""
    from cudaperf_agent.cuda.statistics import speedup

    chosen = (
        [(i, i + 1) for i in range(0, len(processes) - 1, 2)]
        if disjoint
        else list(combinations(range(len(processes)), 2))
    )
    if len(chosen) > most:
        drawn = np.random.default_rng(0).choice(len(chosen), most, replace=False)
        chosen = [chosen[i] for i in sorted(drawn)]
    deviation = spread.deviation(float(np.median([np.median(p) for p in processes]))) if processes else 0.0
    found = [
        speedup("same", processes[i], processes[j], reference_cv=deviation, candidate_cv=deviation, seed=i * 1000 + j)
        for i, j in chosen
    ]
    covered = sum(s.low <= 1.0 <= s.high for s in found)
    width = float(np.median([s.high / s.low for s in found])) if found else 0.0
    return Coverage(len(found), covered, width)


def keep_spread(spread: Spread, gpu: Gpu) -> None:
    """Write it into the cache folder, for every later comparison on this device."""
    path = spread_file(gpu)
    path.parent.mkdir(parents=True, exist_ok=True)
    building = path.with_suffix(f".{os.getpid()}")
    building.write_text(json.dumps({"device": gpu.name, "driver": gpu.driver, **asdict(spread)}, indent=1))
    os.replace(building, path)


def known_spread(gpu: Gpu) -> Spread:
    """Of this device; without points where it was never measured."""
    try:
        data = json.loads(spread_file(gpu).read_text())
        return Spread(tuple(SpreadPoint(**point) for point in data["points"]))
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN


def spread_file(gpu: Gpu) -> Path:
    """Where its spread is kept."""
    key = "\0".join([gpu.name, gpu.arch, gpu.driver, str(gpu.sms)])
    return cache_dir() / "machine" / f"spread-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
