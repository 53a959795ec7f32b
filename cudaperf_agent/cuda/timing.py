"""Times of a candidate on contents of one size: secret order, every output checked, two clocks that must agree."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from cudaperf_agent.cuda.timing_process import TimedCall, TimedKind, TimedProcess, TimedProcessEnded
from cudaperf_agent.cuda.verdict import Status, Timing
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Task, Value


@dataclass(frozen=True, slots=True)
class TimingConfig:
    """Numbers of a measurement.

    Attributes:
        samples: Timed calls.
        warmups: Calls before them, the same in every way; the first is reported as ``cold``.
        contents: Most content sets of a task and size.
        fewest_contents: And least, however large one is.
        contents_bytes: Bytes of all content sets together.
        size_bytes: Bytes of all buffers of a call that a timed size should have.
        contents_at_once: Sets whose right outputs are computed at the same time.
        reference_seconds: A size is not made larger once the C takes this long.
        exchanges: Empty exchanges, to know what the parent's clock adds.
        slack: Share by which the two clocks may differ beyond that.
        slack_seconds: And seconds per call (wake-ups of the parent on a busy machine).
        late_calls: Share of the calls in which this process may have been woken later than that.
        other_cpu: Share of the time that other host threads may have been computing.
        deadline: Seconds of the whole process.
        poison: Byte of outputs before each call.
        flush_factor: The L2 is flushed by writing so many times its size.
    """

    samples: int = 24
    warmups: int = 3
    contents: int = 24
    fewest_contents: int = 3
    contents_bytes: int = 192 << 20
    size_bytes: int = 64 << 20
    contents_at_once: int = 3
    reference_seconds: float = 0.5
    exchanges: int = 20
    slack: float = 0.05
    slack_seconds: float = 2e-4
    late_calls: float = 0.25
    other_cpu: float = 0.2
    deadline: float = 120.0
    poison: int = 0x5A
    flush_factor: float = 2.0


TIMING = TimingConfig()


@dataclass(frozen=True, slots=True)
class Contents:
    """Content sets of one size and what each must give."""

    cases: tuple[Case, ...]
    expected: tuple[Expected, ...]

    @property
    def bytes(self) -> int:
        """Of the buffers of one call."""
        return sum(v.nbytes for v in self.cases[0].values.values())


@dataclass(frozen=True, slots=True)
class Timed:
    """A measurement, or why there is none.

    Attributes:
        timing: Raw samples; `None` unless `status` is `CORRECT`.
        status: `WRONG` for a wrong output at the timed size, `UNSTABLE` where the clocks disagree, `CHEAT` for work on
            other host threads, `TIMEOUT`, `CRASH`, `LAUNCH_ERROR`.
        message: One sentence.
        clocks: Sums of both clocks, of the exchange's cost, of other threads' CPU time, and the time of loading.
    """

    timing: Timing | None
    status: Status
    message: str = ""
    clocks: dict[str, float] = field(default_factory=dict)


def time_candidate(
    timer: Path,
    library: Path,
    kind: TimedKind,
    task: Task,
    contents: Contents,
    *,
    config: TimingConfig = TIMING,
    l2_bytes: int = 0,
    wrap: Wrap | None = None,
    env: Mapping[str, str] | None = None,
) -> Timed:
    """Time one candidate in a fresh process. Blocking: run it in a thread, with nothing else on the device.

    Args:
        timer: The built ``timer.cu``.
        library: The candidate with `link.linked_c`.
        kind: ``device`` needs a device-form candidate.
        task: The task.
        contents: What it is called on.
        config: Numbers.
        l2_bytes: Of the device; 0 flushes nothing.
        wrap: The sandbox.
        env: Extra environment variables.
    """
    calls: list[TimedCall] = []
    checker = _Checker(task, contents)
    process = TimedProcess(
        [str(timer), str(library), kind], task, contents.cases, config.deadline, wrap=wrap, env=env or {}
    )
    try:
        with process as running:
            running.stage(poison=config.poison, flush_bytes=int(config.flush_factor * l2_bytes))
            exchanges = [running.exchange() for _ in range(config.exchanges)]
            for content in _secret_order(len(contents.cases), config):
                call = running.call(content)
                problem = checker.problem(call)
                if problem:
                    return Timed(None, Status.WRONG, f"right in the tests, wrong at the timed size: {problem}")
                calls.append(TimedCall(call.content, call.seconds, call.outside, call.other_cpu, None, {}))
    except TimedProcessEnded as error:
        if error.timed_out:
            return Timed(None, Status.TIMEOUT, f"while timed: {error.message}")
        return Timed(None, Status.LAUNCH_ERROR if error.status else Status.CRASH, f"while timed: {error.message}")
    return _result(kind, contents, calls, exchanges, process.load_seconds, config)


def _secret_order(sets: int, config: TimingConfig) -> list[int]:
    """Every set equally often, in an order that nothing in the child can know."""
    rng = secrets.SystemRandom()
    order: list[int] = []
    while len(order) < config.warmups + config.samples:
        turn = list(range(sets))
        rng.shuffle(turn)
        order += turn
    return order[: config.warmups + config.samples]


class _Checker:
    """Checks every output; one that is bitwise what was right before for the same content is right again."""

    def __init__(self, task: Task, contents: Contents) -> None:
        self._task = task
        self._contents = contents
        self._right: dict[int, dict[str, Value]] = {}

    def problem(self, call: TimedCall) -> str | None:
        if call.changed is not None:
            return f"it changes its input `{call.changed}`"
        known = self._right.get(call.content)
        if known is not None and all(_same_bits(known[n], v) for n, v in call.outputs.items()):
            return None
        case, wanted = self._contents.cases[call.content], self._contents.expected[call.content]
        comparison = compare(self._task, case, wanted, call.outputs)
        if comparison.ok:
            self._right[call.content] = call.outputs
            return None
        found = comparison.mismatch
        return f"{found.output}[{found.index}] is {found.got}, expected {found.expected}" if found else "wrong output"


def _same_bits(first: Value, second: Value) -> bool:
    return bool(np.array_equal(first.reshape(-1).view(np.uint8), second.reshape(-1).view(np.uint8)))


def _result(
    kind: TimedKind,
    contents: Contents,
    calls: Sequence[TimedCall],
    exchanges: Sequence[float],
    load_seconds: float,
    config: TimingConfig,
) -> Timed:
    inside, outside = sum(c.seconds for c in calls), sum(c.outside for c in calls)
    cost = len(calls) * median(exchanges)
    # Call by call, and all but the worst quarter: one late wake-up of this process must not decide, and a lie about
    # fewer calls than that does not move a median.
    excess = np.quantile([c.outside - c.seconds * (1 + config.slack) for c in calls], 1 - config.late_calls)
    allowed = float(np.quantile(exchanges, 0.9)) + config.slack_seconds
    other = sum(c.other_cpu for c in calls)
    clocks = {
        "child_seconds": inside,
        "parent_seconds": outside,
        "exchange_seconds": cost,
        "other_threads_cpu_seconds": other,
        "load_seconds": load_seconds,
    }
    if excess > allowed or any(c.seconds > c.outside for c in calls):
        message = f"the clocks disagree: {outside:.6f} s outside, {inside:.6f} s inside, {cost:.6f} s of messages"
        return Timed(None, Status.UNSTABLE, message, clocks)
    if other > config.other_cpu * inside and other > len(calls) * config.slack_seconds:
        return Timed(None, Status.CHEAT, f"other host threads computed for {other:.6f} s meanwhile", clocks)
    sets = len(contents.cases)
    times = -(-len(calls) // sets)
    note = f"{sets} contents" + (f", each up to {times} times" if times > 1 else ", each once")
    samples = tuple(c.seconds for c in calls[config.warmups :])
    cold = calls[0].seconds if config.warmups else None
    return Timed(Timing(kind, contents.cases[0].name, samples, cold, note), Status.CORRECT, "", clocks)
