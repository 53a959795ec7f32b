"""Draws the values of one buffer or scalar: by profile (sign, scale, ties, special values), inside its legal range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from cudaperf_agent.tasks.model import CType, TypeKind, Value


class Profile(StrEnum):
    """How values are spread. Visible and hidden cases use different ones, so that no single distribution is enough."""

    UNIT = "unit"
    POSITIVE = "positive"
    SCALED = "scaled"
    TIES = "ties"
    SHIFTED = "shifted"
    NEGATIVE = "negative"
    MAGNITUDES = "magnitudes"
    SPECIAL = "special"


VISIBLE_PROFILES = (Profile.UNIT, Profile.SCALED, Profile.TIES, Profile.POSITIVE)
HIDDEN_PROFILES = (Profile.SHIFTED, Profile.MAGNITUDES, Profile.SPECIAL, Profile.NEGATIVE, Profile.TIES)


@dataclass(frozen=True, slots=True)
class Spreads:
    """Where free values lie.

    Attributes:
        floats: Uniform interval of a free float, by profile.
        integers: Interval of a free integer, by profile; cut to the type and to the legal range.
        log10: Exponents between which ``MAGNITUDES`` spreads floats of both signs.
        ties: Number of distinct values under ``TIES``.
        special_floats: Mixed in under ``SPECIAL``: zeros of both signs, values around a float's smallest normal, …
        special_share: Share of elements that are special under ``SPECIAL``.
        decades: A positive interval whose ends are further apart than this factor is also drawn evenly by magnitude.
    """

    floats: dict[Profile, tuple[float, float]]
    integers: dict[Profile, tuple[int, int]]
    log10: tuple[float, float] = (-4.0, 4.0)
    ties: int = 4
    special_floats: tuple[float, ...] = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-39, -1e-39, 1.5e-38, 1e4, -1e4, 16777217.0)
    special_share: float = 0.4
    decades: float = 100.0


_WIDE = (-(1 << 63), (1 << 64) - 1)
SPREADS = Spreads(
    floats={
        Profile.UNIT: (-1.0, 1.0),
        Profile.POSITIVE: (0.1, 3.0),
        Profile.SCALED: (-100.0, 100.0),
        Profile.TIES: (-2.0, 2.0),
        Profile.SHIFTED: (-7.0, 3.0),
        Profile.NEGATIVE: (-5.0, -0.25),
        Profile.SPECIAL: (-3.0, 3.0),
        Profile.MAGNITUDES: (-math.inf, math.inf),
    },
    integers={
        Profile.UNIT: (-100, 100),
        Profile.POSITIVE: (0, 1000),
        Profile.SCALED: (-1_000_000, 1_000_000),
        Profile.TIES: (-3, 3),
        Profile.SHIFTED: (-5000, 300),
        Profile.NEGATIVE: (-1000, -1),
        Profile.MAGNITUDES: _WIDE,
        Profile.SPECIAL: _WIDE,
    },
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The evaluated legal range of one input; an end may be open."""

    low: float | int | None = None
    high: float | int | None = None
    odd: bool = False

    @property
    def free(self) -> bool:
        """Whether nothing limits the values."""
        return self.low is None and self.high is None

    @property
    def empty(self) -> bool:
        """Whether no value is legal."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.odd and self.low == self.high and int(self.low) % 2 == 0)


def draw_whole(type_: CType, count: int, bounds: Bounds, rng: np.random.Generator) -> Value | None:
    """Integers from one end of their bounds to the other, however far apart; `None` where that is for `draw` to do.

    Profiles stop at what suits values. Subscripts and offsets of large buffers would all lie in their first part.
    """
    if type_.kind not in (TypeKind.INT, TypeKind.UINT) or bounds.low is None or bounds.high is None or bounds.odd:
        return None
    low, high = integer_interval(type_, bounds)
    start, end = SPREADS.integers[Profile.SCALED]
    if start <= low and high <= end:
        return None
    return _integers_between(rng, low, high, count, type_)


def draw(
    type_: CType, count: int, bounds: Bounds, profile: Profile, rng: np.random.Generator, spreads: Spreads = SPREADS
) -> Value:
    """`count` values of `type_` as a 1-d array; struct members are drawn one by one, padding is zero."""
    if type_.kind is TypeKind.STRUCT:
        return _draw_struct(type_, count, bounds, profile, rng, spreads)
    if type_.kind is TypeKind.BOOL:
        return rng.integers(0, 2, count).astype(type_.dtype)
    if type_.kind is TypeKind.FLOAT:
        return _draw_floats(count, bounds, profile, rng, spreads).astype(type_.dtype)
    return _draw_integers(type_, count, bounds, profile, rng, spreads)


def _draw_struct(
    type_: CType, count: int, bounds: Bounds, profile: Profile, rng: np.random.Generator, spreads: Spreads
) -> Value:
    out = np.zeros(count, type_.dtype)
    for field in type_.fields:
        inner = math.prod(field.shape)
        out[field.name] = draw(field.type, count * inner, bounds, profile, rng, spreads).reshape((count, *field.shape))
    return out


def _draw_floats(
    count: int, bounds: Bounds, profile: Profile, rng: np.random.Generator, spreads: Spreads
) -> np.ndarray[Any, np.dtype[np.float64]]:
    if bounds.free and profile is Profile.MAGNITUDES:
        return rng.choice((-1.0, 1.0), count) * 10.0 ** rng.uniform(*spreads.log10, count)
    low, high = _float_interval(bounds, profile, spreads)
    values = rng.uniform(low, high, count)
    if profile in (Profile.UNIT, Profile.NEGATIVE) and low > 0 and high / low > spreads.decades:
        values = np.exp(rng.uniform(math.log(low), math.log(high), count))
    if profile is Profile.TIES:
        values = rng.choice(_tied(low, high, rng, spreads), count)
    elif profile is Profile.MAGNITUDES and low > 0:
        values = np.exp(rng.uniform(math.log(low), math.log(high), count))
    elif profile is Profile.SPECIAL:
        special = [v for v in (*spreads.special_floats, *_ends(bounds)) if _inside(v, bounds)]
        if special:
            chosen = rng.random(count) < spreads.special_share
            values = np.where(chosen, rng.choice(special, count), values)
    return values


def _tied(low: float, high: float, rng: np.random.Generator, spreads: Spreads) -> list[float]:
    """Two or a few values, multiples of a quarter where possible: sums of them are exact, so that ties are ties."""
    few = rng.uniform(low, high, 2 if rng.random() < 0.5 else spreads.ties)
    return [float(q) if low <= q <= high else float(v) for v, q in zip(few, np.round(few * 4) / 4, strict=True)]


def _float_interval(bounds: Bounds, profile: Profile, spreads: Spreads) -> tuple[float, float]:
    low, high = spreads.floats[profile]
    if bounds.free:
        return low, high
    if bounds.low is not None and bounds.high is not None:
        start, end = max(low, float(bounds.low)), min(high, float(bounds.high))
        return (start, end) if start < end else (float(bounds.low), float(bounds.high))
    width = 10.0 ** spreads.log10[1] if profile is Profile.MAGNITUDES else max(abs(low), abs(high))
    if bounds.low is not None:
        return float(bounds.low), float(bounds.low) + width
    assert bounds.high is not None
    return float(bounds.high) - width, float(bounds.high)


def _draw_integers(
    type_: CType, count: int, bounds: Bounds, profile: Profile, rng: np.random.Generator, spreads: Spreads
) -> Value:
    low, high = integer_interval(type_, bounds)
    if type_.spelling == "char" and bounds.free:
        return _draw_characters(type_, count, profile, rng)
    start, end = spreads.integers[profile]
    if type_.size == 1 and profile in (Profile.UNIT, Profile.SCALED):
        start, end = low, high
    start, end = max(start, low), min(end, high)
    if start > end:
        start, end = low, high
    if profile is Profile.TIES and end - start > spreads.ties:
        end = start + spreads.ties
    values = _integers_between(rng, start, end, count, type_)
    if profile is Profile.SPECIAL:
        special = [v for v in (low, high, low + 1, high - 1, 0, 1, -1) if low <= v <= high]
        chosen = rng.random(count) < spreads.special_share
        values = np.where(chosen, np.array(special, dtype=type_.dtype)[rng.integers(0, len(special), count)], values)
    if bounds.odd:
        values = values | np.array(1, dtype=type_.dtype)
        values = np.where(values > high, values - np.array(2, dtype=type_.dtype), values)
    return values.astype(type_.dtype)


def _draw_characters(type_: CType, count: int, profile: Profile, rng: np.random.Generator) -> Value:
    """Text: few letters (so that some agree), all printable ones, or any byte."""
    alphabet = {Profile.UNIT: (97, 101), Profile.TIES: (97, 99), Profile.SHIFTED: (65, 70)}.get(profile, (32, 127))
    if profile in (Profile.MAGNITUDES, Profile.SPECIAL):
        alphabet = (0, 256)
    return rng.integers(*alphabet, count, dtype=np.int64).astype(np.uint8).view(type_.dtype)


def integer_interval(type_: CType, bounds: Bounds) -> tuple[int, int]:
    """The inclusive legal interval: the bounds, cut to what the type holds."""
    info = np.iinfo(type_.dtype)
    low = info.min if bounds.low is None else max(info.min, math.ceil(bounds.low))
    high = info.max if bounds.high is None else min(info.max, math.floor(bounds.high))
    return int(low), int(high)


def _integers_between(rng: np.random.Generator, low: int, high: int, count: int, type_: CType) -> Value:
    if low < 0 and high > np.iinfo(np.int64).max:
        high = int(np.iinfo(np.int64).max)
    kind = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    return rng.integers(low, high, count, dtype=kind, endpoint=True).astype(type_.dtype)


def _ends(bounds: Bounds) -> list[float]:
    return [float(end) for end in (bounds.low, bounds.high) if end is not None]


def _inside(value: float, bounds: Bounds) -> bool:
    return (bounds.low is None or value >= bounds.low) and (bounds.high is None or value <= bounds.high)
