"""When two clocks agree: the rule on numbers as a quiet and a busy machine give them, and the process it leans on."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from cudaperf_agent.cuda.clocks import CLOCKS, batch_agreement, call_agreement, without_waiting
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.witness import Witness

CALLS = 27
NEVER = [0.0] * CALLS


def added(rng: np.random.Generator, busy: bool) -> npt.NDArray[np.float64]:
    """What messages add to calls: some 40 µs, and on a busy machine, at every third call or so, a turn of another."""
    found = 4e-5 + rng.gamma(4.0, 2e-6, CALLS)
    return found + (rng.random(CALLS) < 0.3) * rng.gamma(2.0, 2e-3, CALLS) if busy else found


def share_believed(busy: bool, seconds: float, told: float, trials: int = 400) -> float:
    """Of children that tell this share of what their calls take."""
    rng = np.random.default_rng(7)
    believed = 0
    for _ in range(trials):
        takes = seconds * rng.normal(1.0, 0.02, CALLS)
        outside = takes + added(rng, busy)
        believed += batch_agreement(told * takes, outside, NEVER, added(rng, busy)).agree
    return believed / trials


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("seconds", [1e-5, 4e-5, 1e-3, 5e-2])
def test_an_honest_child_is_believed(busy: bool, seconds: float) -> None:
    assert share_believed(busy, seconds, 1.0) == 1.0


@pytest.mark.parametrize("seconds", [2e-4, 1e-3, 5e-2])
def test_a_child_that_tells_half_is_not_believed(seconds: float) -> None:
    assert share_believed(False, seconds, 0.5) == 0.0


def test_on_a_busy_machine_half_of_some_milliseconds_is_seen() -> None:
    assert share_believed(True, 2e-2, 0.5) == 0.0


def test_the_sum_is_held_to_five_per_cent() -> None:
    inside, null = [1e-2] * CALLS, [4e-5] * CALLS
    assert batch_agreement(inside, [s * 1.04 + 4e-5 for s in inside], NEVER, null).agree
    assert not batch_agreement(inside, [s * 1.06 + 4e-5 for s in inside], NEVER, null).agree
    found = batch_agreement(inside, [s * 1.06 + 4e-5 for s in inside], NEVER, null).figures
    assert found["null_call_seconds"] == pytest.approx(4e-5)
    assert found["batch_excess_seconds"] == pytest.approx(CALLS * 6e-4)
    assert found["allowed_batch_excess_seconds"] == pytest.approx(CALLS * (5e-4 + CLOCKS.batch_slack_seconds))


def test_a_lie_about_most_calls_does_not_hide_behind_its_own_scatter() -> None:
    rng = np.random.default_rng(3)
    takes = np.full(CALLS, 1e-3)
    told = np.where(np.arange(CALLS) % 2, takes, takes / 2)  # every second one: what moves a median
    assert not batch_agreement(told, takes + added(rng, False), NEVER, added(rng, False)).agree


def test_one_late_wake_up_decides_nothing_and_an_earlier_end_than_begun_does() -> None:
    inside = [1e-4] * CALLS
    outside = [1.4e-4] * (CALLS - 1) + [0.5]
    assert batch_agreement(inside, outside, NEVER, [4e-5] * CALLS).agree
    assert call_agreement(inside, outside, [4e-5] * CALLS).agree
    assert not call_agreement(inside, [9e-5, *outside[1:]], [4e-5] * CALLS).agree
    assert not call_agreement(inside, [5e-4] * CALLS, [4e-5] * CALLS).agree
    assert call_agreement(inside, [5e-4] * CALLS, [4e-5] * CALLS, replace(CLOCKS, slack_seconds=1e-3)).agree


def test_the_witness_is_busy_for_as_long_as_it_is_told() -> None:
    with Witness() as witness:
        started = time.perf_counter()
        added = [witness.null_call(2e-3) for _ in range(20)]
        assert time.perf_counter() - started > 20 * 2e-3
    assert 0 <= min(added) < 2e-3, "what it was busy for is not among what the clock adds"


def test_a_signal_to_all_of_a_terminal_s_processes_is_not_for_the_witness() -> None:
    with Witness() as witness:
        assert witness._process is not None
        assert os.getpgid(witness._process.pid) != os.getpgid(0)


def test_a_witness_that_is_gone_is_the_machine_s_fault() -> None:
    with Witness() as witness:
        assert witness._process is not None
        witness._process.kill()
        witness._process.wait()
        with pytest.raises(BackendUnavailable):
            witness.null_call(0.0)


def test_waiting_for_a_processor_is_no_lie_and_hides_none_of_calls_that_did_not_wait() -> None:
    inside, null = [1e-3] * CALLS, [4e-5] * CALLS
    late = [5e-3 * (i % 2) for i in range(CALLS)]
    waited = [own + 4e-5 + slow for own, slow in zip(inside, late, strict=True)]
    assert batch_agreement(inside, waited, late, null).agree
    told = [own / 2 for own in inside]
    assert not batch_agreement(told, waited, late, null).agree
    assert without_waiting([1.0, 1.0, 2.0], [3.0, 1.5, 1.0], [0.5, 9.0, 0.5]) == [2.5, 1.0, 1.0]
