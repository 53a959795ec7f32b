"""Which of several adapters an evaluation of many policies goes on with."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from eval_facts import evaluation, fails, right, task

from training.evaluation.facts import Evaluation

torch = pytest.importorskip("torch")


def wrote(folder: Path, name: str, found: Evaluation) -> None:
    (folder / f"validation-{name}.json").write_text(json.dumps({"evaluation": found.to_dict()}), encoding="utf-8")


def adapter(folder: Path) -> Path:
    from safetensors.torch import save_file

    folder.mkdir()
    save_file({"a": torch.ones(2, 2) / 3}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text("{}")
    return folder


def test_the_choice_is_by_tasks_that_all_candidates_finished(tmp_path: Path) -> None:
    from benchmarks.policies_gpu import with_chosen

    good, bad = right(2.0, 1.0, 0.5), fails("wrong")
    folder = tmp_path / "validation"
    folder.mkdir()
    wrote(folder, "warm", evaluation(task("a", good, bad), task("b", bad, bad), task("c", good, good), n=2))
    wrote(folder, "late", evaluation(task("a", good, good), task("b", bad, bad), task("c"), n=2))
    warm, late = adapter(tmp_path / "warm"), adapter(tmp_path / "late")
    candidates: dict[str, Path | None] = {"warm": warm, "late": late}
    found = with_chosen({"warm": warm, "base": None}, candidates, folder)
    assert found == {"chosen": late, "warm": warm, "base": None}
    told = json.loads((folder / "choice.json").read_text())
    assert told == {"chosen": "late", "evaluated_as": "chosen", "tasks": 2, "pass@1": {"warm": 0.25, "late": 0.5}}
    # It ships in half the bytes.
    with tarfile.open(tmp_path / "chosen-adapter.tar") as tar:
        assert sorted(tar.getnames()) == ["adapter/adapter_config.json", "adapter/adapter_model.safetensors"]
        tar.extractall(tmp_path / "shipped", filter="data")
    from safetensors.torch import load_file

    assert load_file(tmp_path / "shipped" / "adapter" / "adapter_model.safetensors")["a"].dtype == torch.bfloat16
    # One that is evaluated anyway keeps its name.
    assert with_chosen({"late": late, "base": None}, candidates, folder) == {"late": late, "base": None}
    assert json.loads((folder / "choice.json").read_text())["evaluated_as"] == "late"


def test_nothing_is_chosen_where_a_candidate_finished_no_task(tmp_path: Path) -> None:
    from benchmarks.policies_gpu import with_chosen

    wrote(tmp_path, "warm", evaluation(task("a", right(2.0, 1.0, 0.5)), n=1))
    wanted: dict[str, Path | None] = {"warm": None}
    assert with_chosen(wanted, {"warm": None, "late": None}, tmp_path) == wanted
    assert not (tmp_path / "choice.json").exists()
