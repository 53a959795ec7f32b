"""`cudaperf train grpo`: dry runs, overrides, and mistakes told before anything costly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cudaperf_agent.cli.main import main
from training.config_file import CONFIGS


def test_a_dry_run_prints_configuration_memory_and_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base = tmp_path / "model"
    base.mkdir()
    shape = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "vocab_size": 500,
        "num_attention_heads": 4,
    }
    (base / "config.json").write_text(json.dumps(shape))
    command = ["train", "grpo", "--config", str(CONFIGS / "grpo_both.toml"), "--dry-run", "--steps", "3"]
    command += ["--set", "rollout.turns=4", "--set", f"model.base={base}", "--engine", "transformers"]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["config"]["rollout"]["turns"] == 4
    assert told["config"]["rollout"]["engine"] == "transformers"
    assert told["plan"]["steps"] == 3
    assert told["plan"]["candidates_per_step"] == 8 * 16 * 4
    assert told["memory_gib"]["total"] > 0
    assert len(told["first_step"]) == 8
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "rollout.turns = 4" in text
    assert "memory of one device, GiB: weights" in text
    assert "candidates per step: 512" in text


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--set", "run.stepz=3"], "run.stepz"),
        (["--set", "turns=3"], "SECTION.KEY"),
        (["--set", 'run.families=["activation"]'], "held out"),
        (["--engine", "magic"], "rollout.engine"),
    ],
)
def test_mistakes_end_with_the_code_of_usage(more: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "grpo", "--config", str(CONFIGS / "grpo_both.toml"), "--dry-run", *more]) == 2
    assert named in capsys.readouterr().err


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("trl", reason="the training extra is not installed")
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text("{}")
    command = ["train", "grpo", "--config", str(CONFIGS / "grpo_cpu.toml"), "--out", str(tmp_path)]
    assert main(command) == 2
    assert "--resume" in capsys.readouterr().err


def test_exporting_runs_of_an_empty_store_gives_an_empty_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the training extra is not installed")
    assert main(["dataset", "export", "--runs", "--origin", "grpo", "--out", str(tmp_path)]) == 0
    assert parquet.read_table(tmp_path / "runs.parquet").num_rows == 0
    assert "0 runs, 0 turns" in capsys.readouterr().out
