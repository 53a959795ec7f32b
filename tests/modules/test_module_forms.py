"""What a candidate file is: its CUDA with its lines, the loader that is put in, what it may not name."""

from __future__ import annotations

import pytest

from cudaperf_agent.codegen.modules.forms import ModuleFile, NoModule, read_module_file
from cudaperf_agent.codegen.modules.loader import LOADER, inserted_lines, with_loader
from cudaperf_agent.cuda.modules.operators import forbidden_operator
from cudaperf_agent.cuda.modules.screen import screen_module

CLASS = "\nclass ModelNew(torch.nn.Module):\n    pass\n"


def read(text: str) -> ModuleFile:
    file = read_module_file(text)
    assert isinstance(file, ModuleFile), file
    return file


def test_the_text_is_found_with_its_line() -> None:
    file = read(f'import torch\nA = r"""\nint a;\n"""\nB = A + "int b;"\nk = load_cuda(B)\n{CLASS}')
    (part,) = file.cuda
    assert part.text == "\nint a;\nint b;"
    assert part.line == 2
    assert file.form == "light"


@pytest.mark.parametrize(
    "load",
    ['load_cuda(f"int {x};")', "load_cuda(A.format(1))", "load_cuda(make())", "load_cuda(A, 1)", "load_cuda(C)"],
)
def test_a_text_that_only_a_run_would_tell_is_not_guessed(load: str) -> None:
    file = read(f'import torch\nA = "int a;"\nC = "1"\nC = "2"\nk = {load}\n{CLASS}')
    assert file.unread == 5
    assert not file.cuda


def test_files_that_are_no_candidates() -> None:
    for text, kind in (
        ("class ModelNew(:\n", "syntax"),
        ("import torch\n", "class"),
        (f"import torch\n{CLASS}", "cuda"),
    ):
        found = read_module_file(text)
        assert isinstance(found, NoModule)
        assert found.kind == kind


def test_load_inline_is_a_form_of_its_own() -> None:
    text = f"from torch.utils.cpp_extension import load_inline\nm = load_inline(name='m', cuda_sources='')\n{CLASS}"
    assert read(text).form == "load_inline"
    assert read(text).complete == text


def test_the_loader_is_put_in_behind_docstring_and_future_imports() -> None:
    text = f'"""Kernels."""\n\nfrom __future__ import annotations\nimport torch\n\nk = load_cuda("int a;")\n{CLASS}'
    complete = with_loader(text)
    assert complete.startswith('"""Kernels."""\n\nfrom __future__ import annotations\n' + LOADER)
    compile(complete, "m.py", "exec")
    lines = inserted_lines(text)
    before, after = text.splitlines(), complete.splitlines()
    assert after[lines.at + lines.count :] == before[lines.at :]
    assert with_loader(complete) == complete
    assert inserted_lines(complete).count == 0


def test_a_loader_of_its_own_is_left_alone() -> None:
    own = "def load_cuda(s):\n    return None\ndef launch(*a):\n    return None\n"
    text = f"import torch\n{own}k = load_cuda('')\n{CLASS}"
    assert with_loader(text) == text


HARMLESS = """import math
import torch
import torch.nn.functional as F
from torch import nn
k = load_cuda("__global__ void k() {}")

class ModelNew(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = a
        self.training_modules = [m for m in self.modules()]

    def forward(self, input):
        self.eval()
        return torch.empty_like(input)
"""


def test_ordinary_candidates_pass_the_screen() -> None:
    assert screen_module(read(HARMLESS)) is None
    assert screen_module(read(with_loader(HARMLESS))) is None


@pytest.mark.parametrize(
    "line",
    [
        "import sys",
        "import gc",
        "import triton",
        "import os; os.system('x')",
        "import subprocess as s; s.run(['x'])",
        "exec('x')",
        "open('x')",
        "torch.relu = None",
        "F.relu = None",
        "setattr(torch, 'relu', None)",
        "torch._C._set_x()",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "x = torch.compile(f)",
        "x = k.__globals__",
        "import ctypes; ctypes.pythonapi.x()",
        "import ctypes; ctypes.string_at(1)",
        "p = '/proc/self/maps'",
        "class T(torch.Tensor): pass",
        "from torch.utils import _pytree",
        "from torch.overrides import TorchFunctionMode",
    ],
)
def test_what_reaches_out_does_not(line: str) -> None:
    found = screen_module(read(HARMLESS.replace("\nclass ModelNew", f"\n{line}\n\nclass ModelNew")))
    assert found is not None
    assert found.line == 7


def test_a_changed_loader_is_screened_like_anything_else() -> None:
    changed = with_loader(HARMLESS).replace("if done.returncode:", "if os.fork():")
    found = screen_module(read(changed))
    assert found is not None
    assert "os.fork" in found.message or "subprocess" in found.message or "CUDAPERF" in found.message


def test_its_cuda_is_screened_too_with_the_line_of_the_file() -> None:
    text = f'import torch\nk = load_cuda(r"""\nvoid f() {{ fork(); }}\n""")\n{CLASS}'
    found = screen_module(read(text))
    assert found is not None
    assert found.line == 3


def test_operators_by_mode() -> None:
    memory = {"aten::empty": 2, "aten::view": 1, "aten::copy_": 1, "aten::zeros": 1}
    assert forbidden_operator(memory, "pure-cuda") is None
    computing = {**memory, "aten::mm": 1, "aten::relu": 3}
    assert "mm, relu" in (forbidden_operator(computing, "pure-cuda") or "")
    assert forbidden_operator(computing, "libraries-allowed") is None
    assert "tolist" in (forbidden_operator({"Tensor.tolist": 1}, "libraries-allowed") or "")
