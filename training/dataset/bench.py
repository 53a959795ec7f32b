"""The process that has the device: `bench.cu`, told line by line what to run, and started again after a crash."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable
from training.dataset.job import Job

SOURCE = Path(__file__).with_name("bench.cu")


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """Numbers of a measurement.

    Attributes:
        warmups: Calls of the timed set before those that count.
        samples: Timed calls.
        seconds: A variant gets no more samples than five once it has taken so long.
        deadline: Seconds after which a variant that does not answer is given up.
        l2_factor: The L2 is emptied by writing so many times its size.
        slice_bytes: A results file is closed once it is this large.
        reserve: Seconds kept back at the end of a slice for what is under way.
        tasks: After so many tasks the process is started anew: each library brings a CUDA runtime of its own, and what
            they hold is given back only then.
    """

    warmups: int = 2
    samples: int = 15
    seconds: float = 0.2
    deadline: float = 30.0
    l2_factor: float = 2.0
    slice_bytes: int = 14 << 20
    reserve: float = 20.0
    tasks: int = 40


@dataclass(slots=True)
class Bench:
    """A running `bench.cu`, started again after a crash."""

    program: Path
    config: BenchConfig
    l2_bytes: int
    env: Mapping[str, str] | None = None
    _process: subprocess.Popen[bytes] | None = None
    _pending: bytes = b""
    _served: int = 0

    def time(self, job: Job) -> list[dict[str, Any]]:
        """What the bench says of each run of a job, in order.

        ``like`` is the run that its outputs were compared with on the device: the first of its process.
        """
        answers: list[dict[str, Any]] = []
        staged, like = False, -1
        for number, run in enumerate(job.runs):
            if not staged:
                self._stage(job)
                staged, like = True, -1
            prefix = str(Path(job.folder) / f"out{number}")
            c = self.config
            self._say(f"run {run.library} {run.symbol} {prefix} {c.warmups} {c.samples} {c.seconds}")
            answer = self._answer()
            if answer["status"] == "ok" and like < 0:
                like = number
            answers.append({**answer, "like": like})
            if answer["status"] != "ok":
                self.stop()
                staged = False
        self._served += 1
        if staged:
            self._say("end")
        if self._served >= self.config.tasks:
            self.stop()
        return answers

    def stop(self) -> None:
        """End the process, if one runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process, self._pending, self._served = None, b"", 0

    def _stage(self, job: Job) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [str(self.program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **(self.env or {})},
                start_new_session=True,  # a signal to all of a slice's processes is not for it: `stop` ends it
            )
            ready = self._answer()
            if ready["status"] != "ready":
                raise BackendUnavailable(f"the bench does not start: {ready.get('message', ready['status'])}")
            self._say(f"flush {int(self.l2_bytes * self.config.l2_factor)}")
        for arguments in job.arguments:
            self._say("set")
            for kind, size, path in arguments:
                self._say(f"arg {kind} {size} {path}")

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its last words are read as the answer

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        until = time.monotonic() + self.config.deadline
        while b"\n" not in self._pending:
            left = until - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left))
            if not ready:
                return {"status": "timeout", "message": f"no answer in {self.config.deadline:g} s"}
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                return {"status": "crash", "message": f"the bench ended with status {self._process.wait()}"}
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer
