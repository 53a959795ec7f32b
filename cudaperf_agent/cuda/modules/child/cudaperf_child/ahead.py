"""A run's process that is there, with its device made ready, before anybody knows what it will run.

It is forked before CUDA is touched, as it must be, and makes its context while it waits. What it is told then is what
a process that is forked for its run knows from the start.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .real import RealDevice

_READY = b"r"


class Ahead:
    """The waiting process, as its parent sees it.

    Args:
        device: What it will run on.
        work: What it does with the folder and the plan that it is told; does not return.
    """

    def __init__(self, device: str, work: Callable[[Path, dict[str, Any]], Any]) -> None:
        told, self._tell = os.pipe()
        self._said, say = os.pipe()
        self.process = os.fork()
        if self.process:
            os.close(told)
            os.close(say)
            return
        try:
            for descriptor in (self._tell, self._said):
                os.close(descriptor)
            nothing = os.open(os.devnull, os.O_RDWR)
            # What the parent of all is told and says is not this process's.
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            os.close(nothing)
            warm(device)
            os.write(say, _READY)
            os.close(say)
            with os.fdopen(told, "r") as lines:
                line = lines.readline()
            if line:
                asked = json.loads(line)
                work(Path(asked["folder"]), asked["plan"])
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201 - the parent reads it
        finally:
            os._exit(1)

    def ready(self) -> bool:
        """Wait until it is; whether it is."""
        return os.read(self._said, 1) == _READY

    def go(self, folder: Path, plan: dict[str, Any]) -> int:
        """Tell it what to do; its process id."""
        with os.fdopen(self._tell, "w") as lines:
            lines.write(json.dumps({"folder": str(folder), "plan": plan}) + "\n")
        os.close(self._said)
        return self.process


def warm(name: str) -> None:
    """Do once, on tensors of our own, what every run does: the first time of each takes long. Memory is given back."""
    device = RealDevice(0, name)
    device.refresh()
    tensor = device.put(torch.zeros(64)).clone()
    with contextlib.suppress(Exception):  # where there is no profiler the run will say so
        device.activities(partial(tensor.fill_, 1.0))
    device.take(tensor)
    del tensor
    if name != "cpu":
        torch.cuda.empty_cache()
