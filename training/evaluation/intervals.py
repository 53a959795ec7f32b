"""95 % intervals by bootstrap over tasks (or families, where tasks of one are alike), paired for differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """How intervals are made.

    Attributes:
        resamples: Bootstrap samples.
        level: Nominal coverage.
        seed: Of the resampling, so that a table repeats byte for byte.
    """

    resamples: int = 10_000
    level: float = 0.95
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its interval. `units` is the number of independent units resampled."""

    value: float
    low: float
    high: float
    units: int


def bootstrap(
    values: Sequence[float],
    *,
    clusters: Sequence[Any] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Interval of the mean of one value per task: studentised bootstrap (bootstrap-t) over tasks or clusters.

    The percentile form covers too little at the twenty or so units that a benchmark of families has; the studentised
    form is second-order right for a mean (Efron and Tibshirani 1993, chapter 12). Fewer than three units give no
    interval: its ends are infinite.

    Args:
        values: One estimate per task.
        clusters: Family of each task: whole families are then resampled.
        config: Resamples, level, seed.

    Raises:
        ValueError: There are no values, or `clusters` has another length.
    """
    config = config or BootstrapConfig()
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        raise ValueError("an interval needs at least one value")
    sums, counts = _by_cluster(data, clusters)
    value = float(sums.sum() / counts.sum())
    units = len(sums)
    error = _standard_error(sums[None, :], counts[None, :])[0]
    if units < 3:
        return Interval(value, -np.inf, np.inf, units)
    if error == 0:
        return Interval(value, value, value, units)
    rng = np.random.default_rng(config.seed)
    index = rng.integers(0, units, size=(config.resamples, units))
    drawn_sums, drawn_counts = sums[index], counts[index]
    means = drawn_sums.sum(1) / drawn_counts.sum(1)
    errors = _standard_error(drawn_sums, drawn_counts)
    usable = errors > 0
    ratios = (means[usable] - value) / errors[usable]
    tail = (1 - config.level) / 2
    low_t, high_t = np.quantile(ratios, [tail, 1 - tail])
    return Interval(value, float(value - high_t * error), float(value - low_t * error), units)


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    clusters: Sequence[Any] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Interval of mean(first − second), both measured on the same tasks in the same order.

    Raises:
        ValueError: The two have different lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"paired values need the same tasks: {len(first)} against {len(second)}")
    return bootstrap([a - b for a, b in zip(first, second, strict=True)], clusters=clusters, config=config)


def _by_cluster(
    data: npt.NDArray[np.float64], clusters: Sequence[Any] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    if clusters is None:
        return data, np.ones_like(data)
    if len(clusters) != data.size:
        raise ValueError(f"{data.size} values, but {len(clusters)} clusters")
    _, index = np.unique(np.asarray([str(c) for c in clusters]), return_inverse=True)
    sums = np.bincount(index, weights=data).astype(np.float64)
    return sums, np.bincount(index).astype(np.float64)


def _standard_error(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Standard error of the ratio Σ sums / Σ counts, per row: linearised, which for equal counts is the usual one."""
    units = sums.shape[1]
    if units < 2:
        return np.zeros(sums.shape[0])
    ratio = sums.sum(1, keepdims=True) / counts.sum(1, keepdims=True)
    residual = sums - ratio * counts
    average = counts.mean(1)
    variance: npt.NDArray[np.float64] = (residual**2).sum(1) / (units - 1) / units / average**2
    return np.sqrt(variance)
