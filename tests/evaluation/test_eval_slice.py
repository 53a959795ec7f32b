"""The whole way of one evaluation: real graph, real compiler and emulator, killed and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = """#include <cuda_runtime.h>
__global__ void k(int n, float a, const float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] SIGN y[i]; }
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{ if (n > 0) k<<<(n + 127) / 128, 128, 0, stream>>>(n, a, x, y); return cudaGetLastError(); }
"""


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "cudaperf_agent.cli.main", "eval", *map(str, arguments)]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "CUDAPERF_DATA_DIR": str(home)}


def evaluate(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=ROOT, env=environment(home), capture_output=True, text=True, timeout=290, check=False
    )


@pytest.fixture
def suite(tmp_path: Path, c_cases: Path) -> Path:
    folder = tmp_path / "three"
    folder.mkdir()
    for name in ("saxpy", "dot", "rgb_to_gray"):
        shutil.copy(c_cases / f"{name}.c", folder)
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Of saxpy: wrong, then right. What it gives to other tasks does not compile into them."""
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "1.cu").write_text(KERNEL.replace("SIGN", "-"))
    (folder / "2.cu").write_text(KERNEL.replace("SIGN", "+"))
    return folder


def killed_after(home: Path, lines: int, *arguments: str | Path) -> None:
    """Starts the command; kills it once it has told so many lines about tasks."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    told = 0
    for line in process.stderr:
        told += line.startswith("[")
        if told >= lines:
            break
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stderr.close()


@pytest.mark.slow
def test_killed_and_gone_on_with_the_tables_are_the_same_byte_for_byte(
    tmp_path: Path, suite: Path, script: Path
) -> None:
    run = ("run", "--suite", suite, "--policy", f"scripted:{script}", "--n", "2", "--seeds", "2", "--out", "e")
    whole = evaluate(tmp_path / "whole", *run)
    assert whole.returncode == 0, whole.stderr
    killed = tmp_path / "killed"
    killed_after(killed, 1, *run, "--tasks-at-once", "1")
    partly = evaluate(killed, "report", "e", "--json")
    assert sum(bool(t["outcomes"]) for t in json.loads(partly.stdout)["evaluation"]["tasks"]) == 1
    again = evaluate(killed, *run)
    assert again.returncode == 0, again.stderr
    assert again.stdout == whole.stdout
    pages = []
    for home in (killed, tmp_path / "whole"):
        files = [tmp_path / f"{home.name}.html", tmp_path / f"{home.name}.md"]
        told = evaluate(home, "report", "e", "--json", "--html", files[0], "--markdown", files[1])
        pages.append([told.stdout, *(f.read_bytes() for f in files)])
    assert pages[0] == pages[1]
    facts: Any = json.loads(told.stdout)
    by_key = {t["key"]: t for t in facts["evaluation"]["tasks"]}
    assert [o["correct"] for o in by_key["three/saxpy"]["outcomes"]] == [True] * 4
    assert [t["status"] for t in by_key["three/saxpy"]["outcomes"][0]["turns"]] == ["wrong", "correct"]
    assert not any(o["correct"] for o in by_key["three/dot"]["outcomes"])
    assert "1 of 3" not in whole.stdout
    assert "Nothing was timed" in whole.stdout
    # Nothing that had finished is done again, and nothing is left.
    started = time.monotonic()
    third = evaluate(killed, *run)
    assert third.stdout == whole.stdout
    assert "[" not in third.stderr
    assert time.monotonic() - started < 60


@pytest.mark.slow
def test_a_babeltower_file_is_run_and_reported(tmp_path: Path) -> None:
    path = ROOT / "tests" / "cases" / "babeltower" / "four.jsonl"
    done = evaluate(tmp_path, "run", "--suite", path, "--policy", "variants", "--json")
    assert done.returncode == 0, done.stderr
    told: Any = json.loads(done.stdout)
    estimates = told["estimates"]["four"]
    assert (estimates["tasks"], estimates["refused"], estimates["unfinished"]) == (3, 1, 0)
    assert estimates["pass_at"]["1"]["value"] == 1.0
    # Of the file's own kernels one is right, one is right only up to one block, one computes on the CPU.
    hands = {t["key"]: t["hand"] and t["hand"]["reason"] for t in told["evaluation"]["tasks"]}
    assert hands == {"four/0": "", "four/1": "wrong", "four/2": "cheat", "four/3": None}
    # By the file's own few elements all three are.
    assert [t["hand"]["given"] for t in told["evaluation"]["tasks"] if t["hand"]] == [True] * 3
    assert (estimates["given_tasks"], estimates["given_at"]["1"]["value"]) == (3, 1.0)
    report = evaluate(tmp_path, "report", "four-variants").stdout
    assert "3 of the 3 pass the benchmark's own cases" in report
    assert "1 of 3 hand-written kernels pass" in report
    sizes = {
        line.split("  ")[1].strip(): float(line.split()[-1])
        for line in report.splitlines()
        if line.startswith("  ") and " elements " in line
    }
    assert sizes["its elements"] <= 4 < 100 < sizes["our elements"]


@pytest.mark.slow
def test_a_pytorch_module_is_verified_for_real(tmp_path: Path) -> None:
    folder = ROOT / "tests" / "cases" / "kernelbench"
    run = ("run", "--suite", folder, "--policy", "variants", "--turns", "1", "--limit", "1", "--json")
    done = evaluate(tmp_path, *run)
    assert done.returncode == 0, done.stderr
    told: Any = json.loads(done.stdout)
    (task,) = told["evaluation"]["tasks"]
    assert task["key"] == "level1/1_ReLU"
    assert [o["correct"] for o in task["outcomes"]] == [True]
    assert task["outcomes"][0]["cases"] > 1
    assert "Limited to 1 of the suite's 20 tasks" in " ".join(told["evaluation"]["notes"])
