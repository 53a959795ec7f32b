"""The few-shot pool: from the training split alone, what is shipped and what the rule lets in."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.policies.examples import SHIPPED, ExamplePool, PoolConfig
from cudaperf_agent.policies.prompts import build_messages
from cudaperf_agent.policies.similarity import loop_features
from cudaperf_agent.tasks.parse import load_task
from training.dataset.export import DATA
from training.dataset.families import all_programs
from training.dataset.pool import BASELINE, PoolRule, Worked, pool_lines, worked_examples
from training.dataset.table import read_rows, write_rows
from training.dataset.variants import variants_of
from training.splits import UNSEEN_FAMILIES, split_of

SOURCES = {program.name: program for program in all_programs()}


def task_row(name: str) -> dict[str, Any]:
    program = SOURCES[name]
    return {"task": name, "family": program.family, "member": program.member, "entry": program.entry,
            "source": program.source}  # fmt: skip


def variant(name: str, gain: float | None, source: str = "//", **more: Any) -> dict[str, Any]:
    return {"task": name, "family": name.split("/")[0], "status": "correct", "gain": gain, "origin": "generator",
            "source": source, **more}  # fmt: skip


def names(found: Iterable[Worked]) -> list[tuple[str, str]]:
    return [(worked.task, worked.source) for worked in found]


def test_families_take_turns_and_what_may_not_be_learned_from_is_left_out() -> None:
    assert "activation" in UNSEEN_FAMILIES
    tasks = [task_row(name) for name in ("horner/0", "horner/1", "horner/6", "horner/7", "matmul/0", "activation/0")]
    rows = [
        variant("horner/0", 2.0, "// best"), variant("horner/0", 1.0, "// worse"), variant("horner/1", 1.5),
        variant("horner/6", 5.0), variant("horner/7", 5.0), variant("activation/0", 5.0),
        variant("matmul/0", 0.5, "// fit"), variant("matmul/0", 3.0, origin="edit"),
        variant("matmul/0", 3.0, "/" * 5000), variant("matmul/0", 3.0, status="wrong"), variant("matmul/0", None),
    ]  # fmt: skip
    found = worked_examples(rows, tasks)
    assert names(found) == [("horner/0", "// best"), ("matmul/0", "// fit"), ("horner/1", "//")]
    assert [worked.speedup for worked in found] == [4.0, round(float(np.sqrt(2)), 2), round(2**1.5, 2)]
    assert {worked.split for worked in found} == {"train"}
    assert names(worked_examples([variant("horner/0", -0.5)], tasks)) == []


async def test_what_does_not_pass_is_replaced_by_the_next() -> None:
    tasks = [task_row(f"horner/{k}") for k in range(4)]
    found = worked_examples([variant(f"horner/{k}", 4.0 - k) for k in range(4)], tasks)

    async def passes(worked: Worked) -> bool:
        return worked.task != "horner/1"

    lines = [json.loads(line) for line in await pool_lines(found, passes, PoolRule(size=2))]
    assert [line["speedup"] for line in lines] == [16.0, 4.0]
    assert {line["baseline"] for line in lines} == {BASELINE}


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SHIPPED.read_text().splitlines()]


def test_the_shipped_pool_is_of_the_training_split_and_of_no_held_out_family() -> None:
    by_source = {program.source.strip(): program for program in SOURCES.values()}
    found = [by_source[entry["c_source"].strip()] for entry in entries()]
    assert len(found) == PoolConfig().pool == len({program.name for program in found})
    assert {split_of(program.family, program.member) for program in found} == {"train"}
    assert not {program.family for program in found} & UNSEEN_FAMILIES
    assert max(Counter(program.family for program in found).values()) <= 2


def test_the_shipped_pool_is_what_was_measured() -> None:
    pytest.importorskip("pyarrow")
    measured = {hashlib.sha256(row["source"].encode()).hexdigest(): row for row in read_rows(DATA / "variants.parquet")}
    for entry in entries():
        row = measured[hashlib.sha256(entry["cuda_source"].encode()).hexdigest()]
        assert row["status"] == "correct"
        assert row["origin"] in ("generator", "series")
        assert entry["speedup"] == round(2 ** row["gain"], 2)
        task = load_task(source=entry["c_source"], entry=SOURCES[row["task"]].entry)
        assert entry["features"] == pytest.approx(loop_features(task))
        assert entry["digest"] == task.digest


def test_five_examples_reach_a_full_prompt_with_their_baseline() -> None:
    pool = ExamplePool.load(SHIPPED)
    task = load_task(
        source="void scale(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = 3 * x[i]; }"
    )
    chosen = pool.select(task, 5)
    assert len(chosen) == 5
    assert [e.speedup for e in chosen] == sorted((e.speedup for e in chosen), reverse=True)
    text = build_messages(task, [], selector=pool)[-1].content
    assert f"## Example 1 ({chosen[0].speedup:.1f} times as fast as plain CUDA)" in text
    assert chosen[0].cuda_source.strip() in text


def test_the_command_writes_what_the_verifier_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    right = variants_of(load_task(source=SOURCES["horner/0"].source, entry=SOURCES["horner/0"].entry))[0].source
    wrong = right.replace("i < ", "i + 1 < ").replace(">= ", "+ 1 >= ")
    assert wrong != right
    write_rows([variant("horner/0", 1.0, right), variant("axpy_shift/0", 2.0, wrong)], tmp_path / "variants.parquet")
    write_rows([task_row("horner/0"), task_row("axpy_shift/0")], tmp_path / "tasks.parquet")
    out = tmp_path / "pool.jsonl"
    assert main(["dataset", "pool", "--data", str(tmp_path), "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"examples": 1, "path": str(out)}
    assert "axpy_shift/0: does not pass" in captured.err
    assert len(ExamplePool.load(out)) == 1
