"""Killed at any boundary and gone on with, an evaluation has the facts and the tables of an undisturbed one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("eval_kill_worker.py")


@pytest.mark.slow
def test_wherever_it_is_killed_the_tables_are_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WORKER), str(tmp_path), "11"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    undisturbed, *kills = map(json.loads, done.stdout.splitlines())
    assert undisturbed["boundaries"] > 100
    assert len(kills) == -(-undisturbed["boundaries"] // 11)
    # Steps that end together are written together, so that another process may have fewer boundaries.
    assert sum(kill["killed"] for kill in kills) >= 0.8 * len(kills)
    assert [kill["kill_at"] for kill in kills if not kill["same"]] == []
    assert "hidden wrong" in undisturbed["text"]
    assert "1 of 1 hand-written kernels pass" in undisturbed["text"]
