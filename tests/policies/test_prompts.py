"""The prompt holds what a turn needs, within its budget; what is dropped goes in the documented order."""

from __future__ import annotations

import pytest
from saxpy_task import saxpy

from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Attempt, Message
from cudaperf_agent.policies.prompts import Example, PromptConfig, best_attempt, build_messages, estimate_tokens
from cudaperf_agent.tasks.model import Task

TASK = saxpy()
SIGNATURE = 'extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)'
WRONG = Attempt(0, "// first\n__global__ void k() {}\n", Verdict(Status.WRONG, passed=1, total=4), "y[3] is wrong\n")
RIGHT = Attempt(1, "// second\n__global__ void k() {}\n", Verdict(Status.CORRECT, passed=4, total=4), "go on\n")
BROKEN = Attempt(2, "// third\n__global__ void k() {\n", Verdict(Status.COMPILE_ERROR), "line 3: error\n")
EXAMPLES = [Example(f"void f{i}(void) {{}}", f"// example {i}", 9.0 - i) for i in range(5)]


class Chosen:
    """Selects the examples that it was made with."""

    def __init__(self, examples: list[Example]) -> None:
        self._examples = examples

    def select(self, task: Task, k: int) -> tuple[Example, ...]:
        assert task is TASK
        return tuple(self._examples[:k])


def tokens(messages: tuple[Message, ...]) -> int:
    return sum(estimate_tokens(m.content) for m in messages)


@pytest.mark.parametrize("config", [PromptConfig(), PromptConfig.compact()])
def test_the_first_turn_holds_contract_and_task(config: PromptConfig) -> None:
    system, user = build_messages(TASK, config=config)
    assert (system.role, user.role) == ("system", "user")
    assert SIGNATURE in user.content
    assert TASK.source.strip() in user.content
    assert "`x`: read only, n elements of float" in user.content
    assert "`y`: read and written" in user.content
    assert "`n`: int, at least 0" in user.content
    assert "Attempts" not in user.content
    assert "Feedback" not in user.content


def test_a_later_turn_holds_the_best_attempt_the_last_one_and_its_feedback() -> None:
    _, user = build_messages(TASK, [WRONG, RIGHT, BROKEN])
    text = user.content
    assert "- attempt 1: wrong, 1 of 4 cases" in text
    assert "- attempt 2: correct, 4 of 4 cases (best)" in text
    assert "// first" not in text
    assert "// second" in text
    assert "// third" in text
    assert "# Feedback on attempt 3\nline 3: error" in text


def test_the_compact_form_holds_only_the_best_attempt_and_the_last_feedback() -> None:
    _, user = build_messages(TASK, [WRONG, RIGHT, BROKEN], config=PromptConfig.compact(), selector=Chosen(EXAMPLES))
    assert "// second" in user.content
    assert "// third" not in user.content
    assert "example 0" not in user.content
    assert "line 3: error" in user.content


def test_what_is_shared_between_turns_comes_first() -> None:
    first = build_messages(TASK)[1].content
    later = build_messages(TASK, [WRONG])[1].content
    shared = first[: first.index("Answer with")]
    assert later.startswith(shared)


def test_examples_are_in_the_prompt_in_their_order() -> None:
    text = build_messages(TASK, selector=Chosen(EXAMPLES))[1].content
    places = [text.index(f"// example {i}") for i in range(5)]
    assert places == sorted(places)


def test_examples_go_first_then_older_sources_then_feedback() -> None:
    history = [WRONG, RIGHT, BROKEN]
    full = tokens(build_messages(TASK, history, selector=Chosen(EXAMPLES)))
    gone: list[str] = []
    marks = {
        "last example": "// example 4",
        "first example": "// example 0",
        "last source": "// third",
        "best": "// second",
    }
    for total in range(full, 500, -10):
        try:
            text = build_messages(TASK, history, config=PromptConfig(total=total), selector=Chosen(EXAMPLES))[1].content
        except UsageError:
            break
        assert SIGNATURE in text
        assert TASK.source.strip() in text
        gone += [name for name, mark in marks.items() if mark not in text and name not in gone]
    assert gone == list(marks)


@pytest.mark.parametrize("config", [PromptConfig(), PromptConfig.compact(), PromptConfig(total=1200)])
def test_no_prompt_is_over_its_budget(config: PromptConfig) -> None:
    long = Attempt(3, "// x\n" * 5000, Verdict(Status.WRONG, passed=3, total=4), "- a finding\n" * 3000)
    examples = [Example("c" * 3000, "d" * 3000, 2.0)] * 9
    messages = build_messages(TASK, [WRONG, RIGHT, long], config=config, selector=Chosen(examples))
    assert tokens(messages) <= config.total
    assert "a finding\n…" in messages[1].content


def test_a_task_that_cannot_fit_is_an_error_with_a_remedy() -> None:
    task = saxpy(source="/* long */\n" * 5000)
    with pytest.raises(UsageError, match="tokens") as caught:
        build_messages(task)
    assert "prompt.max_tokens" in str(caught.value)


def test_a_return_value_and_program_mode_have_words_of_their_own() -> None:
    returning = saxpy(returns=TASK.parameters[0].type)
    assert "int *result, cudaStream_t stream" in build_messages(returning)[1].content
    program = build_messages(saxpy(mode="program", name="main", parameters=()))[1].content
    assert "standard input" in program
    assert "_device" not in program


def test_the_best_attempt_is_correct_then_fast_then_early() -> None:
    def timed(turn: int, seconds: float) -> Attempt:
        times = (Timing("device", "n=9", (seconds,)),)
        return Attempt(
            turn, "s", Verdict(Status.CORRECT, measured=True, timings=times, speedups=(Speedup("C", 2, 1, 3),))
        )

    assert best_attempt([]) is None
    assert best_attempt([WRONG, BROKEN]) is WRONG
    assert best_attempt([WRONG, RIGHT, Attempt(3, "x", RIGHT.verdict)]) is RIGHT
    slow, fast = timed(0, 2e-3), timed(1, 1e-3)
    assert best_attempt([slow, fast, WRONG]) is fast
