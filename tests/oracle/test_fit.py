"""Fitting of extents: the simplest expression that explains every sample, or none."""

from __future__ import annotations

import itertools

import pytest

from cudaperf_agent.tasks.expr import evaluate
from cudaperf_agent.tasks.fit import Sample, fit

POINTS = [{"a": a, "b": b} for a, b in [(2, 7), (5, 3), (11, 4), (7, 13), (3, 2), (13, 9)]]


@pytest.mark.parametrize(
    "rule", ["a", "a*b", "3*a + 1", "a*a", "12", "(a-1)*b + 3*a", "a*(a+1)/2", "a*b*b", "2*b - 1", "0"]
)
def test_the_rule_is_found(rule: str) -> None:
    samples = [Sample(point, int(evaluate(rule, point))) for point in POINTS]
    found = fit(["a", "b"], samples)
    assert found is not None
    for a, b in itertools.product(range(12), range(12)):
        assert evaluate(found, {"a": a, "b": b}) == evaluate(rule, {"a": a, "b": b})


@pytest.mark.parametrize("needs", [[3, 1, 4, 1, 5, 9], [7, 5, 11, 13, 3, 13]])
def test_noise_has_no_rule(needs: list[int]) -> None:
    assert fit(["a", "b"], [Sample(p, n) for p, n in zip(POINTS, needs, strict=True)]) is None


def test_two_samples_explain_nothing() -> None:
    assert fit(["a", "b"], [Sample(p, p["a"]) for p in POINTS[:2]]) is None
