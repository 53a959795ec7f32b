"""Times of a candidate on contents of one size: secret order, every output checked, two clocks that must agree."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np

from cudaperf_agent.cuda.clocks import CLOCKS, ClockRule, batch_agreement, call_agreement, without_waiting
from cudaperf_agent.cuda.gpu import find_gpu
from cudaperf_agent.cuda.operations import Operations, count_operations
from cudaperf_agent.cuda.timing_process import TimedCall, TimedKind, TimedProcess, TimedProcessEnded
from cudaperf_agent.cuda.trace import Trace, make_trace
from cudaperf_agent.cuda.verdict import Status, Timing
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.execution.witness import Witness
from cudaperf_agent.tasks.bounds import Bounds, surely_right
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Task, Value


@dataclass(frozen=True, slots=True)
class TimingConfig:
    """Numbers of a measurement.

    Attributes:
        samples: Timed calls.
        whole_samples: Timed end-to-end calls where device times decide; as many as of the C, to which they are held.
        warmups: Calls before them, the same in every way; the first is reported as ``cold``.
        contents: Most content sets of a task and size.
        fewest_contents: And least, however large one is.
        contents_bytes: Bytes of all content sets together.
        size_bytes: Bytes of all buffers of a call that a timed size should have.
        contents_at_once: Sets whose right outputs are computed at the same time.
        reference_seconds: A size is not made larger once the C takes this long.
        exchanges: Empty exchanges, to know what the parent's clock adds.
        clocks: When the two clocks agree.
        null_calls: Make an empty call of a process of ours beside each call, to compare the clocks over the batch.
        slack_seconds: Seconds per call that other host threads may have been computing, whatever their share.
        other_cpu: Share of the time that other host threads may have been computing.
        deadline: Seconds of the whole process.
        processes: Fresh processes per kind of time; five in evaluation.
        trace_calls, trace_seconds: Calls of the traced run, and its time.
        poison: Byte of outputs before each call.
        flush_factor: The L2 is flushed by writing so many times its size.
    """

    samples: int = 24
    whole_samples: int = 9
    warmups: int = 3
    contents: int = 24
    fewest_contents: int = 3
    contents_bytes: int = 192 << 20
    size_bytes: int = 64 << 20
    contents_at_once: int = 3
    reference_seconds: float = 0.5
    exchanges: int = 20
    clocks: ClockRule = CLOCKS
    null_calls: bool = True
    slack_seconds: float = 2e-4
    other_cpu: float = 0.2
    deadline: float = 120.0
    processes: int = 1
    trace_calls: int = 4
    trace_seconds: float = 30.0
    poison: int = 0x5A
    flush_factor: float = 2.0


TIMING = TimingConfig()


@dataclass(frozen=True, slots=True)
class Contents:
    """Content sets of one size, what each must give, and that as bounds, for a quick look."""

    cases: tuple[Case, ...]
    expected: tuple[Expected, ...]
    bounds: tuple[Bounds, ...] = ()

    @property
    def bytes(self) -> int:
        """Of the buffers of one call."""
        return sum(v.nbytes for v in self.cases[0].values.values())

    def moved_bytes(self, task: Task) -> int:
        """What a call has to read and to write, each buffer once; one that is read and written counts twice."""
        values = self.cases[0].values
        read = sum(values[p.name].nbytes for p in task.buffers if p.read)
        return read + sum(values[p.name].nbytes for p in task.buffers if p.written)

    def written_bytes(self, task: Task) -> int:
        """What a call has to write: all of an output, and what changes of a buffer that is read, too."""
        total = 0
        for parameter in task.buffers:
            if not parameter.written:
                continue
            before, after = self.cases[0].values[parameter.name], self.expected[0].output(parameter.name).value
            if parameter.read and before.dtype == after.dtype and before.size == after.size:
                changed = before.reshape(-1) != after.reshape(-1)
                total += int(np.count_nonzero(changed)) * before.dtype.itemsize
            else:
                total += before.nbytes
        return total

    def operations(self, task: Task) -> Operations | None:
        """Floating-point operations of the C in one call."""
        values = self.cases[0].values
        scalars = [p for p in task.inputs() if not p.pointer and values[p.name].dtype.kind in "iu"]
        return count_operations(task, {p.name: int(values[p.name]) for p in scalars})


@dataclass(frozen=True, slots=True)
class Timed:
    """A measurement, or why there is none.

    Attributes:
        timing: Raw samples; `None` unless `status` is `CORRECT`.
        status: `WRONG` for a wrong output at the timed size, `UNSTABLE` where the clocks disagree, `CHEAT` for work on
            other host threads, `TIMEOUT`, `CRASH`, `LAUNCH_ERROR`.
        message: One sentence.
        clocks: Sums of both clocks, of the exchange's cost, of other threads' CPU time, the time of loading, and what
            `clocks` found, over the batch and call by call; `attempts` where it took two.
    """

    timing: Timing | None
    status: Status
    message: str = ""
    clocks: dict[str, float] = field(default_factory=dict)


class TimedRun:
    """One candidate in a fresh process: staged while others are staged too, then timed with nothing else on the device.

    Blocking: `stage`, `calls` and `close` belong into a thread.

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
        tracer: Records what the device does, for `traced`; nothing is timed with it.
    """

    def __init__(
        self,
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
        tracer: Path | None = None,
    ) -> None:
        self.kind = kind
        self._contents = contents
        self._config = config
        self._flush_bytes = int(config.flush_factor * l2_bytes)
        self.checker = Checker(task, contents)
        self._process = TimedProcess(
            [str(timer), str(library), kind, *([str(tracer)] if tracer else [])],
            task,
            contents.cases,
            config.deadline,
            wrap=wrap,
            env=env or {},
        )
        self._witness = Witness() if config.null_calls and tracer is None else None
        self._ended: Timed | None = None
        self.stage_seconds = 0.0
        self.call_seconds = 0.0

    def stage(self) -> None:
        """Start the process, load the library, send the contents."""
        started = time.perf_counter()
        try:
            self._process.__enter__()
            self._process.stage(poison=self._config.poison, flush_bytes=self._flush_bytes)
            if self._witness is not None:
                self._witness.__enter__()
        except TimedProcessEnded as error:
            self._ended = _failed(error)
        self.stage_seconds = time.perf_counter() - started

    def calls(self) -> Timed:
        """All timed calls; what they gave is right only if `checker.checked` says so, too."""
        if self._ended is not None:
            return self._ended
        started = time.perf_counter()
        try:
            return self._timed()
        except TimedProcessEnded as error:
            return _failed(error)
        finally:
            self.call_seconds = time.perf_counter() - started

    def with_phases(self, timed: Timed) -> Timed:
        """With the seconds of staging and of all calls, messages and checks included, among its clocks."""
        phases = {"stage_seconds": self.stage_seconds, "calls_seconds": self.call_seconds}
        return replace(timed, clocks={**timed.clocks, **phases})

    def reload(self, library: Path) -> None:
        """Another candidate in the same process: only for code that is trusted as our own."""
        self.checker = self.checker.anew()
        try:
            self._process.extend(self._config.deadline)
            self._process.load(library)
        except TimedProcessEnded as error:
            self._ended = _failed(error)

    def traced(self) -> Trace | None:
        """A few calls with the tracer, on the first contents; `None` where it did not get that far."""
        if self._ended is not None:
            return None
        texts: list[str] = []
        try:
            self._process.extend(self._config.trace_seconds)
            for turn in range(self._config.trace_calls):
                self._process.call(turn % len(self._contents.cases))
                texts.append(self._process.trace())
        except TimedProcessEnded:
            pass  # what came before explains as much
        gpu = find_gpu()
        return make_trace(texts, gpu.attributes if gpu is not None else {})

    def close(self) -> None:
        """End the processes."""
        self._process.__exit__(None, None, None)
        if self._witness is not None:
            self._witness.__exit__(None, None, None)

    def _timed(self) -> Timed:
        config, calls, null_calls = self._config, list[TimedCall](), list[float]()
        self._process.extend(config.deadline)
        exchanges = [self._process.exchange() for _ in range(config.exchanges)]
        for content in _secret_order(len(self._contents.cases), config):
            if self._witness is not None:
                length = calls[-1].seconds if calls else 0.0
                null_calls.append(self._witness.null_call(min(max(length, 0.0), config.clocks.null_seconds)))
            call = self._process.call(content)
            problem = self.checker.problem(call)
            if problem:
                return _wrong(problem)
            calls.append(TimedCall(call.content, call.seconds, call.outside, call.late, call.other_cpu, None, {}))
        return _result(self.kind, self._contents, calls, exchanges, null_calls, self._process.load_seconds, config)


def _wrong(problem: str) -> Timed:
    return Timed(None, Status.WRONG, f"right in the tests, wrong at the timed size: {problem}")


def _failed(error: TimedProcessEnded) -> Timed:
    if error.timed_out:
        return Timed(None, Status.TIMEOUT, f"while timed: {error.message}")
    return Timed(None, Status.LAUNCH_ERROR if error.status else Status.CRASH, f"while timed: {error.message}")


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
    """Time one candidate in a fresh process. Blocking: run it in a thread, with nothing else on the device."""
    run = TimedRun(timer, library, kind, task, contents, config=config, l2_bytes=l2_bytes, wrap=wrap, env=env)
    try:
        run.stage()
        return run.checker.checked(run.calls())
    finally:
        run.close()


def _secret_order(sets: int, config: TimingConfig) -> list[int]:
    """Every set equally often, in an order that nothing in the child can know."""
    rng = secrets.SystemRandom()
    order: list[int] = []
    while len(order) < config.warmups + config.samples:
        turn = list(range(sets))
        rng.shuffle(turn)
        order += turn
    return order[: config.warmups + config.samples]


class Checker:
    """Checks every output. What is bitwise as before on the same content needs no second look, and the first look,
    which takes longer than the call, waits until the device is free for others."""

    def __init__(self, task: Task, contents: Contents) -> None:
        self._task = task
        self._contents = contents
        self._first: dict[int, dict[str, Value]] = {}

    def problem(self, call: TimedCall) -> str | None:
        """What is wrong with a call as far as can be told at once; outputs seen for the first time are kept."""
        if call.changed is not None:
            return f"it changes its input `{call.changed}`"
        known = self._first.get(call.content)
        if known is None:
            self._first[call.content] = {name: value.copy() for name, value in call.outputs.items()}
            return None
        if all(_same_bits(known[n], v) for n, v in call.outputs.items()):
            return None
        return self._wrong(call.content, {name: value.copy() for name, value in call.outputs.items()})

    def checked(self, timed: Timed) -> Timed:
        """`timed`, or what is wrong with an output that was kept. Needs neither the device nor the process."""
        if timed.timing is None:
            return timed
        for content, outputs in sorted(self._first.items()):
            problem = self._wrong(content, outputs)
            if problem:
                return _wrong(problem)
        return timed

    def anew(self) -> Checker:
        """One for another candidate."""
        return Checker(self._task, self._contents)

    def _wrong(self, content: int, outputs: dict[str, Value]) -> str | None:
        if self._contents.bounds and surely_right(self._contents.bounds[content], outputs):
            return None
        case, wanted = self._contents.cases[content], self._contents.expected[content]
        comparison = compare(self._task, case, wanted, outputs)
        if comparison.ok:
            return None
        found = comparison.mismatch
        return f"{found.output}[{found.index}] is {found.got}, expected {found.expected}" if found else "wrong output"


def _same_bits(first: Value, second: Value) -> bool:
    # By way of bytes: a struct's size need not be a multiple of a word's.
    one, other = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (first, second))
    word = np.uint64 if one.size % 8 == 0 and one.size == other.size else np.uint8
    return bool(np.array_equal(one.view(word), other.view(word)))


def _result(
    kind: TimedKind,
    contents: Contents,
    calls: Sequence[TimedCall],
    exchanges: Sequence[float],
    null_calls: Sequence[float],
    load_seconds: float,
    config: TimingConfig,
) -> Timed:
    child, parent, late = [c.seconds for c in calls], [c.outside for c in calls], [c.late for c in calls]
    inside, outside = sum(child), sum(parent)
    cost = len(calls) * median(exchanges)
    checks = [call_agreement(child, without_waiting(child, parent, late), exchanges, config.clocks)]
    if null_calls:
        checks.append(batch_agreement(child, parent, late, null_calls, config.clocks))
    other = sum(c.other_cpu for c in calls)
    clocks = {
        **{name: value for check in checks for name, value in check.figures.items()},
        "child_seconds": inside,
        "parent_seconds": outside,
        "exchange_seconds": cost,
        "waiting_seconds": sum(late),
        "other_threads_cpu_seconds": other,
        "load_seconds": load_seconds,
    }
    if other > config.other_cpu * inside and other > len(calls) * config.slack_seconds:
        return Timed(None, Status.CHEAT, f"other host threads computed for {other:.6f} s meanwhile", clocks)
    if not all(check.agree for check in checks):
        message = f"the clocks disagree: {outside:.6f} s outside, {inside:.6f} s inside, {cost:.6f} s of messages"
        return Timed(None, Status.UNSTABLE, message, clocks)
    sets = len(contents.cases)
    times = -(-len(calls) // sets)
    note = f"{sets} contents" + (f", each up to {times} times" if times > 1 else ", each once")
    samples = tuple(c.seconds for c in calls[config.warmups :])
    cold = calls[0].seconds if config.warmups else None
    return Timed(Timing(kind, contents.cases[0].name, samples, cold, note), Status.CORRECT, "", clocks)
