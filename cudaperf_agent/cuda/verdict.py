"""The verdict on a candidate: status, evidence and raw samples, as plain values that survive JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, get_args

Trust = Literal["suspicious", "own"]
"""How far a candidate is believed: ``own`` is for what our own generator made, and looks for mistakes only."""


class Status(StrEnum):
    """How a candidate ended. Only `CORRECT` is a pass."""

    NO_CODE = "no_code"
    COMPILE_ERROR = "compile_error"
    LAUNCH_ERROR = "launch_error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    WRONG = "wrong"
    MEMORY_ERROR = "memory_error"
    UNSTABLE = "unstable"
    UNSUPPORTED = "unsupported"
    CHEAT = "cheat"
    CORRECT = "correct"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of a compiler about the candidate. Lines are of the candidate as it was handed in."""

    severity: str
    message: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One finding of the emulator's checker (or of a GPU memory checker).

    Attributes:
        kind: ``oob-read``, ``oob-write``, ``uninit-read``, ``race``, ``barrier-divergence``, ``deadlock``,
            ``launch-config``, ``host-pointer-in-kernel``, ``device-pointer-on-host``, ``null-pointer``, ``leak``, …
        message: One sentence with kernel, block, thread and allocation.
        line: 1-based line of the candidate.
        count: How often it was seen.
    """

    kind: str
    message: str
    line: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class FailedCase:
    """The first failing case, small enough to read.

    Attributes:
        name: The case's name.
        inputs: Readable inputs by parameter name (long buffers cut).
        output: Which output, ``""`` if it never got that far.
        index: Flat element index.
        expected, got: As text.
        error, allowed: Absolute error and its allowance, where they make sense.
        message: One sentence.
    """

    name: str
    inputs: dict[str, str]
    message: str
    output: str = ""
    index: int | None = None
    expected: str = ""
    got: str = ""
    error: float | None = None
    allowed: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Raw samples of one kind of time of one size.

    Attributes:
        kind: ``device``, ``end_to_end``, ``kernels``, ``resident`` or ``reference`` / ``naive`` of a baseline.
        case: Name of the timed case.
        samples: Seconds, in the order taken.
        cold: Seconds of the first call in its process.
        note: What a reader must know (e.g. share of copies).
        processes: Fresh processes that the samples are from, in equal parts.
    """

    kind: str
    case: str
    samples: tuple[float, ...]
    cold: float | None = None
    note: str = ""
    processes: int = 1

    @property
    def median(self) -> float:
        """Median seconds."""
        ordered = sorted(self.samples)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

    @property
    def cv(self) -> float:
        """Standard deviation over mean (0 for fewer than two samples)."""
        if len(self.samples) < 2:
            return 0.0
        mean = sum(self.samples) / len(self.samples)
        var = sum((s - mean) ** 2 for s in self.samples) / (len(self.samples) - 1)
        return float(var**0.5 / mean) if mean > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Speedup:
    """Reference time over candidate time, with its 95 % interval and the baseline's name."""

    baseline: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one candidate after verification.

    Attributes:
        status: How it ended.
        message: One sentence for a person and for the next turn.
        form: ``device``, ``whole`` or ``program``; ``""`` if it never got that far.
        diagnostics: Compiler messages.
        passed, total: Cases passed, cases run.
        worst_error: Largest error ÷ allowance over passed cases.
        failure: First failing case.
        reports: Findings of the memory and race checker.
        backend: ``emulator``, ``gpu`` or ``""``.
        device: Name of the device it ran on.
        measured: Whether `timings` hold anything; without a GPU false, and nothing may print a speedup.
        timings: Raw samples.
        speedups: Against each baseline.
        profile: Shares, bandwidths, registers and so on, by name.
        digests: SHA-256 of ``source``, ``flags``, ``inputs``, ``task``.
        versions: Of nvcc, driver, emulator, g++, this package.
        clocks: Recorded clocks and throttling, GPU only.
        seconds: Wall time spent per phase (``compile``, ``test``, ``time``).
        trust: How it was tested and timed, whatever was asked for: without a GPU always ``suspicious``.
        transient: A limit ended a compiler, so another try may go otherwise: not to be kept for the same source.
    """

    status: Status
    message: str = ""
    form: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    passed: int = 0
    total: int = 0
    worst_error: float = 0.0
    failure: FailedCase | None = None
    reports: tuple[Report, ...] = ()
    backend: str = ""
    device: str = ""
    measured: bool = False
    timings: tuple[Timing, ...] = ()
    speedups: tuple[Speedup, ...] = ()
    profile: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    transient: bool = False
    trust: Trust = "suspicious"

    @property
    def correct(self) -> bool:
        """Whether the candidate passed."""
        return self.status is Status.CORRECT

    @property
    def untested(self) -> bool:
        """Whether it compiles and no case was run yet: what compiling alone says of a good candidate."""
        return self.correct and not self.total

    @property
    def pass_rate(self) -> float:
        """Share of cases passed, 0 if none ran."""
        return self.passed / self.total if self.total else 0.0

    def timing(self, kind: str) -> Timing | None:
        """The samples of one kind, `None` if there are none."""
        return next((t for t in self.timings if t.kind == kind), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Verdict:
        """The inverse of `to_dict`."""
        plain = dict(data)
        plain["status"] = Status(plain["status"])
        if plain.get("trust", "suspicious") not in get_args(Trust):
            raise ValueError(f"trust is {plain['trust']!r}")
        plain["diagnostics"] = tuple(Diagnostic(**d) for d in plain.get("diagnostics", ()))
        plain["reports"] = tuple(Report(**r) for r in plain.get("reports", ()))
        plain["failure"] = FailedCase(**plain["failure"]) if plain.get("failure") else None
        plain["timings"] = tuple(Timing(**{**t, "samples": tuple(t["samples"])}) for t in plain.get("timings", ()))
        plain["speedups"] = tuple(Speedup(**s) for s in plain.get("speedups", ()))
        return cls(**plain)
