"""The error budget: how far from the C a right answer may lie, element by element.

For a float element let w be the value of the C retyped one width up (where that cannot be done, of the C itself), and
ε the spacing of the output's type at 1 (one unit in the last place):

    allowed = max(8·r, d, 16·c) + g + 16·ε·|w| + 2·ε·m + 4·(smallest subnormal)
    at most   max(0.02·σ, 0.01·m) + 16·ε·|w|

r is the largest |s − w| over builds s that round to nearest (plain, contracted to FMA, sums reassociated), d the same
over builds that round upward and downward (a systematic bias, which bounds what any order of summation can do), c how
far the result moves when every float input moves by ε of itself, up or down at random (its condition: another order of
operations may round where the C's own happens not to), g what the documented errors of a GPU's mathematical functions
do to it (all builds call the host's, and share their errors: see `device_math` and `reach`), m the median magnitude of
the output's non-zero elements, and σ its standard deviation. The error of a candidate is its distance from the C's
value or from w, whichever is less. The upper limit keeps a wholly wrong output (zeros, a constant) from passing where
the C itself is badly conditioned. Where there are few builds (large cases), r and c of one element may both be small by
luck, as happens to one sum of thousands; the first term is then at least its median over all elements. With many
elements some are so lucky whatever the builds: of thousands, the first term is at least |w| times the median of its
ratio to |w| over elements of about the same magnitude.

A NaN or an infinity must be where the reference has it, and only there; where the builds of the same width disagree on
that (an overflow on the way that another order of operations avoids), a candidate may side with any of them, within
2 % of its value.

Integers (and booleans) are exact. Where the builds themselves disagree, the integer derives from floats: a candidate
must match one of the plain, contracted or widened builds; other mismatches may be at most twice as many as the
elements on which those builds disagree, and never over 1 %. In an output of fewer than 200 elements, of which 1 % is
less than two, two elements may differ if rounding decides on them (builds that round or sum otherwise give others).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cudaperf_agent.tasks.device_math import TURNS
from cudaperf_agent.tasks.model import Value


@dataclass(frozen=True, slots=True)
class BudgetConfig:
    """The numbers of the formula above.

    Attributes:
        nearest: Factor on the largest error of a build that rounds to nearest.
        directed: Factor on the largest error of a build that rounds upward or downward.
        condition: Factor on the effect of moving the inputs.
        ulps: Units in the last place of the element itself: what libraries of functions may differ by (CUDA's manual
            gives up to 9 for single functions).
        spread_ulps: Units in the last place of the output's median magnitude.
        neighbours: Share of the median over all elements of what builds and moves show that each element has at least.
        crowd: In an output of so many elements the builds of some agree by luck …
        peers: … so that each has at least the relative allowance that is the median of so many of its magnitude …
        sampled: … as far as so many elements, drawn at random, tell.
        subnormals: Smallest subnormals that are always allowed.
        cap: Share of the output's standard deviation that no allowance exceeds …
        cap_magnitude: … or of its median magnitude, if that is more (an output of equal elements has no deviation).
        integer_factor: Mismatches allowed per element on which the builds disagree.
        integer_share: Largest share of mismatching integers.
        integer_floor: Mismatches allowed in a small output, on elements that rounding decides.
        large: Elements above which the widened values themselves are not kept, to save memory; their distance from
            the C's is then part of the allowance.
        sane: Widened values further from the C than this share of the deviation are not trusted …
        sane_share: … if that many elements are.
    """

    nearest: float = 8.0
    directed: float = 1.0
    condition: float = 16.0
    ulps: float = 16.0
    spread_ulps: float = 2.0
    neighbours: float = 0.0
    crowd: int = 1 << 12
    peers: int = 64
    sampled: int = 1 << 16
    subnormals: float = 4.0
    cap: float = 0.02
    cap_magnitude: float = 0.01
    integer_factor: float = 2.0
    integer_share: float = 0.01
    integer_floor: int = 2
    large: int = 1 << 20
    sane: float = 0.05
    sane_share: float = 0.2


BUDGET = BudgetConfig()
# Elements at a time: what fits in a processor's cache.
_BLOCK = 1 << 16
# Elements of the same exponent and the same first four bits of a double's fraction are of one magnitude.
_KEY_SHIFT, _KEYS = np.uint64(48), 1 << 15
# With few builds, for large cases.
FEW_BUILDS = 1.0


@dataclass(frozen=True, slots=True)
class Precision:
    """Of an element type that numpy does not have: its spacing at 1, and its smallest subnormal."""

    eps: float
    smallest: float


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One numeric component of an output: the whole of it, or one member of its structs.

    Attributes:
        path: ``""``, or the member as ``.x`` or ``.pos[1]``.
        reference: What the C gives, 1-d.
        allowed: Absolute error allowed per element (float components), else `None`.
        others: What other legitimate builds give, of the same length: the widened one for floats (in its own, wider
            type), contracted and widened for integers.
        slack: Integer mismatches against every build that are let pass.
        unsure: Integers that rounding decides: at most `floor` of them may differ.
        floor: See `unsure`.
        undecided: Builds of the same width, where one of them is finite at an element and another is not.
        share: Relative error allowed at such an element against whichever build is finite there.
    """

    path: str
    reference: Value
    allowed: Value | None
    others: tuple[Value, ...] = ()
    slack: int = 0
    unsure: Value | None = None
    floor: int = 0
    undecided: tuple[Value, ...] = ()
    share: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedOutput:
    """What one output must be: the C's own value and its parts with their budgets."""

    name: str
    value: Value
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What a candidate must give for one case.

    Attributes:
        case: The case's name.
        outputs: Written buffers in parameter order, then ``return`` if there is one; function mode only.
        stdout: What the C program prints; program mode only.
        numbers: Budget of each number that `stdout` holds, as a part of its own; program mode only.
        status: Exit status of the C program; program mode only.
    """

    case: str
    outputs: tuple[ExpectedOutput, ...] = ()
    stdout: bytes = b""
    numbers: Part | None = None
    status: int = 0

    def output(self, name: str) -> ExpectedOutput:
        """The output of that name."""
        return next(o for o in self.outputs if o.name == name)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One numeric component of a structured array, flattened."""

    path: str
    values: Value


@dataclass(frozen=True, slots=True, eq=False)
class Builds:
    """The same output as other builds of the C give it; what could not be built is missing.

    Attributes:
        wide: Retyped one width up.
        contracted: With multiplications and additions fused.
        nearest: Others that round to nearest.
        directed: Those that round upward or downward.
        moved: The widened build (or, without one, the plain build) with every float input moved by one unit in the
            last place.
        device: Turns of `device_math`: without errors, by its patterns, and with all errors upward.
    """

    wide: Value | None = None
    contracted: Value | None = None
    nearest: tuple[Value, ...] = ()
    directed: tuple[Value, ...] = ()
    moved: tuple[Value, ...] = ()
    device: tuple[Value, ...] = ()


def leaves(values: Value, path: str = "") -> list[Leaf]:
    """The numeric components of an array: itself, or every member of its structs, arrays of members flattened."""
    if values.dtype.names is None:
        return [Leaf(path, values.reshape(-1))]
    found: list[Leaf] = []
    for name in values.dtype.names:
        found += leaves(values[name], f"{path}.{name}")
    return found


def expect(name: str, plain: Value, builds: Builds, config: BudgetConfig = BUDGET) -> ExpectedOutput:
    """The budget of one output from what the builds of the C give for it."""

    def leaf(build: Value | None, index: int) -> Value | None:
        return None if build is None else leaves(build)[index].values

    parts = []
    for index, own in enumerate(leaves(plain)):
        wide, contracted = leaf(builds.wide, index), leaf(builds.contracted, index)
        if own.values.dtype.kind == "f":
            nearest = [leaves(b)[index].values for b in builds.nearest]
            directed = [leaves(b)[index].values for b in builds.directed]
            if contracted is not None:
                nearest.append(contracted)
            moved = [leaves(b)[index].values for b in builds.moved]
            device = [leaves(b)[index].values for b in builds.device]
            parts.append(float_part(own, wide, nearest, directed, moved, config, device=device))
        else:
            others = [b for b in (contracted, wide) if b is not None]
            rounded = [leaves(b)[index].values for b in (*builds.nearest, *builds.directed)]
            device = [leaves(b)[index].values for b in builds.device]
            parts.append(_integer_part(own, others, rounded, device, config))
    return ExpectedOutput(name, plain, tuple(parts))


def float_part(
    own: Leaf,
    wide: Value | None,
    nearest: Sequence[Value],
    directed: Sequence[Value],
    moved: Sequence[Value] = (),
    config: BudgetConfig = BUDGET,
    precision: Precision | None = None,
    device: Sequence[Value] = (),
) -> Part:
    """The budget of a float component; see the module's docstring. `precision`: where it is not its numpy type's."""
    plain = own.values
    if wide is not None and not trustworthy(plain, wide, config):
        wide, moved = None, ()
    # double is wide enough for the errors of floats, and many times as fast
    working: type[np.floating[Any]] = np.float64 if plain.dtype.itemsize <= 4 else np.longdouble
    truth: Value = (plain if wide is None else wide).astype(working)
    info = np.finfo(plain.dtype)
    precision = precision or Precision(float(info.eps), float(info.smallest_subnormal))
    unit = precision.eps
    with np.errstate(all="ignore"):
        counted = np.isfinite(truth) & np.isfinite(plain)
        magnitude = np.where(counted, np.abs(truth), 0)
        rounding = config.nearest * _largest([plain, *nearest], truth)
        bias = config.directed * _largest(directed, truth)
        condition = config.condition * _largest(moved, truth)
        typical, deviation = _typical(magnitude), _deviation(truth[counted])
        floor = config.ulps * unit * magnitude + config.subnormals * precision.smallest
        shown = np.maximum(np.maximum(rounding, bias), condition)
        if config.neighbours and shown.size:
            shown = np.maximum(shown, config.neighbours * np.median(shown))
        if shown.size >= config.crowd:
            shown = np.maximum(shown, magnitude * _of_peers(shown, magnitude, config))
        allowed = shown + reach(device, truth.shape) + floor + config.spread_ulps * unit * typical
        cap = max(config.cap * deviation, config.cap_magnitude * typical)
        allowed = np.minimum(allowed, floor + cap)
    differ = any(not np.array_equal(np.isfinite(b), np.isfinite(plain)) for b in nearest if b.shape == plain.shape)
    undecided = tuple(nearest) if differ else ()
    allowed = np.minimum(allowed, np.finfo(np.float64).max).astype(np.float64)
    with np.errstate(all="ignore"):
        others = () if wide is None else (wide.astype(plain.dtype),)  # what is lost is less than one unit of many
        if plain.size > config.large and wide is not None:
            apart = np.abs(plain.astype(working) - truth)
            allowed, others = allowed + np.where(np.isfinite(apart), apart, 0).astype(np.float64), ()
    return Part(own.path, plain, allowed, others, undecided=undecided, share=config.cap)


def trustworthy(plain: Value, wide: Value, config: BudgetConfig = BUDGET) -> bool:
    """Whether a widened build plausibly computes the same function (retyping by token can change what bits mean)."""
    if plain.shape != wide.shape:
        return False
    both = np.isfinite(plain) & np.isfinite(wide)
    if not both.any():
        return True
    # double is many times as fast, and enough for floats
    working: type[np.floating[Any]] = np.float64 if plain.dtype.itemsize <= 4 else np.longdouble
    a, b = plain[both].astype(working), wide[both].astype(working)
    scale = max(float(np.std(a)), float(np.max(np.abs(a))) * config.sane)
    far = np.abs(a - b) > config.sane * scale
    return bool(np.count_nonzero(far) <= max(1, int(config.sane_share * far.size)) and not (far.size == 1 and far[0]))


def reach(device: Sequence[Value], shape: tuple[int, ...]) -> Any:
    """How far the errors of single calls of mathematical functions move each element, if all of them are adverse.

    Turn k of `device_math` moves an element by the sum of its calls' effects, each with the sign of the call's column
    in row k of a Hadamard matrix. The squares of the turns add up to the number of rows times those of the effects,
    whose sum is no more than that (Cauchy and Schwarz) for as many calls as rows; of more calls, it is what their sum
    comes to at random, times the root of the rows. No turn on its own would do: among millions of elements, the effects
    cancel in some.
    """
    if len(device) != TURNS or any(turn.shape != shape for turn in device):
        return 0.0
    unmoved, *patterns, upward = device
    found = np.zeros(shape)
    for at in range(0, found.size, _BLOCK):
        part = slice(at, at + _BLOCK)
        still = unmoved[part].astype(np.float64)
        squares = np.zeros(still.shape)
        for turn in patterns:
            away = turn[part] - still
            squares += np.where(np.isfinite(away), away * away, 0)
        most = np.abs(upward[part] - still)
        found[part] = np.maximum(np.sqrt(squares), np.where(np.isfinite(most), most, 0))
    return found


def _of_peers(shown: Value, magnitude: Value, config: BudgetConfig) -> Any:
    """What builds and moves show, relative to an element: the median over elements of about its magnitude."""
    sizes = magnitude.astype(np.float64)
    keys = sizes.view(np.uint64) >> _KEY_SHIFT
    drawn = np.random.default_rng(0).integers(0, sizes.size, min(sizes.size, config.sampled))
    drawn = drawn[sizes[drawn] > 0]
    drawn = drawn[np.argsort(keys[drawn], kind="stable")]
    groups = drawn.size // config.peers
    if not groups:
        return 0.0
    drawn = drawn[: groups * config.peers]
    relative = (shown[drawn] / magnitude[drawn]).astype(np.float64).reshape(groups, config.peers)
    of_group = np.searchsorted(keys[drawn[:: config.peers]], np.arange(_KEYS, dtype=np.uint64), side="right") - 1
    return np.median(relative, axis=1)[np.maximum(of_group, 0)][keys]


def _integer_part(
    own: Leaf, others: Sequence[Value], rounded: Sequence[Value], device: Sequence[Value], config: BudgetConfig
) -> Part:
    alike = [o.astype(own.values.dtype) for o in others if o.shape == own.values.shape]
    differ = np.zeros(own.values.shape, bool)
    for other in alike:
        differ |= other != own.values
    unsure = differ.copy()
    for other in device:
        differ |= other != own.values
    disagreements = int(np.count_nonzero(differ))
    slack = min(int(config.integer_factor * disagreements), int(config.integer_share * differ.size))
    for other in (*rounded, *device):
        unsure |= other != own.values
    floor = config.integer_floor if unsure.any() else 0
    return Part(own.path, own.values, None, tuple(alike) if disagreements else (), slack, unsure, floor)


def _largest(builds: Sequence[Value], truth: Value) -> Any:
    """The largest distance of any build from the truth, per element; where either is not finite it counts as none."""
    worst = np.zeros(truth.shape, truth.dtype)
    for build in builds:
        if build.shape == truth.shape:
            error = np.abs(build.astype(truth.dtype) - truth)
            worst = np.maximum(worst, np.where(np.isfinite(error), error, 0))
    return worst


def _typical(magnitude: Value) -> Any:
    nonzero = magnitude[magnitude > 0]
    return np.median(nonzero) if nonzero.size else np.longdouble(0)


def _deviation(truth: Value) -> Any:
    # in long double: squares of doubles near their limit must not overflow
    return np.std(truth) if truth.size > 1 else np.longdouble(0)
