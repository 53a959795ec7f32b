"""What a profile says of a machine's share: counted operations, the floor under times, occupancy, the A/A spread."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.cuda.ceilings import Ceilings, least_seconds, parse_ceilings
from cudaperf_agent.cuda.occupancy import theoretical_occupancy
from cudaperf_agent.cuda.operations import count_operations
from cudaperf_agent.cuda.spread import UNKNOWN, Spread, SpreadPoint, coverage, make_spread, spread_point
from cudaperf_agent.tasks.parse import load_task

CEILINGS = Ceilings(4e12, 4.2e12, 4.1e12, 8e12, 6e13, 3e13, 4e-6, 1e-5)
L2 = 50 << 20
HOPPER = {
    "threads_per_sm": 2048,
    "blocks_per_sm": 32,
    "registers_per_sm": 65536,
    "shared_per_sm": 233472,
    "shared_reserved": 1024,
}


@pytest.mark.parametrize(
    ("name", "sizes", "total", "double"),
    [
        ("gemm", {"m": 30, "n": 20, "k": 10}, 30 * 20 * (2 * 10 + 3), False),
        ("jacobi2d", {"height": 12, "width": 7, "sweeps": 3}, 3 * 10 * 5 * 4, True),
        ("nbody_forces", {"count": 9}, 9 * 9 * 20, False),
        ("saxpy", {"n": 1000}, 2000, False),
    ],
)
def test_operations_are_those_of_the_loops(
    c_cases: Path, name: str, sizes: dict[str, int], total: int, double: bool
) -> None:
    found = count_operations(load_task(c_cases / f"{name}.c"), sizes)
    assert found is not None
    assert found.total == total
    assert found.double is double


def test_a_triangle_is_counted_by_its_area() -> None:
    task = load_task(
        source="void f(int n, float *x) { for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) x[i] += 1.0f; }"
    )
    found = count_operations(task, {"n": 101})
    assert found is not None
    assert found.total == 101 * 100 / 2


@pytest.mark.parametrize(
    "body",
    [
        "while (x[0] > 1.0f) x[0] *= 0.5f;",
        "for (int i = 0; i < n; i++) { if (x[i] > 1.0f) break; x[i] += 1.0f; }",
        "int m = (int)x[0]; for (int i = 0; i < m && i < n; i++) x[i] += 1.0f;",
    ],
)
def test_loops_that_depend_on_data_are_not_counted(body: str) -> None:
    assert count_operations(load_task(source=f"void f(int n, float *x) {{ {body} }}"), {"n": 10}) is None


def test_the_floor_is_what_the_memory_needs() -> None:
    large = 1 << 30
    assert least_seconds(large, L2, CEILINGS) == pytest.approx((large - L2) / (4.2e12 * 1.1))
    small = 1 << 20
    assert least_seconds(small, L2, CEILINGS) == pytest.approx(2e-6 + small / (8e12 * 1.1))
    assert least_seconds(0, L2, CEILINGS) == 0.0
    # An honest copy at the measured rate lies above it, whatever its size.
    for size in (1 << 10, 1 << 24, 4 * L2 + 1, large):
        assert least_seconds(size, L2, CEILINGS) < 4e-6 + size / 4.1e12


def test_ceilings_are_read_only_if_whole_and_possible() -> None:
    text = json.dumps(asdict(CEILINGS))
    assert parse_ceilings(text) == CEILINGS
    assert parse_ceilings(text[:-10]) is None
    assert parse_ceilings(json.dumps({**asdict(CEILINGS), "copy": 0.0})) is None
    assert parse_ceilings(json.dumps({**asdict(CEILINGS), "f64": float("inf")})) is None


@pytest.mark.parametrize(
    ("block", "registers", "shared", "share", "limit"),
    [
        (256, 32, 0, 1.0, "threads"),
        (256, 64, 0, 0.5, "registers"),
        (32, 16, 0, 0.5, "blocks"),
        (256, 32, 100 << 10, 0.25, "shared memory"),
        (1024, 65, 0, 0.0, ""),
    ],
)
def test_occupancy_follows_the_tightest_limit(
    block: int, registers: int, shared: int, share: float, limit: str
) -> None:
    found = theoretical_occupancy(block, registers, shared, HOPPER)
    if not share:
        assert found is None
        return
    assert found is not None
    assert found.share == pytest.approx(share)
    assert found.limit == limit


def test_no_limits_no_occupancy() -> None:
    assert theoretical_occupancy(256, 32, 0, {}) is None


def processes(count: int, between: float, within: float, seed: int) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [(1e-4 * np.exp(rng.normal(0, between) + rng.normal(0, within, 24))).tolist() for _ in range(count)]


def test_the_spread_between_processes_is_found_under_that_within() -> None:
    found = spread_point(processes(80, 0.03, 0.02, 1))
    assert found is not None
    assert found.deviation == pytest.approx(0.03, rel=0.25)
    calm = spread_point(processes(80, 0.0, 0.02, 2))
    assert calm is not None
    assert calm.deviation < 0.005
    assert spread_point(processes(3, 0.03, 0.02, 3)) is None


def test_with_it_the_interval_covers_as_often_as_it_says() -> None:
    measured = make_spread([processes(60, 0.03, 0.02, 4)])
    fresh = processes(60, 0.03, 0.02, 6)
    assert 0.92 <= coverage(fresh, measured, most=200).share <= 0.985
    assert coverage(fresh, Spread((SpreadPoint(1e-4, 0.0, 60),)), disjoint=True).share < 0.8
    assert coverage(fresh, measured, disjoint=True).pairs == 30


def test_between_measured_lengths_it_is_between() -> None:
    spread = Spread((SpreadPoint(1e-5, 0.04, 20), SpreadPoint(1e-3, 0.01, 20)))
    assert spread.deviation(1e-4) == pytest.approx(0.025)
    assert spread.deviation(1e-7) == 0.04
    assert spread.deviation(1.0) == 0.01
    assert UNKNOWN.deviation(1e-4) > 0
