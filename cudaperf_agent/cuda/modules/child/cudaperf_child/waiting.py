"""Imports all that a run needs, says that it is ready, and waits until its folder holds a request.

``waiting.json`` of the folder names the device. One job, then the process ends.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from .ahead import Ahead
from .supervise import Supervisor, work
from .wire import read_json


def main(folder: Path) -> None:
    """Wait for a line, then answer the request of a folder; without one there is nothing to do."""
    torch.set_num_threads(1)
    ahead = Ahead(str(read_json(folder / "waiting.json")["device"]), work)
    if not ahead.ready():
        raise SystemExit("its device cannot be made ready")
    os.write(1, b"ready\n")
    asked = os.read(0, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if asked:
        Supervisor(folder, ahead).all()
    os._exit(0)  # what torch does at the end of a process takes longer than most runs
