"""`cudaperf ranker` and `cudaperf dataset`, as a user runs them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from synthetic_data import synthetic

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.structural import load_ranker
from training.dataset.table import EXTENDED, Table, write_rows


def parquet(table: Table, path: Path) -> Path:
    pytest.importorskip("pyarrow")
    plain = {f.name for f in fields(Table)} - {"phi", "extended", "error", "digest"}
    rows: list[dict[str, Any]] = []
    for k in range(len(table)):
        row: dict[str, Any] = {name: getattr(table, name)[k].item() for name in plain}
        row |= dict(zip(ORDER, table.phi[k].tolist(), strict=True))
        row |= {f"x_{n}": v for n, v in zip(EXTENDED, table.extended[k].tolist(), strict=True)}
        row |= {
            "gain_error": float(table.error[k]),
            "status": "correct",
            "samples": [1.0],
            "seconds": 1.0,
            "worst_error": 0.1,
            "naive": k == 0 or row["task"] != table.task[k - 1],
            "variant": str(k),
            "source": "",
        }
        rows.append(row)
    write_rows(rows, path)
    return path


def test_a_ranker_is_trained_from_parquet_and_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = parquet(synthetic(families=6, tasks=2), tmp_path / "variants.parquet")
    out = tmp_path / "artefact"
    assert main(["ranker", "train", "--data", str(data), "--out", str(out), "--kind", "linear", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    ranker = load_ranker(out)
    assert facts["kind"] == ranker.kind == "linear"
    assert facts["data_digest"] == ranker.data_digest
    assert facts["variants"] == 120


def test_without_data_the_commands_say_what_makes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none.parquet")
    assert main(["ranker", "eval", "--data", missing]) == EXIT_USAGE
    assert "cudaperf dataset export" in capsys.readouterr().err


@pytest.mark.parametrize("folds", ["-1", "0", "1"])
def test_fewer_than_two_folds_are_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folds: str
) -> None:
    data = parquet(synthetic(families=3, tasks=1), tmp_path / "variants.parquet")
    assert main(["ranker", "eval", "--data", str(data), "--kind", "linear", "--folds", folds]) == EXIT_USAGE
    told = capsys.readouterr().err
    assert "--folds" in told
    assert "2" in told
    assert "more" not in told


def test_a_task_is_built_counted_and_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = str(tmp_path / "built.jsonl")
    command = ["dataset", "build", "--built", built, "--variants", "5", "--task", "activation/0", "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["tasks"], first["variants"], first["declined"]) == (1, 5, [])
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert main(["dataset", "stats", "--built", built, "--measured", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == {"not_measured": 5}


@pytest.mark.parametrize("command", ["stats", "export"])
def test_data_that_are_not_there_are_not_counted_as_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    none, built = str(tmp_path / "none"), tmp_path / "built.jsonl"
    assert main(["dataset", command, "--built", none, "--measured", str(tmp_path)]) == EXIT_USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{none}: there is no built data set" in told.err
    assert "cudaperf dataset build" in told.err
    built.write_text("")
    assert main(["dataset", command, "--built", str(built), "--measured", none]) == EXIT_USAGE
    assert f"{none}: there are no measured slices" in capsys.readouterr().err


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_a_task_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], check: list[str]
) -> None:
    built = tmp_path / "deep" / "built.jsonl"
    assert main(["dataset", "build", "--built", str(built), "--task", "activaton/0", *check]) == EXIT_USAGE
    told = capsys.readouterr().err
    assert "there is no task activaton/0" in told
    assert "did you mean activation/0?" in told
    assert main(["dataset", "build", "--built", str(built), "--task", "9", *check]) == EXIT_USAGE
    assert "FAMILY/NUMBER" in capsys.readouterr().err
    assert not built.parent.exists()


def test_export_without_measurements_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = tmp_path / "built.jsonl"
    built.write_text("")
    arguments = ["--built", str(built), "--measured", str(tmp_path / "empty"), "--out", str(tmp_path)]
    (tmp_path / "empty").mkdir()
    assert main(["dataset", "export", *arguments]) == EXIT_USAGE
    assert "measure" in capsys.readouterr().err
