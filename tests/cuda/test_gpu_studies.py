"""The studies that only a GPU can answer, rehearsed on a stand-in: they run, leave rows, go on where they were cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def studied(out: Path, parts: str) -> list[dict[str, Any]]:
    """The rows after a run."""
    command = [sys.executable, "-m", "benchmarks.verdicts_gpu", "--emulate", "--out", str(out), "--seconds", "240"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--parts", parts],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.slow
def test_shares_are_timed_twice_and_only_once(tmp_path: Path) -> None:
    rows = studied(tmp_path / "rows.jsonl", "machine,shares:200")
    shares = [r for r in rows if r["part"] == "share"]
    assert {r["kernel"] for r in shares} == {"saxpy", "stencil", "matmul"}
    assert all(r["status"] == "correct" and r["ratio"] > 0 for r in shares), shares
    assert all(r["clocks"]["device"]["null_call_seconds"] >= 0 for r in shares)
    assert [r["name"] for r in rows if r["part"] == "done"] == ["machine", "shares"]
    assert studied(tmp_path / "rows.jsonl", "machine,shares:200") == rows, "what is done is not done again"
