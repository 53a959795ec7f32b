"""Ctrl-C leaves a run that can be resumed, and says how."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_process import ROOT, in_process

from tests.policies.chat_server import ChatServer, serving

ANSWER = """```cuda
#include <cuda_runtime.h>
__global__ void saxpy_kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        saxpy_kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
```
"""


def begun(server: ChatServer, case: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """A translation that waits for the server's answer."""
    command = [sys.executable, "-m", "cudaperf_agent.cli.main", "translate", str(case), "--out", str(out), *options]
    environment = {**os.environ, "CUDAPERF_ENDPOINT__URL": server.url, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.asked.wait(60), process.communicate(timeout=10)
    return process


def resume_command(err: str) -> list[str]:
    found = re.search(r"cudaperf (resume \S+ --out \S+)", err)
    assert found, err
    return found.group(1).split()


def read_until(process: subprocess.Popen[str], word: str) -> str:
    seen = ""
    assert process.stderr is not None
    for line in process.stderr:
        seen += line
        if word in line:
            return seen
    raise AssertionError(seen)


@pytest.mark.slow
def test_one_interrupt_lets_the_step_end_and_the_run_goes_on_later(c_cases: Path, tmp_path: Path) -> None:
    with serving(ANSWER, ["hold"]) as server:
        process = begun(server, c_cases / "saxpy.c", tmp_path)
        process.send_signal(signal.SIGINT)
        said = read_until(process, "interrupted: waiting")
        server.released.set()
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, said + err
        assert "Traceback" not in said + err
        assert out == ""
        done = in_process(*resume_command(err), env={**os.environ, "CUDAPERF_ENDPOINT__URL": server.url})
        assert done.returncode == 0, done.stderr
        # What had been answered was not asked again.
        assert len(server.requests) == 1
    assert (tmp_path / "saxpy.cu").exists()


@pytest.mark.slow
def test_a_second_interrupt_ends_it_at_once(c_cases: Path, tmp_path: Path) -> None:
    with serving(ANSWER, ["hold"]) as server:
        process = begun(server, c_cases / "saxpy.c", tmp_path, "--json")
        process.send_signal(signal.SIGINT)
        said = read_until(process, "interrupted: waiting")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        server.released.set()
    assert process.returncode == 130, said + err
    assert "Traceback" not in said + err
    error: dict[str, Any] = json.loads(out)["error"]
    assert error["kind"] == "interrupted"
    assert "cudaperf resume" in error["hint"]


@pytest.mark.slow
def test_termination_is_an_interrupt_too(c_cases: Path, tmp_path: Path) -> None:
    with serving(ANSWER, ["hold"]) as server:
        process = begun(server, c_cases / "saxpy.c", tmp_path)
        process.terminate()
        said = read_until(process, "interrupted: waiting")
        process.terminate()
        _, err = process.communicate(timeout=60)
        server.released.set()
    assert process.returncode == 130, said + err
    assert resume_command(err)
