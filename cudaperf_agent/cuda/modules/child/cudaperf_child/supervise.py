"""Several runs of one candidate from one import of torch: each in a forked process with an empty folder of its own.

A run that has ended leaves nothing behind for the next: what it wrote is taken away, whatever it started is killed.
The runs ask for are in the request; if it wants them, runs without each kernel follow, by what the first one launched.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import torch

from .ahead import Ahead
from .candidate import Run  # all that every run needs is imported before the first fork
from .wire import read_json, write_json

_POLL_SECONDS = 0.005
_SAID = 4000
_MOST_KERNELS = 12
_RESULTS = ("results.jsonl", "outputs.bin")
_GIVEN = ("model_new.py", "inputs.bin", "state.bin", "kernels")


class Supervisor:
    """Runs plans one after another.

    Args:
        folder: The only folder that can be written to.
        ahead: A process that waits for the first plan already.
    """

    def __init__(self, folder: Path, ahead: Ahead | None = None) -> None:
        self._folder = folder
        self._ahead = ahead
        self._request = read_json(folder / "request.json")
        self._kept: list[dict[str, bytes]] = []
        self._ends: list[dict[str, Any]] = []

    def all(self) -> None:
        """Every plan of the request, then one for each kernel; results are written when nobody runs any more.

        Where the first run stopped early the verdict is made, and no other follows.
        """
        plans = list(self._request["plans"])
        self._one(plans[0])
        if self._stopped_early():
            del plans[1:]
        for plan in plans[1:]:
            self._one(plan)
        if self._request["each_kernel"] is not None and self._ends[0]["returncode"] == 0:
            base = self._request["each_kernel"]
            for kernel in self._launched()[:_MOST_KERNELS]:
                plans.append({**base, "suppress": kernel})
                self._one(plans[-1])
        for number, files in enumerate(self._kept):
            for name, data in files.items():
                (self._folder / f"{number}.{name}").write_bytes(data)
        ended = [{**plan, **end} for plan, end in zip(plans, self._ends, strict=True)]
        write_json(self._folder / "ended.json", ended)

    def _one(self, plan: dict[str, Any]) -> None:
        folder = self._folder / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in _GIVEN:
            os.symlink(self._folder / name, folder / name)
        write_json(folder / "request.json", {**self._request, **plan})
        started = time.monotonic()
        if self._ahead is not None:
            child, self._ahead = self._ahead.go(folder, plan), None
        else:
            child = os.fork()
            if child == 0:
                work(folder, plan)
        status, timed_out = self._waited(child, started)
        if self._request["alone"]:
            self._sweep()
        said = _read(folder / "stderr", _SAID).decode("utf-8", "replace")
        code = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        self._ends.append({"returncode": code, "timed_out": timed_out, "stderr": said, "seconds": seconds})
        self._kept.append({name: _read(folder / name) for name in _RESULTS})
        shutil.rmtree(folder, ignore_errors=True)

    def _waited(self, child: int, started: float) -> tuple[int, bool]:
        timed_out = False
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status, timed_out
            if not timed_out and time.monotonic() - started > self._request["seconds"]:
                timed_out = True
                os.kill(child, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def _sweep(self) -> None:
        """Whatever a run left running; in a process namespace of our own nobody else is met."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
        if not self._request["private_tmp"]:
            return
        for leftover in Path("/tmp").iterdir():
            if leftover in (self._folder, *self._folder.parents):
                continue
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    leftover.unlink()

    def _stopped_early(self) -> bool:
        """Whether not all cases of the first run came back: it was ended, ended itself, or nothing could be called."""
        back = [line for line in self._told() if line.get("stage") == "case"]
        return len(back) < len(list(self._request["cases"]))

    def _launched(self) -> list[str]:
        """Launch statements of the first run, the widest first."""
        widest: dict[str, int] = {}
        for line in self._told():
            try:
                report = json.loads(line.get("report") or "{}")
                for kernel, threads in report.get("kernels", {}).items():
                    widest[str(kernel)] = max(int(threads), widest.get(str(kernel), 0))
            except (ValueError, TypeError, AttributeError):
                continue
        return sorted(widest, key=lambda kernel: -widest[kernel])

    def _told(self) -> list[dict[str, Any]]:
        """What the first run said; a stranger wrote it."""
        found = []
        for line in self._kept[0]["results.jsonl"].splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                said = json.loads(line)
                if isinstance(said, dict):
                    found.append(said)
        return found


def work(folder: Path, plan: dict[str, Any]) -> NoReturn:
    """Run a plan in this process, which is the run's own."""
    code = 1
    try:
        os.environ |= plan["environment"] | {"HOME": str(folder), "TMPDIR": str(folder)}
        os.environ.pop("CUDAPERF_EMULATOR_SUPPRESS", None)
        if plan.get("suppress"):
            os.environ["CUDAPERF_EMULATOR_SUPPRESS"] = plan["suppress"]
        os.chdir(folder)
        heard = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(heard, 1)
        os.dup2(heard, 2)
        Run(folder).all()
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - the parent reads it
    finally:
        sys.stderr.flush()
        os._exit(code)


def _read(path: Path, last: int | None = None) -> bytes:
    """A plain file, or its last bytes; empty for anything else."""
    try:
        if path.is_symlink():
            return b""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        if last is not None:
            file.seek(max(0, os.fstat(descriptor).st_size - last))
        return file.read()


def main(folder: Path) -> None:
    """Answer the request of a folder."""
    torch.set_num_threads(1)
    Supervisor(folder).all()
