"""Whether a child's times can be believed: its clock against the parent's, over a batch and call by call.

The parent's clock runs from the message that starts a call to the one that ends it, so it shows more than the child's:
what the messages cost, and how late a busy machine wakes either side. How long either had to wait for a processor the
kernel tells (`execution.lateness`); that is taken off the parent's times first. The rest is known from empty calls of a
process of ours (`execution.witness`), one beside each call, of the same messages and about the same length.

Over the batch, the parent's sum less the child's must be the cost of as many empty calls, but for a share of the
child's sum. A sum is as many times the median: on a busy machine some calls are late by milliseconds, which would
decide any other sum, and what a verdict tells of a kernel is the median of the child's times. Of the parent's median
and of the empty calls' the ends of their intervals count that speak for the child.

Call by call, an absolute slack applies instead of the empty calls: it needs no witness, and sees a child that tells
more than the parent saw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ClockRule:
    """Numbers of both checks.

    Attributes:
        slack: Share of the child's time by which the two clocks may differ beyond the messages.
        slack_seconds: Call by call: and seconds (wake-ups of the parent on a busy machine).
        late_calls: Call by call: share of the calls, the latest, that is left out.
        batch_slack_seconds: Over the batch: and seconds per call by which a call may differ from an empty one.
        certainty: And the intervals of the medians, in so many standard deviations of a median's rank.
        null_seconds: Empty calls take as long as the calls do, but no longer than this.
    """

    slack: float = 0.05
    slack_seconds: float = 2e-4
    late_calls: float = 0.25
    batch_slack_seconds: float = 5e-5
    certainty: float = 2.5
    null_seconds: float = 5e-3


CLOCKS = ClockRule()


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the clocks said, by name in seconds, and whether they agree."""

    agree: bool
    figures: dict[str, float]


def without_waiting(inside: Sequence[float], outside: Sequence[float], late: Sequence[float]) -> list[float]:
    """The parent's time of each call less what was waited for a processor, but no less than the child's.

    Some of the waiting may have been in the middle of a call, where the child's clock counts it, too. A call that ended
    before it began stays as it is.
    """
    calls = zip(inside, outside, late, strict=True)
    return [out if own > out else max(own, out - waited) for own, out, waited in calls]


def batch_agreement(
    inside: Sequence[float],
    outside: Sequence[float],
    late: Sequence[float],
    null_calls: Sequence[float],
    rule: ClockRule = CLOCKS,
) -> Agreement:
    """The batch's sums against as many empty calls.

    Args:
        inside, outside: Seconds of each call by the child's and by the parent's clock.
        late: Seconds that either side waited for a processor. Only the half of the calls that waited least counts, for
            a lie can hide in a wait: on a machine that is busy throughout, lies shorter than the waits are not seen.
        null_calls: What the parent's clock adds to empty calls, less waiting.
        rule: Numbers.
    """
    quiet = float(np.median(late))
    chosen = [i for i, waited in enumerate(late) if waited <= quiet]
    unhindered = without_waiting(inside, outside, late)
    outside = [unhindered[i] for i in chosen]
    inside = [inside[i] for i in chosen]
    count = len(chosen)
    own, parent, null = float(np.median(inside)), _middle(outside, rule), _middle(null_calls, rule)
    allowed = count * (rule.slack * own + rule.batch_slack_seconds)
    surely = count * (parent.low - own - null.high)
    figures = {
        "batch_excess_seconds": count * (parent.median - own - null.median),
        "sure_batch_excess_seconds": surely,
        "allowed_batch_excess_seconds": allowed,
        "null_call_seconds": null.median,
    }
    return Agreement(surely <= allowed, figures)


def call_agreement(
    inside: Sequence[float], outside: Sequence[float], exchanges: Sequence[float], rule: ClockRule = CLOCKS
) -> Agreement:
    """Call by call, against what an empty exchange of messages costs at most times.

    All but the latest calls count: one late wake-up must not decide, and a lie about fewer calls moves no median.
    """
    excesses = [out - own * (1 + rule.slack) for own, out in zip(inside, outside, strict=True)]
    excess = float(np.quantile(excesses, 1 - rule.late_calls))
    allowed = float(np.quantile(exchanges, 0.9)) + rule.slack_seconds
    possible = all(own <= out for own, out in zip(inside, outside, strict=True))
    return Agreement(possible and excess <= allowed, {"excess_seconds": excess, "allowed_excess_seconds": allowed})


@dataclass(frozen=True, slots=True)
class _Middle:
    low: float
    median: float
    high: float


def _middle(values: Sequence[float], rule: ClockRule) -> _Middle:
    """Median and the ends of its interval by ranks, which hold whatever the tails are."""
    count = len(values)
    reach = min(0.5, rule.certainty * 0.5 / math.sqrt(count))
    low, median, high = np.quantile(values, [0.5 - reach, 0.5, 0.5 + reach])
    return _Middle(float(low), float(median), float(high))
