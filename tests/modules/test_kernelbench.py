"""Folders in KernelBench's format: levels, numbers, and why a file is no task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import UsageError
from cudaperf_agent.tasks.modules.kernelbench import read_folder

MODEL = """import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return []
"""


def checkout(folder: Path) -> Path:
    for level, name, text in (
        (1, "10_Tensor_op_.py", MODEL),
        (1, "2_Standard_op_.py", MODEL),
        (2, "1_Fused.py", MODEL.replace("get_inputs", "get_nothing")),
        (4, "3_Broken.py", "class Model(:\n"),
    ):
        place = folder / "KernelBench" / f"level{level}"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
        (place / "__init__.py").write_text("")
    (folder / "setup.py").write_text("")
    return folder


def test_levels_are_read_in_order(tmp_path: Path) -> None:
    found = read_folder(checkout(tmp_path))
    assert [(p.level, p.name, p.task is not None) for p in found] == [
        (1, "Standard_op", True),
        (1, "Tensor_op", True),
        (2, "Fused", False),
        (4, "Broken", False),
    ]
    assert "inputs" in found[2].declined
    assert found[3].declined.startswith("line 1: this is not Python")
    assert read_folder(tmp_path / "KernelBench") == found


def test_any_folder_of_files_will_do(torch_cases: Path) -> None:
    found = read_folder(torch_cases)
    assert len(found) == 4
    assert all(p.level is None and p.task is not None for p in found)


def test_a_folder_without_modules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_folder(tmp_path)
    with pytest.raises(UsageError):
        read_folder(tmp_path / "missing")


def test_the_command_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "kernelbench", str(checkout(tmp_path)), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["counts"] == {"loads": 2, "declined": 2}
    assert data["problems"][0]["level"] == 1
    assert main(["import", "kernelbench", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "level 2  Fused: declined: " in shown.out
    assert "2 loads, 2 declined" in shown.err
