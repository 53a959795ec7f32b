"""Credit and advantages, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.grpo.credit import CreditRule, advantages_of, credits_of

# Two small groups of two trajectories and three turns: one that climbs and one that falls back; one with an unknown.
CLIMBS = (-3.0, -2.0, 1.0)
FALLS = (1.0, -2.0, 3.0)
UNKNOWN_LATER = (-2.0, None, 0.5)
UNKNOWN_FIRST = (None, 1.0, 2.0)


@pytest.mark.parametrize(
    ("rule", "rewards", "expected"),
    [
        ({"credit": "immediate"}, CLIMBS, [-3.0, -2.0, 1.0]),
        ({"credit": "immediate"}, UNKNOWN_LATER, [-2.0, None, 0.5]),
        ({"credit": "gain"}, CLIMBS, [-3.0, 1.0, 3.0]),
        ({"credit": "gain"}, FALLS, [1.0, 0.0, 2.0]),
        ({"credit": "gain"}, UNKNOWN_LATER, [-2.0, None, 2.5]),
        ({"credit": "gain"}, UNKNOWN_FIRST, [None, None, 1.0]),
        ({"credit": "discounted", "gamma": 0.4}, CLIMBS, [-3.0 - 0.8 + 0.16, -2.0 + 0.4, 1.0]),
        ({"credit": "discounted", "gamma": 0.4}, FALLS, [1.0 - 0.8 + 0.48, -2.0 + 1.2, 3.0]),
        ({"credit": "discounted", "gamma": 1.0}, CLIMBS, [-4.0, -1.0, 1.0]),
        ({"credit": "discounted", "gamma": 1.0}, UNKNOWN_LATER, [-2.0 - 2.0 + 0.5, None, 0.5]),
        ({"credit": "best_of_trajectory"}, CLIMBS, [1.0, 1.0, 1.0]),
        ({"credit": "best_of_trajectory"}, FALLS, [3.0, 3.0, 3.0]),
        ({"credit": "best_of_trajectory"}, UNKNOWN_FIRST, [None, 2.0, 2.0]),
    ],
)
def test_credit_by_hand(rule: dict[str, Any], rewards: tuple[float | None, ...], expected: list[float | None]) -> None:
    found = credits_of(rewards, CreditRule(**rule))
    assert [c is None for c in found] == [c is None for c in expected]
    assert [c for c in found if c is not None] == pytest.approx([c for c in expected if c is not None])


def test_after_a_stop_the_last_state_repeats() -> None:
    rule = CreditRule("discounted", gamma=0.5)
    # Stopped after two of four turns at −2: turns three and four count −2 each.
    assert credits_of((-3.0, -2.0), rule, 4) == pytest.approx([-3 - 1 - 0.5 - 0.25, -2 - 1 - 0.5])
    # Stopping early does not pay: going on with the same state gives the same credit.
    assert credits_of((-3.0, -2.0, -2.0, -2.0), rule, 4)[:2] == pytest.approx(credits_of((-3.0, -2.0), rule, 4))


@pytest.mark.parametrize("credit", ["immediate", "gain", "discounted", "best_of_trajectory"])
@pytest.mark.parametrize("baseline", ["group_std", "leave_one_out"])
def test_two_groups_by_hand_in_each_mode(credit: Any, baseline: Any) -> None:
    rule = CreditRule(credit, gamma=0.4, baseline=baseline)
    first_turn = {
        "immediate": (-3.0, 1.0),
        "gain": (-3.0, 1.0),
        "discounted": (-3.64, 0.68),
        "best_of_trajectory": (1.0, 3.0),
    }
    last_turn = {
        "immediate": (1.0, 3.0),
        "gain": (3.0, 2.0),
        "discounted": (1.0, 3.0),
        "best_of_trajectory": (1.0, 3.0),
    }
    for turn, by_hand in ((0, first_turn), (2, last_turn)):
        group = [credits_of(t, rule)[turn] for t in (CLIMBS, FALLS)]
        assert group == pytest.approx(list(by_hand[credit]))
        a, b = by_hand[credit]
        # Of two members each one's baseline is the other; the deviation (n − 1) of two numbers is |a − b| / √2.
        expected = [a - b, b - a] if baseline == "leave_one_out" else [(a - b) / 2 / (abs(a - b) / 2**0.5 + 1e-4)]
        assert advantages_of(group, rule).values[: len(expected)] == pytest.approx(expected)


def test_three_members_leave_one_out() -> None:
    found = advantages_of([1.0, None, -2.0, 4.0], CreditRule(baseline="leave_one_out"))
    assert found.values == pytest.approx([1.0 - 1.0, 0.0, -2.0 - 2.5, 4.0 + 0.5])
    assert (found.members, found.skipped) == (3, False)


def test_a_group_that_teaches_nothing_is_skipped() -> None:
    rule = CreditRule(least_spread=0.1)
    for group in ([1.0, 1.05, 1.0], [None, 2.0], [None, None], []):
        found = advantages_of(group, rule)
        assert found.skipped
        assert not found.values.any()
    assert not advantages_of([1.0, 1.11], rule).skipped


@given(st.lists(st.floats(-3, 4), min_size=2, max_size=16), st.sampled_from(["group_std", "leave_one_out"]))
def test_advantages_sum_to_nothing_and_keep_the_order(group: list[float], baseline: Any) -> None:
    found = advantages_of(group, CreditRule(baseline=baseline, least_spread=0.01))
    assert abs(found.values.sum()) < 1e-6
    if not found.skipped:
        assert (np.diff(found.values[np.argsort(group)]) >= -1e-9).all()


@given(st.lists(st.floats(-3, 4), min_size=1, max_size=5))
def test_gains_add_up_to_the_best_reward(rewards: list[float]) -> None:
    gains = credits_of(rewards, CreditRule("gain"))
    assert sum(g for g in gains if g is not None) == pytest.approx(max(rewards))
