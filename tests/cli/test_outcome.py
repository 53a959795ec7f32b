"""What is said at the end of a run without a correct candidate: the reason, and a remedy that fits the input."""

from __future__ import annotations

import pytest

from cudaperf_agent.cli.outcome import trouble
from cudaperf_agent.store.records import RunStatus, RunSummary
from graph.results import RunResult


def declined(path: str, why: str) -> RunResult:
    summary = RunSummary("r1", "translate", 0.0, RunStatus.FAILED, "t", path, "d", "variants", "emulator", 1, 5)
    return RunResult("r1", RunStatus.FAILED, f"declined: {why}", None, (), (), None, summary)


@pytest.mark.parametrize(
    ("path", "why", "remedy"),
    [
        ("saxpy.c", "line 4 depends on line 3", "rewrite that part of the C, or"),
        ("net.py", "forward returns a dict", "rewrite that part of the module, or"),
        # A subscript is no script.
        ("saxpy.c", "the subscript of x is not affine", "rewrite that part of the C, or"),
        ("saxpy.c", "the script has no answer for turn 2", "add answers to the script"),
    ],
)
def test_what_is_declined_has_the_remedy_of_its_input(path: str, why: str, remedy: str) -> None:
    told = trouble(declined(path, why), path)
    assert told is not None
    assert (told.message, told.where) == (f"not translated: {why}", path)
    assert (told.hint or "").startswith(remedy)
