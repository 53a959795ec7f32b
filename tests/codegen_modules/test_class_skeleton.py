"""What a candidate takes over from the user's file: the constructor word for word, nothing that computes."""

from __future__ import annotations

import ast

import pytest

from cudaperf_agent.codegen.modules.source_text import skeleton

TEXT = '''\
"""A file."""
from __future__ import annotations
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from math import isqrt as root
except ImportError:
    root = None
WIDTH = 4 * 2
UNUSED = np.zeros(3)


def init_scale(n):
    return math.sqrt(root(n))


def only_forward(x):
    return F.relu(x)


class Block(nn.Module):
    """A part."""

    def __init__(self, n):
        super().__init__()
        self.inner = nn.Linear(n, n)  # a comment

    def forward(self, x):
        return only_forward(self.inner(x))


class Model(nn.Module):
    """Named Model on purpose."""

    scale: float

    def __init__(self, n=WIDTH):
        super(Model, self).__init__()
        self.scale = init_scale(n)
        self.block = Block(n)
        self._fill()

    def _fill(self):
        nn.init.zeros_(self.block.inner.bias)

    def _used_by_forward(self, x):
        return x * 2

    def forward(self, x, factor=2.0):
        return self._used_by_forward(self.block(x)) * self.scale


def get_inputs():
    return [torch.randn(2, WIDTH)]
'''


def test_constructor_is_kept_and_forward_is_gone() -> None:
    found = skeleton(TEXT, "Model")
    whole = f"{found.preamble}\n\n\n{found.class_text}\n"
    tree = ast.parse(whole)
    names = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assert sorted(names) == sorted(["init_scale", "Block", "__init__", "ModelNew", "__init__", "_fill"])
    assert "super(ModelNew, self).__init__()" in found.class_text
    assert '"""Named Model on purpose."""' in found.class_text
    assert "scale: float" in found.class_text
    assert "# a comment" in found.preamble
    assert "WIDTH = 4 * 2" in found.preamble
    assert "except ImportError:\n    root = None" in found.preamble
    for gone in ("forward", "numpy", "UNUSED", "functional", "get_inputs", "__future__"):
        assert gone not in whole, gone
    assert found.parameters == ("x", "factor")


def test_no_such_class() -> None:
    with pytest.raises(ValueError, match="no class Other"):
        skeleton(TEXT, "Other")


def test_inherited_forward_is_refused() -> None:
    with pytest.raises(ValueError, match="no forward of its own"):
        skeleton("import torch\n\n\nclass Model(torch.nn.Linear):\n    pass\n", "Model")
