"""TRL's `SFTTrainer` for the warm start: a schedule that also goes by the clock, exact unpadded attention, one log.

TRL is pinned (1.16); this module is the only one that knows its interface.
"""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import SequentialSampler
from transformers import TrainerCallback
from trl import SFTConfig as TrlConfig
from trl import SFTTrainer

from training.sft.config import OptimiserSettings
from training.sft.tokens import IGNORED


class RightPadded:
    """Batches padded on the right, without an attention mask.

    Attention is causal, so no token sees the padding behind it, and padding carries no loss: the result is the same
    as with a mask, and the fast kernels apply.
    """

    def __init__(self, pad: int, multiple: int = 8) -> None:
        self._pad = pad
        self._multiple = multiple

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """``input_ids``, ``labels`` and ``position_ids``, each (rows, longest) of int64."""
        longest = max(len(row["input_ids"]) for row in rows)
        longest += -longest % self._multiple
        ids = torch.full((len(rows), longest), self._pad)
        labels = torch.full((len(rows), longest), IGNORED)
        for k, row in enumerate(rows):
            ids[k, : len(row["input_ids"])] = torch.as_tensor(row["input_ids"])
            labels[k, : len(row["labels"])] = torch.as_tensor(row["labels"])
        return {"input_ids": ids, "labels": labels, "position_ids": torch.arange(longest).repeat(len(rows), 1)}


class Progress:
    """How far a run is, by its steps and by its time: 0 to 1. The clock goes on where a resumed run left it."""

    def __init__(self, steps: int, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps, self._seconds, self._clock = steps, seconds, clock
        self._began: float | None = None
        self.before = 0.0

    def start(self) -> None:
        """From here on time counts."""
        self._began = self._clock()

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before a resumption included."""
        return self.before + (self._clock() - self._began if self._began is not None else 0.0)

    def at(self, step: int) -> float:
        """The share of the run that is done at a step."""
        by_time = self.elapsed / self._seconds if self._seconds else 0.0
        return min(1.0, max(step / max(1, self._steps), by_time))


def rate(done: float, settings: OptimiserSettings) -> float:
    """Learning rate at this share of the run, as a share of its peak: a rise, then a cosine."""
    if done < settings.warmup:
        return max(0.01, done / settings.warmup)
    left = (done - settings.warmup) / (1 - settings.warmup)
    return settings.floor + (1 - settings.floor) * 0.5 * (1 + math.cos(math.pi * left))


class WarmStartTrainer(SFTTrainer):  # type: ignore[misc]  # trl is not typed
    """`SFTTrainer` whose schedule asks a `Progress`."""

    progress: Progress
    lr_scheduler: Any = None
    settings: OptimiserSettings

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """A schedule by steps and time."""
        if self.lr_scheduler is None:
            chosen = optimizer if optimizer is not None else self.optimizer
            self.lr_scheduler = LambdaLR(chosen, lambda step: rate(self.progress.at(step), self.settings))
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        """The order is ours (`learning_order`): whole batches of like length."""
        return SequentialSampler(train_dataset if train_dataset is not None else self.train_dataset)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None: ours is written with the figures, once they are there."""


class Narrator(TrainerCallback):  # type: ignore[misc]  # transformers is not typed here
    """Writes a JSON line a step, ends the run when its time is up or on a signal, and keeps the clock for resuming.

    Attributes:
        asked_to_stop: Whether a signal came.
    """

    def __init__(self, path: Path, progress: Progress, settings: OptimiserSettings, say: Callable[[str], None]) -> None:
        self._path, self._progress, self._settings, self._say = path, progress, settings, say
        self._tokens = 0
        self.asked_to_stop = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Meanwhile SIGTERM or Ctrl-C ends the run after the step at work, and a second one at once."""

        def stop(*_: Any) -> None:
            if self.asked_to_stop:
                raise KeyboardInterrupt
            self.asked_to_stop = True
            self._say("interrupted: waiting for the step at work (once more to stop at once)")

        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number, handler in before.items():
            # In a script's background job Ctrl-C is not for this process.
            if handler is not signal.SIG_IGN:
                signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Time counts from here."""
        kept = self._clock_file(args)
        if state.global_step and kept.exists():
            self._progress.before = float(json.loads(kept.read_text())["seconds"])
        self._progress.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Whether to go on."""
        over = self._settings.seconds is not None and self._progress.elapsed >= self._settings.seconds
        if over or self.asked_to_stop:
            control.should_training_stop = control.should_save = control.should_log = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The clock goes with the checkpoint."""
        self._clock_file(args).write_text(json.dumps({"seconds": self._progress.elapsed}))

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """One line of JSON."""
        line = {"step": state.global_step, "seconds": round(self._progress.elapsed, 2), **(logs or {})}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if "loss" in line and (state.global_step % 20 == 0 or state.global_step <= 3):
            accuracy = line.get("mean_token_accuracy", 0)
            self._say(
                f"step {state.global_step}, {line['seconds']:.0f} s: loss {line['loss']:.3f}, {accuracy:.3f} right"
            )

    @staticmethod
    def _clock_file(args: Any) -> Path:
        return Path(args.output_dir) / "clock.json"


def trl_config(
    out: Path, settings: OptimiserSettings, *, bf16: bool, save_steps: int, cpu: bool, steps: int, report_to: str
) -> TrlConfig:
    """TRL's own configuration of a run."""
    return TrlConfig(
        output_dir=str(out),
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        max_steps=steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip,
        bf16=bf16,
        use_cpu=cpu,
        gradient_checkpointing=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        max_length=None,
        packing=False,
        remove_unused_columns=False,
        logging_steps=1,
        save_strategy="steps" if save_steps else "no",
        save_steps=save_steps or 500,
        save_total_limit=2,
        report_to=[] if report_to == "none" else [report_to],
        seed=settings.seed,
        data_seed=settings.seed,
        dataloader_num_workers=0,
        disable_tqdm=True,
        log_level="warning",
    )
