"""The prompts of all handed cases, pinned: ``python tests/policies/test_prompt_goldens.py`` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from saxpy_task import saxpy

from cudaperf_agent.cuda.verdict import Diagnostic, FailedCase, Report, Status, Verdict
from cudaperf_agent.policies.base import Attempt, Message
from cudaperf_agent.policies.feedback import build_feedback
from cudaperf_agent.policies.prompts import PromptConfig, build_messages, estimate_tokens
from cudaperf_agent.tasks.parse import load_task

CASES = Path(__file__).parents[1] / "cases" / "c"
GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(p.stem for p in CASES.glob("*.c"))
CONFIGS = {"full": PromptConfig(), "compact": PromptConfig.compact()}


def rendered(messages: tuple[Message, ...]) -> str:
    return "".join(f"[{m.role}]\n{m.content.rstrip()}\n" for m in messages)


def first_turn(name: str, form: str) -> str:
    task = load_task(Path(f"{name}.c"), source=(CASES / f"{name}.c").read_text())
    return rendered(build_messages(task, config=CONFIGS[form]))


def third_turn(form: str) -> str:
    first = Verdict(
        Status.COMPILE_ERROR, "1 error", diagnostics=(Diagnostic("error", 'identifier "idx" is undefined', 4, 9),)
    )
    failure = FailedCase(
        "n=257 a=0.5",
        {"n": "257", "a": "0.5", "x": "[1, 2, 3, … 257 in all]"},
        "y differs",
        "y",
        256,
        "1.25",
        "0",
        1.25,
        1e-6,
    )
    report = Report("oob-read", "kernel saxpy_kernel reads 4 bytes past the end of x", 5, 3)
    second = Verdict(Status.MEMORY_ERROR, "reads out of bounds", "device", (), 3, 9, 0.0, failure, (report,))
    hints = ({"message": "coal: stride n reads one element per transaction", "line": 5},)
    history = [
        Attempt(0, "__global__ void saxpy_kernel() { idx; }\n", first, build_feedback(first)),
        Attempt(
            1,
            "__global__ void saxpy_kernel() { }\n",
            second,
            build_feedback(second, features={"coal": -0.5}, hints=hints),
        ),
    ]
    return rendered(build_messages(saxpy(), history, config=CONFIGS[form]))


def golden(name: str, form: str) -> Path:
    return GOLDEN / f"{name}.{form}.txt"


@pytest.mark.parametrize("form", sorted(CONFIGS))
@pytest.mark.parametrize("name", NAMES)
def test_first_turn(name: str, form: str) -> None:
    assert first_turn(name, form) == golden(name, form).read_text()


@pytest.mark.parametrize("form", sorted(CONFIGS))
def test_third_turn(form: str) -> None:
    assert third_turn(form) == golden("third_turn", form).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_case_fits(name: str) -> None:
    # With room for history and feedback, which may fill what is left.
    assert estimate_tokens(first_turn(name, "full")) <= 4_000
    assert estimate_tokens(first_turn(name, "compact")) <= 2_000


def test_no_golden_file_is_left_over() -> None:
    wanted = {golden(name, form).name for name in [*NAMES, "third_turn"] for form in CONFIGS}
    assert {p.name for p in GOLDEN.iterdir()} == wanted


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for form in CONFIGS:
        golden("third_turn", form).write_text(third_turn(form))
        for name in NAMES:
            golden(name, form).write_text(first_turn(name, form))
