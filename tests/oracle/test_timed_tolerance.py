"""The check of the budget at the timed size: what it runs in place of kernels, and that it tells the budgets apart."""

from __future__ import annotations

from benchmarks.timed_tolerance import HONEST, judged, table, tasks
from cudaperf_agent.tasks.parse import load_task
from tests.oracle import hand
from tests.oracle.test_device_math import unary

# 1 + tanh cancels where the argument is far below zero.
GELU = """#include <math.h>
/* cudaperf: in x[n] in -6..6; out y[n] */
void apply(int n, const float *x, float *y)
{
    for (int i = 0; i < n; i++) {
        float v = x[i];
        y[i] = 0.5f * v * (1 + tanhf(0.797885f * (v + 0.044715f * v * v * v)));
    }
}
"""


def test_ways_that_are_the_plain_c_are_left_out() -> None:
    ways = {way.name: way.text(hand.SAXPY) for way in HONEST}
    assert [name for name, text in ways.items() if text is None] == [
        "double accumulators",
        "functions, uniform errors",
        "functions, uniform errors, contracted",
        "functions, greatest errors",
    ]
    assert all("cudaperf_direction" in (way.text(unary("exp")) or "") for way in HONEST if way.errors)


async def test_documented_errors_were_too_much_and_are_not_now() -> None:
    line = {"task": "gelu", **await judged(load_task(source=GELU, entry="apply"), 1, 1)}
    ways = line["ways"]
    assert "double accumulators" in ways
    assert len(ways) == len(HONEST)
    assert all(seen["after"] == 0 for seen in ways.values())
    assert ways["functions, greatest errors"]["before"] > 0
    assert ways["contracted"]["before"] == 0
    shown = "\n".join(table([line]))
    assert "| `gelu` | functions, greatest errors |" in shown
    assert "| 1 tasks | 6 in all | |" in shown


async def test_only_tasks_with_functions_if_wanted() -> None:
    wanted = frozenset({"saxpy", "softmax_rows"})
    assert {named.name for named in await tasks(0, wanted)} == wanted
    assert {named.name for named in await tasks(0, wanted, functions=True)} == {"softmax_rows"}
