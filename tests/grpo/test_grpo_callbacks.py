"""What happens around steps: the log that survives a kill, checkpoints of half the size, the deadline."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the training extra is not installed")
pytest.importorskip("trl", reason="the training extra is not installed")

from training.grpo.callbacks import Deadline, StepLog, cut_log, halve_moments  # noqa: E402
from training.grpo.run import newest_checkpoint  # noqa: E402
from training.grpo.step_time import StepMeter  # noqa: E402


def state(step: int, last: int = 10) -> Any:
    return SimpleNamespace(global_step=step, max_steps=last, is_world_process_zero=True)


def control() -> Any:
    return SimpleNamespace(should_save=False, should_training_stop=False)


def test_a_resumed_log_has_no_step_twice_and_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": 1}\n{"step": 2, "loss": 2}\n{"step": 3, "loss": 3}\n{"step": 4, "lo')
    cut_log(path, 2)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2]
    cut_log(tmp_path / "none.jsonl", 2)


def test_a_step_is_one_line_of_json_and_one_sentence(tmp_path: Path) -> None:
    said: list[str] = []
    recorded: list[dict[str, float]] = []
    log = StepLog(tmp_path / "metrics.jsonl", StepMeter(), recorded.append, said.append)
    log.on_step_end(None, state(1), control())  # type: ignore[arg-type]
    assert recorded[0]["time/waiting"] == 1.0
    log.on_log(None, state(1), control(), logs={"loss": 0.5, "reward": -1.25, "bad": math.nan})  # type: ignore[arg-type]
    log.on_log(None, state(1), control(), logs={"train_runtime": 3})  # type: ignore[arg-type]
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert {"step": 1, "loss": 0.5, "reward": -1.25}.items() <= json.loads(line).items()
    assert "bad" not in json.loads(line)
    assert said[0].startswith("step 1/10: reward -1.25")


def test_moments_in_half_the_size_load_as_they_were_up_to_rounding(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.randn(64, 64))
    optimiser = torch.optim.AdamW([parameter])
    for _ in range(3):
        parameter.grad = torch.randn_like(parameter)
        optimiser.step()
    path = tmp_path / "optimizer.pt"
    torch.save(optimiser.state_dict(), path)
    size = path.stat().st_size
    halve_moments(path)
    assert path.stat().st_size < 0.6 * size
    again = torch.optim.AdamW([parameter])
    again.load_state_dict(torch.load(path, weights_only=True))
    for name in ("exp_avg", "exp_avg_sq"):
        before, after = optimiser.state[parameter][name], again.state[parameter][name]
        assert after.dtype is torch.float32
        assert torch.allclose(before, after, rtol=0.01)
    assert again.state[parameter]["step"] == 3


@pytest.mark.parametrize(("left", "stops"), [(None, False), (1000.0, False), (-1.0, True)])
def test_no_step_begins_that_would_end_too_late(left: float | None, stops: bool) -> None:
    deadline = Deadline(None if left is None else time.monotonic() + left)
    asked = control()
    deadline.on_step_begin(None, state(0), asked)  # type: ignore[arg-type]
    deadline.on_step_end(None, state(1), asked)  # type: ignore[arg-type]
    assert (asked.should_training_stop, asked.should_save, deadline.reached) == (stops, stops, stops)


def test_the_last_step_is_saved() -> None:
    asked = control()
    Deadline(None).on_step_end(None, state(10), asked)  # type: ignore[arg-type]
    assert asked.should_save


def test_a_checkpoint_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path) is None
    for step in (2, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    (tmp_path / "checkpoint-12").mkdir()
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
