"""What happens around steps: the log, the time's shares, the deadline, and the adapter that is kept for use."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from training.grpo.metrics import time_metrics
from training.grpo.step_time import StepMeter

_SPARE = 1.15  # the next step may take so many times the longest one so far

Record = Callable[[dict[str, float]], None]


class StepLog(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Writes every step's numbers as one JSON line and says the main ones.

    Args:
        path: ``metrics.jsonl``; lines are added.
        meter: Where the time goes.
        record: Adds numbers to the step's log.
        say: Progress, one sentence.
    """

    def __init__(self, path: Path, meter: StepMeter, record: Record, say: Callable[[str], None]) -> None:
        self._path = path
        self._meter = meter
        self._record = record
        self._say = say
        self._started = time.monotonic()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A resumed run's log has no steps that are done again."""
        if state.is_world_process_zero:
            for path in (self._path, *self._path.parent.glob("rows*.jsonl")):
                cut_log(path, state.global_step)
        self._meter.take()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """The step's time is known now."""
        self._record(time_metrics(self._meter.take()))

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        """One line, flushed."""
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        line = {"step": state.global_step, "elapsed": time.monotonic() - self._started, **_finite(logs)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        first = line.get("correct@turn1")
        self._say(
            f"step {state.global_step}/{state.max_steps}: reward {_short(line.get('reward'))}, "
            f"correct at turn 1 {_short(first)}, compiles {_short(line.get('compile_rate'))}, "
            f"skipped groups {_short(line.get('zero_variance_groups'))}, {_short(line.get('time/step_seconds'))} s "
            f"(generating {_short(line.get('time/generating'))}, verifying {_short(line.get('time/verifying'))}, "
            f"timing {_short(line.get('time/timing'))}, learning {_short(line.get('time/learning'))})"
        )


class Deadline(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Stops after the last step that fits into the time, with a checkpoint; the last planned step has one too.

    Args:
        until: `time.monotonic` at which the run must have ended; `None` for no limit.
    """

    def __init__(self, until: float | None) -> None:
        self._until = until
        self._longest = 0.0
        self._last = time.monotonic()
        self.reached = False

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A step begins."""
        self._last = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Is there time for another one?"""
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last)
        late = self._until is not None and now + _SPARE * self._longest > self._until
        # Every process must come to the same answer, or they would wait for each other for ever.
        self.reached = any(gather_object([late]))
        if self.reached:
            control.should_training_stop = True
        if self.reached or state.global_step >= state.max_steps:
            control.should_save = True


class KeptAdapter(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Keeps the newest adapter in bfloat16, for use, beside the checkpoint, for going on.

    Args:
        folder: Where it is kept.
        model: Gives the peft model, unwrapped.
        moments: How the optimiser's moments are stored.
    """

    def __init__(self, folder: Path, model: Callable[[], Any], moments: str) -> None:
        self._folder = folder
        self._model = model
        self._moments = moments

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Write the adapter; shrink the checkpoint."""
        if not state.is_world_process_zero:
            return
        write_adapter(self._model(), self._folder)
        optimiser = Path(args.output_dir) / f"checkpoint-{state.global_step}" / "optimizer.pt"
        if self._moments == "bfloat16" and optimiser.exists():
            halve_moments(optimiser)


def write_adapter(model: Any, folder: Path) -> None:
    """A peft model's adapter in bfloat16."""
    model.save_pretrained(folder)
    weights = folder / "adapter_model.safetensors"
    halve_weights(weights, weights)


def halve_weights(weights: Path, into: Path) -> None:
    """A file of weights in bfloat16."""
    from safetensors.torch import load_file, save_file

    save_file({k: v.to(torch.bfloat16) for k, v in load_file(weights).items()}, into, metadata={"format": "pt"})


def halve_moments(path: Path) -> None:
    """Store an optimiser's moments in bfloat16; torch gives them the parameters' type again when it loads them."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    for state in saved["state"].values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.dim() and value.dtype is torch.float32:
                state[name] = value.to(torch.bfloat16)
    torch.save(saved, path)


def cut_log(path: Path, steps: int) -> None:
    """Leave whole lines of the first `steps` steps: a killed run may have logged steps that its checkpoint lacks."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= steps:
                kept.append(line + "\n")
        except ValueError:
            continue
    path.write_text("".join(kept), encoding="utf-8")


def _finite(logs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in logs.items() if not isinstance(v, float) or math.isfinite(v)}


def _short(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else "?"
