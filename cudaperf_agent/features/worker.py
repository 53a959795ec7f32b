"""A child process that parses: a source that crashes or hangs the parser costs that process, not ours.

libclang is C++ that traps or overflows on some inputs, and candidates are untrusted. The child answers one JSON line
per source; it is started when first needed, replaced when it dies or runs late, and ends with its input. What this does
not cover: the child has the rights of the user who runs us; it only parses and never runs a candidate.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import selectors
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.features.model import LIMITS, Limits

_CHUNK = 1 << 16
_READY = b'{"ready": true}'


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the features as plain values, or why there are none."""

    features: dict[str, Any] | None
    reason: str = ""


class Worker:
    """Owns the child. Safe to call from several threads; calls take turns."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._rest = b""

    def ask(self, request: dict[str, Any]) -> Answer:
        """Send one request and wait for its answer.

        Raises:
            BackendUnavailable: The child cannot be started.
        """
        with self._lock:
            self._ensure()
            assert self._child is not None
            assert self._child.stdin is not None
            try:
                self._child.stdin.write(json.dumps(request).encode() + b"\n")
                self._child.stdin.flush()
            except OSError:
                self._stop()
                return Answer(None, "the parser ended unexpectedly")
            line = self._line(self._limits.answer_seconds)
            if line is None:
                late = self._child.poll() is None
                self._stop()
                return Answer(None, "parsing takes too long" if late else "the parser crashed")
            return Answer(json.loads(line))

    @property
    def process_id(self) -> int | None:
        """Of the child, `None` if there is none."""
        return self._child.pid if self._child is not None else None

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._stop()

    def _ensure(self) -> None:
        if self._child is not None and self._owner == os.getpid() and self._child.poll() is None:
            return
        if self._owner == os.getpid():
            self._stop()
        root = str(Path(__file__).parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._owner, self._rest = os.getpid(), b""
        self._child = subprocess.Popen(
            [sys.executable, "-m", "cudaperf_agent.features.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for us, who may let the step at work end
        )
        if self._line(self._limits.start_seconds) != _READY:
            self._stop()
            raise BackendUnavailable(
                "the feature extractor did not start",
                where="cudaperf_agent.features.worker",
                hint=f"`{sys.executable} -m cudaperf_agent.features.worker` shows why; is libclang 18.1.1 installed?",
            )

    def _line(self, seconds: float) -> bytes | None:
        assert self._child is not None
        assert self._child.stdout is not None

        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return None
                chunk = os.read(self._child.stdout.fileno(), _CHUNK)
                if not chunk:
                    self._child.wait(timeout=5)
                    return None
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def main() -> None:
    """Answer requests from stdin until it ends."""
    from cudaperf_agent.features.extract import extract_here

    resource.setrlimit(resource.RLIMIT_AS, (LIMITS.memory_bytes, LIMITS.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    extract_here("__global__ void k(float *x) { x[threadIdx.x] = 0; }")
    gc.collect()
    gc.freeze()  # what start-up made stays; the collector need not look at it again
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # nothing but answers may reach the parent
    answers.write(_READY + b"\n")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        found = extract_here(request["source"], ptxas=request["ptxas"], entry=request["entry"])
        answers.write(json.dumps(found.to_dict()).encode() + b"\n")


if __name__ == "__main__":
    main()
