"""95 % intervals by bootstrap over tasks (or families, where tasks of one are alike), paired for differences.

Unbounded quantities (logarithms of speed) take the studentised bootstrap. Shares, whose units often are all 0 or all 1,
take the percentile bootstrap with four units added (Agresti and Coull 1998; for paired differences Agresti and Min
2005): without them, nineteen successes of nineteen would be given an interval of no width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST = 700.0
"""A logarithm whose number still is a number."""


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """How intervals are made.

    Attributes:
        resamples: Bootstrap samples.
        level: Nominal coverage.
        seed: Of the resampling, so that a table repeats byte for byte.
        fewest: Fewer units give no interval: its ends are infinite.
        fewest_different: The studentised form gives none either where fewer units than this differ from the most
            common value; where all are equal, it has no width.
        least_error: The studentised form takes a resample's standard error for at least this share of the sample's. Of
            units that are nearly equal but for one or two, a resample may hold only equal ones: its error near 0 would
            give an end as far away as one likes.
    """

    resamples: int = 10_000
    level: float = 0.95
    seed: int = 0
    fewest: int = 3
    fewest_different: int = 5
    least_error: float = 0.25


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its interval. `units` is the number of independent units resampled."""

    value: float
    low: float
    high: float
    units: int

    def exponentiated(self, least: float = 0.0) -> Interval:
        """Of what this is the logarithm of; no lower than `least`. Where this has no ends, that has none."""
        if not (isfinite(self.low) and isfinite(self.high)):
            return replace(self, value=exp(self.value), low=-inf, high=inf)
        return Interval(exp(self.value), max(_exp(self.low), least), _exp(self.high), self.units)


def _exp(value: float) -> float:
    return exp(value) if value < LARGEST else inf


def bootstrap(
    values: Sequence[float],
    *,
    clusters: Sequence[Any] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Interval of the mean of one value per task: studentised bootstrap (bootstrap-t) over tasks or clusters.

    The percentile form covers too little at the twenty or so units that a benchmark of families has; the studentised
    form is second-order right for a mean (Efron and Tibshirani 1993, chapter 12).

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
    return _studentised(*_by_cluster(data, clusters), config)


def ratio(
    first: Sequence[float],
    second: Sequence[float],
    *,
    clusters: Sequence[Any] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Interval of mean(first) / mean(second), both measured on the same tasks in the same order: as `bootstrap`'s.

    Raises:
        ValueError: The two have different lengths or no values, or the second's mean is not above 0.
    """
    _check_paired(first, second)
    if not len(second) or sum(second) <= 0:
        raise ValueError("a ratio needs values whose mean is above 0 below the line")
    sums, _ = _by_cluster(np.asarray(first, dtype=np.float64), clusters)
    below, _ = _by_cluster(np.asarray(second, dtype=np.float64), clusters)
    return _studentised(sums, below, config or BootstrapConfig())


def _check_paired(first: Sequence[float], second: Sequence[float]) -> None:
    if len(first) != len(second):
        raise ValueError(f"paired values need the same tasks: {len(first)} against {len(second)}")


def _studentised(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], config: BootstrapConfig) -> Interval:
    """Bootstrap-t of Σ sums / Σ counts over units."""
    value = float(sums.sum() / counts.sum())
    units = len(sums)
    error = _standard_error(sums[None, :], counts[None, :])[0]
    if units < config.fewest:
        return Interval(value, -np.inf, np.inf, units)
    if error == 0:
        return Interval(value, value, value, units)
    with np.errstate(divide="ignore", invalid="ignore"):
        different = units - np.unique(sums / counts, return_counts=True)[1].max()
    if different < min(config.fewest_different, units - 1):
        return Interval(value, -np.inf, np.inf, units)
    rng = np.random.default_rng(config.seed)
    index = rng.integers(0, units, size=(config.resamples, units))
    drawn_sums, drawn_counts = sums[index], counts[index]
    means = drawn_sums.sum(1) / drawn_counts.sum(1)
    errors = np.maximum(_standard_error(drawn_sums, drawn_counts), config.least_error * error)
    usable = errors > 0
    ratios = (means[usable] - value) / errors[usable]
    tail = (1 - config.level) / 2
    low_t, high_t = np.quantile(ratios, [tail, 1 - tail])
    return Interval(value, float(value - high_t * error), float(value - low_t * error), units)


def share(
    values: Sequence[float], *, clusters: Sequence[Any] | None = None, config: BootstrapConfig | None = None
) -> Interval:
    """Interval of the mean of one value in 0..1 per task, as of pass@k: see the module.

    Args:
        values: One estimate per task.
        clusters: Family of each task: whole families are then resampled.
        config: Resamples, level, seed.

    Raises:
        ValueError: There are no values, or `clusters` has another length.
    """
    return _with_added_units(values, (0.0, 0.0, 1.0, 1.0), clusters, config)


def share_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    clusters: Sequence[Any] | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Interval of mean(first − second), both in 0..1 and of the same tasks in the same order.

    Raises:
        ValueError: The two have different lengths.
    """
    _check_paired(first, second)
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return _with_added_units(differences, (-1.0, 0.0, 0.0, 1.0), clusters, config)


def _with_added_units(
    values: Sequence[float], added: Sequence[float], clusters: Sequence[Any] | None, config: BootstrapConfig | None
) -> Interval:
    config = config or BootstrapConfig()
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        raise ValueError("an interval needs at least one value")
    sums, counts = _by_cluster(data, clusters)
    value, units = float(sums.sum() / counts.sum()), len(sums)
    if units < config.fewest:
        return Interval(value, -np.inf, np.inf, units)
    size = counts.mean()
    sums = np.concatenate([sums, np.asarray(added) * size])
    counts = np.concatenate([counts, np.full(len(added), size)])
    rng = np.random.default_rng(config.seed)
    index = rng.integers(0, len(sums), size=(config.resamples, len(sums)))
    means = sums[index].sum(1) / counts[index].sum(1)
    tail = _expanded_tail((1 - config.level) / 2, len(sums))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(value, min(float(low), value), max(float(high), value), units)


def _expanded_tail(tail: float, units: int) -> float:
    """The tail at which percentiles of so few units cover what they say (Hesterberg 2015, "expanded percentile").

    Φ(−√(n/(n−1)) · t), with the t quantile by its expansion around the normal one.
    """
    normal, freedom = NormalDist(), units - 1
    z = -normal.inv_cdf(tail)
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return normal.cdf(-t * (units / freedom) ** 0.5)


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
    _check_paired(first, second)
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
