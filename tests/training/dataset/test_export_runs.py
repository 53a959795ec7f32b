"""Stored turns as Parquet: what stopped before a case was run is unfinished, whichever version stored it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.store.repository import Store
from tests.store.store_samples import GENERATED, new_run, step
from training.dataset.export_runs import write_runs

COMPILED = Verdict(Status.CORRECT)
TESTED = Verdict(Status.CORRECT, passed=4, total=4)
# Turn by turn: what the nodes found, what an older version wrote as status (`None`: as today's does), what is exported.
TURNS = [
    ({"compile": COMPILED, "test": TESTED}, None, "correct"),
    ({"compile": COMPILED}, None, "unfinished"),
    ({"compile": COMPILED}, "correct", "unfinished"),
    ({"compile": COMPILED}, "", "unfinished"),
    ({}, "", "unfinished"),
    ({"compile": Verdict(Status.COMPILE_ERROR)}, None, "compile_error"),
    ({"compile": COMPILED, "test": Verdict(Status.WRONG, passed=1, total=4)}, None, "wrong"),
]


def test_a_turn_in_which_no_case_was_run_is_exported_as_unfinished(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the training extra is not installed")
    database, path = tmp_path / "store.sqlite", tmp_path / "runs.parquet"
    with Store(f"sqlite:///{database}") as store:
        run = new_run(store)
        for turn, (found, _, _) in enumerate(TURNS):
            store.save_step(step(run, "generate", GENERATED, turn))
            for node, verdict in found.items():
                store.save_step(step(run, node, {"verdict": verdict.to_dict()}, turn))
        declined = {**GENERATED, "source": None, "declined": "too hard", "stop": "declined: too hard"}
        for turn in (len(TURNS), len(TURNS) + 1):
            store.save_step(step(run, "generate", declined, turn))
    with sqlite3.connect(database) as older:
        for turn, (_, status, _) in enumerate(TURNS):
            if status is not None:
                changed = older.execute("UPDATE attempts SET status = ? WHERE turn = ?", (status, turn))
                assert changed.rowcount == 1
        older.execute("UPDATE attempts SET status = '' WHERE turn = ?", (len(TURNS),))
    with Store(f"sqlite:///{database}") as store:
        assert [a.status for a in store.attempts(run)][1:4] == ["", "correct", ""]
        write_runs(store, path)
    rows = parquet.read_table(path).to_pylist()
    assert [row["status"] for row in rows] == [*(wanted for _, _, wanted in TURNS), "declined", "declined"]
