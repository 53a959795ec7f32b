"""Whole GRPO steps on a CPU: real graph, real compiler, real emulator, real TRL, a tiny model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the training extra is not installed")
pytest.importorskip("peft", reason="the training extra is not installed")

from toy_run import SAXPY, toy_train

from cudaperf_agent.store.repository import Store

ROOT = Path(__file__).parents[2]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def tokens(folder: Path, run: str) -> list[tuple[int, ...] | None]:
    with Store(f"sqlite:///{folder / 'store.sqlite'}") as store:
        return [a.tokens.completion if a.tokens else None for a in store.attempts(run)]


@pytest.mark.slow
def test_one_step_of_two_turns(tiny_policy: Path, tmp_path: Path) -> None:
    """Rollouts, verdicts, store, rows, loss, log, checkpoint and adapter of one real step; and its export."""
    import pyarrow.parquet as parquet

    from training.dataset.export_runs import write_runs

    out = tmp_path / "run"
    done = toy_train(tiny_policy, out, rollout={"trajectories": 8, "turns": 2, "max_tokens": 32})
    assert (done.steps, done.planned, done.finished) == (1, 1, True)
    assert (done.adapter / "adapter_model.safetensors").exists()
    (logged,) = lines(out / "metrics.jsonl")
    assert 0 < logged["compile_rate"] < 1
    assert logged["rollout/rows"] == 16
    assert {"reward", "correct@turn1", "correct@turn2", "zero_variance_groups", "distinct_sources_per_group", "cheats",
            "sampling/importance_sampling_ratio/mean", "entropy", "loss", "grad_norm"} <= logged.keys()  # fmt: skip
    shares = [logged[f"time/{a}"] for a in ("generating", "verifying", "timing", "learning", "waiting")]
    assert sum(shares) == pytest.approx(1.0)
    # The trainer reads the very ids that were drawn: its log-probabilities are the engine's.
    assert logged["sampling/sampling_logp_difference/max"] < 1e-3
    (logged_rows,) = lines(out / "rows.jsonl")
    assert len(logged_rows["rows"]) == 16
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        (run,) = store.list_runs(origin="grpo")
        assert (run.trajectories, run.turns, run.task_path, run.status.final) == (8, 2, "saxpy", True)
        attempts = store.attempts(run.id)
        assert len(attempts) == 16
        assert {a.hidden_verdict for a in attempts} == {None}
        assert {a.status for a in attempts if a.turn == 0} >= {"correct"}
        made = write_runs(store, tmp_path / "out" / "runs.parquet", origin="grpo")
        assert write_runs(store, tmp_path / "none.parquet", origin="translate").turns == 0
    assert (made.runs, made.turns) == (1, 16)
    table = parquet.read_table(tmp_path / "out" / "runs.parquet").to_pylist()
    first = table[0]
    assert tuple(first["token_ids"]) == attempts[0].tokens.completion
    assert len(first["logprobs"]) == len(first["token_ids"])
    assert json.loads(first["prompt"])[0]["role"] == "system"
    assert first["reward_total"] == attempts[0].reward["total"]


@pytest.mark.slow
def test_the_reward_rises_within_thirty_steps(tiny_policy: Path, tmp_path: Path) -> None:
    """Two of the four answers are correct; the policy learns to give those."""
    toy_train(
        tiny_policy, tmp_path / "run", run={"steps": 30, "files": [str(SAXPY)], "save_every": 30, "report_to": []}
    )
    rewards = [line["reward"] for line in lines(tmp_path / "run" / "metrics.jsonl")]
    assert len(rewards) == 30
    before, after = sum(rewards[:5]) / 5, sum(rewards[-10:]) / 10
    # Chance moves these means by 0.1 to 0.15; learning took them from -1.4 to between -0.5 and -0.2 when it was tried.
    assert before < -0.9
    assert after > before + 0.6


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_batch(tiny_policy: Path, tmp_path: Path) -> None:
    files = []
    for name in ("one.c", "two.c", "three.c"):
        shutil.copy(SAXPY, tmp_path / name)
        files.append(str(tmp_path / name))
    killed, whole = tmp_path / "killed" / "run", tmp_path / "whole" / "run"
    killed.parent.mkdir()
    whole.parent.mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}", "OMP_NUM_THREADS": "1"}
    worker = [sys.executable, str(Path(__file__).with_name("toy_run.py"))]
    worker += ["to-be-killed", str(tiny_policy), str(killed), *files]
    with subprocess.Popen(worker, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for said in process.stdout:
            if said.startswith("step 3/"):
                process.kill()
                break
        process.wait(timeout=60)
    assert process.returncode == -9
    # What counts is the newest whole checkpoint: steps after it are done again.
    for checkpoint in killed.glob("checkpoint-*"):
        if int(checkpoint.name.rpartition("-")[2]) > 2:
            shutil.rmtree(checkpoint)
    assert (killed / "checkpoint-2" / "trainer_state.json").exists()
    run = {"steps": 50, "files": files, "seed": 5, "save_every": 1, "report_to": []}
    # One more step, then the deadline that no further step can keep.
    resumed = toy_train(tiny_policy, killed, resume=True, run={**run, "seconds": 0.001})
    assert (resumed.steps, resumed.finished) == (3, False)
    assert [line["step"] for line in lines(killed / "metrics.jsonl")] == [1, 2, 3]
    toy_train(tiny_policy, whole, run={**run, "steps": 3})
    again, before = lines(killed / "rows.jsonl")[-1], lines(whole / "rows.jsonl")[-1]
    assert again["step"] == before["step"] == 3
    # Same task, same seeds, same weights: the same answers with the same rewards.
    assert tokens(killed.parent, again["rows"][0][0]) == tokens(whole.parent, before["rows"][0][0])
    assert [row[1:8] for row in again["rows"]] == [row[1:8] for row in before["rows"]]
    ours, theirs = lines(killed / "metrics.jsonl")[-1], lines(whole / "metrics.jsonl")[-1]
    assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-6)
    assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=1e-3)


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tiny_policy: Path, tmp_path: Path) -> None:
    """Whole groups on each process, gradients averaged: the same losses as in one process."""
    shutil.copy(SAXPY, tmp_path / "other.c")
    files = [str(SAXPY), str(tmp_path / "other.c")]
    run = {"steps": 2, "files": files, "seed": 5, "save_every": 2, "report_to": []}
    one, two = tmp_path / "one" / "run", tmp_path / "two" / "run"
    one.parent.mkdir()
    two.parent.mkdir()
    toy_train(tiny_policy, one, run=run, rollout={"trajectories": 8, "tasks_per_step": 2, "max_tokens": 32})
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}", "OMP_NUM_THREADS": "1"}
    worker = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    worker += [str(Path(__file__).with_name("toy_run.py")), "two-processes", str(tiny_policy), str(two), *files]
    done = subprocess.run(worker, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-20000:]
    for ours, theirs in zip(lines(one / "metrics.jsonl"), lines(two / "metrics.jsonl"), strict=True):
        assert theirs["loss"] == pytest.approx(ours["loss"], abs=1e-5)
        assert theirs["reward"] == pytest.approx(ours["reward"])
        assert theirs["num_tokens"] == ours["num_tokens"]
    shared = [{row[0] for row in lines(two / name)[0]["rows"]} for name in ("rows.jsonl", "rows-1.jsonl")]
    assert [len(runs) for runs in shared] == [1, 1]
    assert shared[0] != shared[1]


@pytest.mark.slow
def test_four_bits_are_trained_through(tiny_policy: Path, tmp_path: Path) -> None:
    """QLoRA: the base in NF4, the adapter in float32, and a step that moves it."""
    pytest.importorskip("bitsandbytes", reason="the training extra is not installed")
    import torch
    from safetensors.torch import load_file

    model = {"quantise": "nf4"}
    changes = {"rollout": {"trajectories": 8}, "verify": {"backend": "emulator"}}
    toy_train(tiny_policy, tmp_path / "run", model=model, **changes)
    (logged,) = lines(tmp_path / "run" / "metrics.jsonl")
    assert logged["grad_norm"] > 0
    saved = load_file(tmp_path / "run" / "checkpoint-1" / "adapter_model.safetensors")
    assert {value.dtype for value in saved.values()} == {torch.float32}
    assert any(value.any() for name, value in saved.items() if "lora_B" in name)
