"""What the processes that run modules and candidates spend their time on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cudaperf_agent.cuda.modules.python_child import CHILD

LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from cudaperf_child.real import RealDevice
from cudaperf_child.summation import AnyOrder

log = {}
with RealDevice(255, "cpu").working(log):
    torch.ones(3).sum()
with AnyOrder(torch.Generator()):
    torch.ones(3).sum()
print(sorted(log), "torch._dynamo" in sys.modules)
"""


def test_watching_operators_does_not_import_the_compiler_of_torch() -> None:
    """It takes over a second, in every run of every candidate."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    run = subprocess.run([sys.executable, "-c", LOOK, str(CHILD)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "['aten::ones', 'aten::sum'] False"
