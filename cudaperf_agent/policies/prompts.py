"""The prompt of a turn: system, contract, task, examples, condensed history, feedback, each within a token budget.

What every turn of a task shares comes first, so that a server's prefix cache serves it. What is dropped first when a
prompt is too long: the examples (last one first), then the sources of older attempts, then the attempts themselves
(oldest first), then the end of the feedback. The contract and the task are never shortened: a task that does not fit
is an error that says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Attempt, Message
from cudaperf_agent.policies.contract import contract_text, system_text, task_text
from cudaperf_agent.tasks.model import Task


@dataclass(frozen=True, slots=True)
class PromptConfig:
    """Form and budgets of a prompt, in estimated tokens.

    Attributes:
        form: ``full``, or ``compact`` for small models: no examples, the best attempt and the last feedback only.
        total: The whole prompt.
        examples: All examples together.
        shown: Most examples that are shown.
        history: Earlier attempts, the best one's source included.
        feedback: The last feedback.
        characters_per_token: Measured on CUDA sources: about 2.2.
    """

    form: Literal["full", "compact"] = "full"
    total: int = 16_000
    examples: int = 5_000
    shown: int = 5
    history: int = 4_000
    feedback: int = 1_500
    characters_per_token: float = 2.2

    @classmethod
    def compact(cls) -> PromptConfig:
        """For a model with a context of some 8,000 tokens."""
        return cls(form="compact", total=3_000, examples=0, history=1_200, feedback=500)


@dataclass(frozen=True, slots=True)
class Example:
    """A worked translation for the prompt; taken from the training split only.

    Attributes:
        c_source: The C.
        cuda_source: A correct candidate.
        speedup: Its measured speedup.
        baseline: What that is over; empty where it is not known.
    """

    c_source: str
    cuda_source: str
    speedup: float
    baseline: str = ""


class ExampleSelector(Protocol):
    """Chooses the examples for a task: the `k` to show, best measured speedup first, none from an evaluation set."""

    def select(self, task: Task, k: int) -> tuple[Example, ...]:
        """At most `k` examples whose loops and accesses are like the task's."""
        ...


def estimate_tokens(text: str, config: PromptConfig | None = None) -> int:
    """Tokens of a text, estimated from its characters."""
    return math.ceil(len(text) / (config or PromptConfig()).characters_per_token)


def build_messages(
    task: Task,
    history: Sequence[Attempt] = (),
    *,
    config: PromptConfig | None = None,
    selector: ExampleSelector | None = None,
) -> tuple[Message, ...]:
    """The messages of the next turn: one of the system, one of the user.

    Args:
        task: What to translate.
        history: Earlier attempts of this trajectory, oldest first, each with the feedback on it.
        config: Form and budgets.
        selector: Chooses worked examples; the compact form shows none.

    Raises:
        UsageError: System, contract and task alone are over the budget.
    """
    config = config or PromptConfig()
    compact = config.form == "compact"
    system = system_text(task, compact=compact)
    language = "python" if task.module else "cuda"
    ask = _ask(bool(history), language)
    fixed = [contract_text(task, compact=compact), task_text(task, compact=compact)]
    left = config.total - estimate_tokens(system + "\n\n".join(fixed) + ask, config) - 8
    if left < 0:
        raise UsageError(
            f"the prompt for {task.name} needs {config.total - left} tokens, {config.total} are allowed",
            where="prompt.max_tokens",
            hint="raise prompt.max_tokens to what the model takes, cut the file down to what the entry needs, "
            "or use --policy variants",
        )
    feedback = _feedback(history, min(config.feedback, left), config)
    left -= estimate_tokens(feedback, config)
    past = _history(history, min(config.history, left), config, language)
    left -= estimate_tokens(past, config)
    examples = selector.select(task, config.shown) if selector and not compact else ()
    shown = _examples(examples, min(config.examples, left), config)
    sections = [*fixed, shown, past, feedback, ask]
    return (Message("system", system), Message("user", "\n\n".join(s.strip() for s in sections if s) + "\n"))


def best_attempt(history: Sequence[Attempt]) -> Attempt | None:
    """The attempt worth building on: correct and fastest, else the one that passed most; the earliest among equals."""

    def worth(attempt: Attempt) -> tuple[bool, float, float, bool]:
        verdict = attempt.verdict
        timing = verdict.timing("device") or verdict.timing("end_to_end")
        speed = -timing.median if timing and timing.samples else -math.inf
        return verdict.correct, speed, verdict.pass_rate, bool(attempt.source)

    return max(history, key=worth, default=None)


def _ask(again: bool, language: str) -> str:
    what = "an improved version of the whole file" if again else "the whole file"
    return f"Answer with {what} in one ```{language} code block."


def _examples(examples: Sequence[Example], budget: int, config: PromptConfig) -> str:
    text = ""
    for number, example in enumerate(examples, 1):
        than = f" as {example.baseline}" if example.baseline else ""
        block = (
            f"## Example {number} ({example.speedup:.1f} times as fast{than})\n"
            f"```c\n{example.c_source.strip()}\n```\nbecomes\n```cuda\n{example.cuda_source.strip()}\n```\n\n"
        )
        if estimate_tokens(text + block, config) > budget:
            break
        text += block
    return f"# Examples\n{text}" if text else ""


def _history(history: Sequence[Attempt], budget: int, config: PromptConfig, language: str) -> str:
    best = best_attempt(history)
    if best is None:
        return ""
    title = "# Best attempt so far\n" if config.form == "compact" else "# Attempts so far\n"
    rows = [] if config.form == "compact" else [_row(a, best) for a in history]
    source = f"```{language}\n{best.source.strip()}\n```" if best.source.strip() else ""
    heading = f"Attempt {best.turn + 1}, the best so far:" if rows and source else ""
    latest = history[-1]
    extra = ""
    if config.form == "full" and latest is not best and latest.source.strip():
        extra = f"Attempt {latest.turn + 1}, the last one:\n```{language}\n{latest.source.strip()}\n```"
    # From the fullest to the barest: the first that fits.
    for parts in ([*rows, heading, source, extra], [*rows, heading, source], [*rows[-2:], heading, source], rows[-2:]):
        text = title + "\n".join(p for p in parts if p)
        if any(parts) and estimate_tokens(text, config) <= budget:
            return text
    return ""


def _row(attempt: Attempt, best: Attempt) -> str:
    verdict = attempt.verdict
    cases = f", {verdict.passed} of {verdict.total} cases" if verdict.total else ""
    speed = next((f", {s.value:.2f} times {s.baseline}" for s in verdict.speedups), "") if verdict.measured else ""
    mark = " (best)" if attempt is best else ""
    return f"- attempt {attempt.turn + 1}: {verdict.status.value}{cases}{speed}{mark}"


def _feedback(history: Sequence[Attempt], budget: int, config: PromptConfig) -> str:
    if not history or not history[-1].feedback.strip():
        return ""
    title = f"# Feedback on attempt {history[-1].turn + 1}\n"
    room = int(budget * config.characters_per_token) - len(title) - 2
    text = history[-1].feedback.strip()
    if room < 80:
        return ""
    if len(text) > room:
        # Cut at a line's end: half a sentence misleads.
        text = text[:room].rpartition("\n")[0] or text[:room]
        text += "\n…"
    return title + text
