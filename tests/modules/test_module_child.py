"""What the processes that run modules and candidates spend their time on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.cuda.modules import reference
from cudaperf_agent.cuda.modules.python_child import CHILD, run_python
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.paths import cache_dir
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.tasks.modules.find import load_module_task

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


MODULE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x{call}

def get_inputs():
    return [torch.rand(4, 3)]
"""


class RunAgainError(Exception):
    """The module is run."""


async def test_a_module_is_run_once_to_see_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path / "cache"))
    runs = reference.Reference(detect())
    path = tmp_path / "model.py"
    path.write_text(MODULE.format(call=".relu()"))
    task = load_module_task(path)
    first = await runs.described(task)
    random = tmp_path / "random.py"
    random.write_text(MODULE.format(call=" + torch.rand(1)"))
    with pytest.raises(InputRefused):
        await runs.described(load_module_task(random))

    async def run(*_: Any, **__: Any) -> None:
        raise RunAgainError

    monkeypatch.setattr(reference, "run_python", run)
    assert await runs.described(task) == first
    # Another text, other wishes, what was refused, and what cannot be read: all of them are run.
    path.write_text(MODULE.format(call=".relu()") + "# changed\n")
    for other in (load_module_task(path), load_module_task(path, dtypes=("f16",)), load_module_task(random)):
        with pytest.raises(RunAgainError):
            await runs.described(other)
    (kept,) = (cache_dir() / "modules").iterdir()
    kept.write_text("{")
    with pytest.raises(RunAgainError):
        await runs.described(task)


CANDIDATE = """import torch

class ModelNew(torch.nn.Module):
    def forward(self):
        {does}
        return torch.zeros(1)
"""


@pytest.mark.parametrize(
    ("does", "runs"), [("pass", 2), ("raise TypeError", 2), ("while True: pass", 1), ("import os; os._exit(0)", 1)]
)
async def test_what_does_not_come_back_is_not_run_again(tmp_path: Path, does: str, runs: int) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (tmp_path / "model_new.py").write_text(CANDIDATE.format(does=does))
    (tmp_path / "kernels").mkdir()
    for name in ("inputs.bin", "state.bin"):
        (tmp_path / name).write_bytes(b"")
    plan = {"order": "forward", "suppress": None, "environment": {}}
    request = {
        "kernels": str(tmp_path / "kernels"), "device": "cpu", "timeline": False, "runtime": None, "libraries": [],
        "init": [[], {"dict": {}}], "state": {"f32": {}},
        "cases": [{"dtype": "f32", "inputs": [], "values": [], "over_previous": False, "layout": "plain"}],
        "seconds": 2.0, "alone": False, "private_tmp": False,
        "plans": [{**plan, "fill": 255}, {**plan, "fill": 90}], "each_kernel": None,
    }  # fmt: skip
    (tmp_path / "request.json").write_text(json.dumps(request))
    child = await run_python("supervise", tmp_path, sandbox=detect(), limits=Limits(seconds=60.0))
    assert child.ok, child.stderr
    ended = json.loads((tmp_path / "ended.json").read_text())
    assert [end["fill"] for end in ended] == [255, 90][:runs]
    assert ended[0]["timed_out"] == ("while" in does)


def test_looking_at_the_device_imports_no_compiler() -> None:
    code = f"""import sys
sys.path.insert(0, {str(CHILD)!r})
import torch
from cudaperf_child.real import RealDevice
print(RealDevice(0, "cpu").activities(lambda: torch.zeros(8).add_(1)), "torch._inductor.compile_fx" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["[]", "False"]
