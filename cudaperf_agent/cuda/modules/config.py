"""Numbers of the verification of PyTorch candidates."""

from __future__ import annotations

from dataclasses import dataclass

from cudaperf_agent.cuda.modules.waiting import WAITING, WaitingConfig
from cudaperf_agent.execution.child import Limits

_GIB = 1 << 30
REFERENCE_LIMITS = Limits(seconds=120.0, memory=16 * _GIB, file_bytes=8 * _GIB)
EMULATED_LIMITS = Limits(seconds=90.0, memory=4 * _GIB, file_bytes=_GIB)
GPU_LIMITS = Limits(seconds=240.0, memory=32 * _GIB, file_bytes=8 * _GIB)


@dataclass(frozen=True, slots=True)
class ModuleConfig:
    """How modules and candidates are run, and how large the cases are.

    Attributes:
        python: Interpreter that has torch; this one where `None`.
        device: What candidates run on where there is a GPU; ``cpu`` only to try this out.
        reference: Limits of a run of the module itself.
        emulated: Limits of a run of a candidate on the emulator, imports of torch included.
        on_gpu: And on the GPU, where ``load_inline`` may compile for a minute.
        start_seconds: Time that importing torch may take besides those limits.
        probe: Size to which dimensions are brought down before it is asked which of them may change.
        elements: Elements of all inputs of a case on the emulator, at most.
        operations: Multiplications and outputs of a case on the emulator, at most (by torch's own count).
        largest: Largest value of a changeable dimension on the emulator.
        state_elements: Elements of the state of a module that the emulator is still asked to run.
        gpu_elements: Elements of all inputs of a case on a GPU, at most.
        moves: Runs with inputs moved by one unit in the last place.
        timed: Calls that are timed, of each of the candidate and its baselines.
        warmups: Calls before them, with contents of their own too.
        watched: Calls of a candidate between them, at random places, not timed but watched for operators of torch.
        compiled: Time the module under ``torch.compile`` too.
        fewest_contents: Different contents of the timed calls' inputs, however large they are …
        contents_bytes: … and right outputs of all contents together, bytes, at most.
        exchanges: Empty exchanges, to know what the parent's clock adds.
        slack: Share by which the two clocks may differ beyond that.
        slack_seconds: And seconds per call.
        late_calls: Share of the calls in which this process may have been woken late.
        other_cpu: Share of the time that other host threads may have been computing.
        waiting: Numbers of the processes that wait for candidates on a GPU.
    """

    python: str | None = None
    device: str = "cuda:0"
    reference: Limits = REFERENCE_LIMITS
    emulated: Limits = EMULATED_LIMITS
    on_gpu: Limits = GPU_LIMITS
    start_seconds: float = 60.0
    probe: int = 8
    elements: int = 16_000
    operations: int = 1_500_000
    largest: int = 300
    state_elements: int = 4_000_000
    gpu_elements: int = 1 << 24
    moves: int = 2
    timed: int = 24
    warmups: int = 5
    watched: int = 3
    compiled: bool = True
    fewest_contents: int = 4
    contents_bytes: int = _GIB
    exchanges: int = 20
    slack: float = 0.05
    slack_seconds: float = 2e-4
    late_calls: float = 0.25
    other_cpu: float = 0.2
    waiting: WaitingConfig = WAITING


MODULES = ModuleConfig()
