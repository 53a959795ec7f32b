"""A module that cannot be a task is refused with the cause, the line and the remedy."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.cuda import modules
from cudaperf_agent.cuda.modules import reference
from cudaperf_agent.cuda.modules.config import MODULES
from cudaperf_agent.cuda.modules.remedies import REMEDIES
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import ChildResult
from cudaperf_agent.tasks.modules.find import load_module_task

pytest.importorskip("torch", reason="PyTorch is not installed")
sys.path.insert(0, str(Path(modules.__file__).parent / "child"))

PLAIN = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(4, 4)]
"""
GIVEN = "return [torch.randn(4, 4)]"
FORWARD = "        return x * 2\n"


def child_says(folder: Path, text: str, **request: Any) -> dict[str, Any]:
    """What the process of a module answers, made in this one."""
    from cudaperf_child.reference import main

    numbers = {n: getattr(MODULES, n) for n in ("probe", "elements", "operations", "largest")}
    about = {"class_name": "Model", "has_init_inputs": False, "named_inputs": [], "inputs_text": None}
    (folder / "module.py").write_text(text)
    asked = {"do": "describe", "seed": 0, "dtypes": [], **numbers, **about, **request}
    (folder / "request.json").write_text(json.dumps(asked))
    main(folder)
    answer: dict[str, Any] = json.loads((folder / "response.json").read_text())
    return answer


def refusal(folder: Path, child: ChildResult, text: str = PLAIN) -> InputRefused:
    """What the user is told of it."""
    task = load_module_task(Path("m.py"), source=text)
    with pytest.raises(InputRefused) as caught:
        reference._response(task, folder, child, 1 << 20)
    return caught.value


def ended(returncode: int) -> ChildResult:
    return ChildResult(
        returncode=returncode,
        stdout=b"",
        stderr=b"",
        seconds=1.0,
        timed_out=False,
        out_of_memory=False,
        output_cut=False,
    )


DECLINED = {
    "nothing_given": (GIVEN, "return None", "inputs", 7, "NoneType"),
    "raises": (GIVEN, "return [torch.randn(4, 4), 1 // 0]", "inputs", 8, "ZeroDivisionError"),
    "argument_of_init": (
        "    def forward",
        "    def __init__(self, n):\n        pass\n    def forward",
        "init",
        3,
        "'n'",
    ),
    "argument_by_name": ("(self, x)", "(self, x, *, scale)", "forward", 3, "scale"),
    "no_such_package": ("import torch\n", "import torch\nimport no_such_thing\n", "import", 2, "no_such_thing"),
    "leaves": ("import torch\n", "import torch\nraise SystemExit(3)\n", "import", 2, "SystemExit"),
    "file": ("import torch\n", "import torch\nopen('/no/such/file', 'w')\n", "sandbox", 2, "FileNotFoundError"),
    "complex": (GIVEN, "return [torch.randn(4, 4, dtype=torch.complex64)]", "input_type", 3, "complex64"),
    "no_module": ("(torch.nn.Module)", "", "class", 3, "torch.nn.Module"),
    "random": (FORWARD, "        return x + torch.rand(4)\n", "random", 3, "each time"),
    "text": (FORWARD, "        return 'x'\n", "output", 3, "str"),
    "in_place": (FORWARD, "        return x.mul_(2)\n", "in_place", 3, "changes its input 0 in place"),
    "transposed_in_place": (FORWARD, "        return x.t_()\n", "in_place", 3, "input 0"),
    "takes_what_it_changed": (
        FORWARD,
        "        x.t_()\n        if not x.is_contiguous(): raise KeyError\n" + FORWARD,
        "forward",
        6,
        "KeyError",
    ),
    "empty": (GIVEN, "return [torch.randn(0, 4)]", "empty", 7, "shape is [0, 4]"),
    "dict": (GIVEN, "return {'x': torch.randn(4, 4)}", "inputs", 7, "type dict"),
    "single_tensor": (GIVEN, "return torch.randn(4, 4)", "inputs", 7, "a single tensor"),
    "no_tensor": (GIVEN, "return [3]", "inputs", 3, "no tensor to forward, only int"),
    "memory": (GIVEN, "return [torch.randn(1 << 50)]", "memory", 8, "get_inputs"),
}


@pytest.mark.parametrize("name", sorted(DECLINED))
def test_cause_line_and_remedy(name: str, tmp_path: Path) -> None:
    before, after, kind, line, words = DECLINED[name]
    assert PLAIN.count(before) == 1
    text = PLAIN.replace(before, after)
    said = child_says(tmp_path, text)
    error = refusal(tmp_path, ended(0), text)
    assert (said["kind"], error.where) == (kind, f"m.py:{line}"), said
    assert words in error.message
    assert error.hint == REMEDIES[kind]


@pytest.mark.parametrize("sizes", [[99999999999, 99999999], [1 << 39]])
def test_named_inputs_that_do_not_fit(sizes: list[int], tmp_path: Path) -> None:
    said = child_says(tmp_path, PLAIN, named_inputs=[["f32", sizes]], inputs_text=f"f32{sizes}")
    error = refusal(tmp_path, ended(0))
    assert (said["kind"], error.where, error.hint) == ("inputs_flag", "--inputs", REMEDIES["inputs_flag"])
    assert str(sizes) in error.message


def test_a_process_that_ends_says_what_to_try(tmp_path: Path) -> None:
    for status, words in ((7, "exit status 7"), (-11, "SIGSEGV"), (139, "SIGSEGV")):
        error = refusal(tmp_path, ended(status))
        assert words in error.message
        assert error.where == "m.py:3"
        assert error.hint == REMEDIES["ended"]
    slow = refusal(tmp_path, replace(ended(-9), timed_out=True))
    assert slow.hint == REMEDIES["memory"]


def test_an_ordinary_module_is_described(tmp_path: Path) -> None:
    assert child_says(tmp_path, PLAIN)["outputs"] == [{"name": "output", "dtype": "f32", "rank": 2}]
