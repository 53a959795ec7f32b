"""A PyTorch file becomes a task without being run; what is missing is said with the line to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.errors import InputRefused, UsageError
from cudaperf_agent.tasks.modules.find import load_module_task, parse_inputs
from cudaperf_agent.tasks.serialise import task_from_dict, task_to_dict

OTHER = """import torch

class Scaled(torch.nn.Module):
    def forward(self, x):
        return 2 * x
"""
HUGE = "f32[99999999999,99999999]"
NAMES = ("embedding_bag_mean", "group_norm_silu", "linear_gelu_residual", "row_softmax_scale")


@pytest.mark.parametrize("name", NAMES)
def test_the_handed_files_are_tasks(name: str, torch_cases: Path) -> None:
    task = load_module_task(torch_cases / f"{name}.py")
    assert (task.name, task.mode) == ("Model", "module")
    assert task.module is not None
    assert task.module.has_init_inputs
    assert task.source.splitlines()[task.first_line - 1].startswith("class Model")
    assert task_from_dict(task_to_dict(task)) == task


def test_nothing_is_run(tmp_path: Path) -> None:
    text = f"open({str(tmp_path / 'ran')!r}, 'w')\n{OTHER}"
    load_module_task(Path("m.py"), source=text, inputs="f32[3]")
    assert not (tmp_path / "ran").exists()


def test_another_class_needs_its_inputs() -> None:
    with pytest.raises(InputRefused) as caught:
        load_module_task(Path("m.py"), source=OTHER)
    assert caught.value.where == "m.py:3"
    assert "--inputs" in (caught.value.hint or "")
    task = load_module_task(Path("m.py"), source=OTHER, class_name="Scaled", inputs="f32[2, 3]")
    assert task.module is not None
    assert task.module.inputs_from == "f32[2, 3]"


def test_a_class_that_is_not_there() -> None:
    with pytest.raises(InputRefused, match="no class Missing") as caught:
        load_module_task(Path("m.py"), source=OTHER, class_name="Missing", inputs="f32[2]")
    assert "Scaled" in (caught.value.hint or "")
    two = OTHER + OTHER.replace("Scaled", "Other")
    with pytest.raises(InputRefused, match="nothing says which class"):
        load_module_task(Path("m.py"), source=two, inputs="f32[2]")


def test_text_that_is_not_python() -> None:
    with pytest.raises(InputRefused) as caught:
        load_module_task(Path("m.py"), source="import torch\nclass Model(:\n")
    assert caught.value.where == "m.py:2"


def test_inputs_are_read() -> None:
    assert parse_inputs("f32[64,128], i64[64] ,bool[], bf16[2]") == (
        ("f32", (64, 128)),
        ("i64", (64,)),
        ("bool", ()),
        ("bf16", (2,)),
    )


@pytest.mark.parametrize(
    "text", ["", "f32", "f31[2]", "f32[2,]", "f32[2] i64[3]", "f32[-1]", "f32[a]", HUGE, "f32[0,4]"]
)
def test_inputs_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_inputs(text)
    assert caught.value.where == "--inputs"


def test_mode_and_types_are_part_of_the_digest() -> None:
    made = [
        load_module_task(Path("m.py"), source=OTHER, inputs="f32[2]", mode=mode, dtypes=dtypes).digest
        for mode, dtypes in (("pure-cuda", ()), ("libraries-allowed", ()), ("pure-cuda", ("f16",)))
    ]
    assert len(set(made)) == 3
    with pytest.raises(UsageError):
        load_module_task(Path("m.py"), source=OTHER, inputs="f32[2]", dtypes=("f8",))
