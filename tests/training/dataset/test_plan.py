"""What a visit measures: planned, measured on the emulator, merged, and joined with a policy's verdicts."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from training.dataset.edits.every import FURTHER_STRATEGIES
from training.dataset.export import DATA, add_measured
from training.dataset.measure import main as measure
from training.dataset.plan import ANCHORS, PlanConfig, harmless, plan_lines, read_plan, with_candidates, write_plan
from training.dataset.sampled import read_candidates, sampled_table, timed_candidates
from training.dataset.table import read_rows

KERNEL = """#define BLOCK %d
__global__ void k(int n, const float *a, const float *b, const float *t, float *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = a[i] + t[i] * (b[i] - a[i]);
}
extern "C" int three_way_blend_device(int n, const float *p, const float *q, const float *mix, float *res,
                                      cudaStream_t stream) {
  if (n > 0) k<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(n, p, q, mix, res);
  return cudaGetLastError();
}
"""


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """Of a task whose first variants are measured, whatever is by now, and of one of which nothing is."""
    rows = [r for r in read_rows(DATA / "variants.parquet") if r["strategy"] not in FURTHER_STRATEGIES]
    known = {"three_way_blend/0": frozenset(r["variant"] for r in rows if r["task"] == "three_way_blend/0")}
    return list(plan_lines(known, names=("three_way_blend/0", "flip_table/1")))


def answers(folder: Path, **other: Any) -> Path:
    """Four answers to one task: two correct, one the same as another, one wrong."""
    base = {"task": "three_way_blend/0", "status": "correct", "hidden": "correct", "phase": "sampled", "turn": 0}
    texts = [KERNEL % 64, KERNEL % 128, KERNEL % 64]
    rows = [{**base, "trajectory": i, "source": text, **other} for i, text in enumerate(texts)]
    rows.append({**base, "trajectory": 3, "source": KERNEL % 256, "status": "wrong", "hidden": None})
    rows.append({**base, "trajectory": 4, "source": None, "status": "no_code", "hidden": None})
    path = folder / "candidates.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_a_plan_has_anchors_then_what_is_not_measured(lines: list[dict[str, Any]]) -> None:
    by_name = {line["task"]: line["variants"] for line in lines}
    old, new = by_name["three_way_blend/0"], by_name["flip_table/1"]
    for variants in (old, new):
        assert [v["strategy"] for v in variants[:2]] == list(ANCHORS)
        assert variants[0]["naive"]
        assert all(len(v["phi"]) == 11 for v in variants)
    assert {v["strategy"] for v in old[2:]} <= FURTHER_STRATEGIES
    assert not {v["strategy"] for v in new[2:]} <= FURTHER_STRATEGIES  # it was not measured at all
    assert len({v["variant"] for v in new}) == len(new)


def test_a_plan_is_read_as_it_was_written(lines: list[dict[str, Any]], tmp_path: Path) -> None:
    for name in ("plan.jsonl", "plan.jsonl.gz"):
        assert write_plan(lines, tmp_path / name) == sum(len(line["variants"]) for line in lines)
        assert read_plan(tmp_path / name) == lines
    first = (tmp_path / "plan.jsonl.gz").read_bytes()
    write_plan(lines, tmp_path / "plan.jsonl.gz")
    assert (tmp_path / "plan.jsonl.gz").read_bytes() == first
    (tmp_path / "bad.jsonl.gz").write_text("no gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_plan(tmp_path / "bad.jsonl.gz")


def test_candidates_come_first_once_each_and_only_correct_ones(lines: list[dict[str, Any]], tmp_path: Path) -> None:
    joined = with_candidates(list(reversed(lines)), [answers(tmp_path)])
    assert [line["task"] for line in joined] == ["three_way_blend/0", "flip_table/1"]
    policy = [v for v in joined[0]["variants"] if v["origin"] == "policy"]
    assert [v["source"] for v in policy] == [KERNEL % 64, KERNEL % 128]
    assert [v["strategy"] for v in joined[0]["variants"][:2]] == list(ANCHORS)
    assert len(with_candidates([], [answers(tmp_path)], PlanConfig(most_sampled=1))[0]["variants"]) == 3


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" int f_device() { return system("true"); }',
        "#include <cstdlib>\n",
        '#include "/etc/passwd"\n',
        'extern "C" int f_device() { fopen("x", "w"); return 0; }',
    ],
)
def test_what_reaches_out_of_a_computation_is_not_timed(text: str, lines: list[dict[str, Any]], tmp_path: Path) -> None:
    assert harmless(KERNEL % 64)
    assert not harmless(text)
    assert with_candidates(lines, [answers(tmp_path, source=text)]) == lines


def test_the_whole_way_on_the_emulator(
    lines: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out, data = tmp_path / "plan.jsonl.gz", tmp_path / "out", tmp_path / "data"
    short = {**lines[0], "variants": lines[0]["variants"][:4]}
    write_plan([short], plan)
    candidates = answers(tmp_path)
    command = ["--plan", str(plan), "--candidates", str(candidates), str(tmp_path / "none.jsonl"), "--emulate", "50000"]
    assert measure([*command, "--out", str(out), "--workers", "1", "--seconds", "300"]) == 0
    assert "there are no candidates at" in capsys.readouterr().err
    rows = [json.loads(line) for line in (out / "measured-0.jsonl").read_text().splitlines()]
    assert {r["status"] for r in rows if "variant" in r} == {"correct"}
    assert len([r for r in rows if "variant" in r]) == 6
    assert rows[-1]["device"] == "emulator"
    assert measure([*command, "--out", str(out), "--workers", "1", "--seconds", "300"]) == 0
    assert "0 tasks to measure" in capsys.readouterr().err

    data.mkdir()
    kept = [r for r in read_rows(DATA / "variants.parquet") if r["task"] == "three_way_blend/1"]
    from training.dataset.table import write_rows

    write_rows(kept, data / "variants.parquet")
    shutil.copy(DATA / "tasks.parquet", data / "tasks.parquet")
    merge = ["dataset", "merge", "--plan", str(plan), "--measured", str(out), "--data", str(data), "--json"]
    assert main(merge) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["variants"], first["tasks"], first["again"]) == (4, 0, 0)
    assert main(merge) == 0  # a second time adds nothing, and finds everything again
    again = json.loads(capsys.readouterr().out)
    assert (again["variants"], again["again"], again["apart_log2"]) == (0, 3, 0)
    merged = read_rows(data / "variants.parquet")
    assert [r for r in merged if r["task"] == "three_way_blend/1"] == kept
    assert "policy" not in {r["origin"] for r in merged}
    assert all(r["gain"] == 0 for r in merged if r["naive"] and r["task"] == "three_way_blend/0")

    times = tmp_path / "times.jsonl"
    assert (
        main(["dataset", "sampled", "--candidates", str(candidates), "--measured", str(out), "--out", str(times)]) == 0
    )
    assert "5 candidates, 3 with a time" in capsys.readouterr().out
    found = read_candidates(times)
    assert [c.status for c in found] == ["correct"] * 3 + ["wrong", "no_code"]
    assert found[0].samples == found[2].samples
    assert all(c.naive for c in found[:3])
    assert len(sampled_table(times)) == 2  # one of the same text


def test_a_candidate_that_the_measurement_finds_wrong_has_no_time(tmp_path: Path) -> None:
    path = answers(tmp_path)
    digest = read_candidates(path)[0].digest
    wrong = {"task": "three_way_blend/0", "variant": digest, "status": "wrong", "samples": [1.0], "naive": False}
    found = timed_candidates([path], [wrong])
    assert [(f["status"], f.get("seconds")) for f in found[:3]] == [("wrong", None), ("correct", None), ("wrong", None)]


def test_a_merge_of_nothing_is_refused(
    lines: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="nothing of the plan"):
        add_measured(lines, [], DATA)
    write_plan(lines, tmp_path / "p.jsonl")
    assert (
        main(["dataset", "merge", "--plan", str(tmp_path / "p.jsonl"), "--measured", str(tmp_path / "no")])
        == EXIT_USAGE
    )
    assert "no measured slices" in capsys.readouterr().err


def test_the_command_writes_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plan.jsonl.gz"
    assert main(["dataset", "plan", "--out", str(out), "--task", "upper_case/0", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (line,) = read_plan(out)
    assert report == {"variants": len(line["variants"]), "path": str(out), "bytes": out.stat().st_size}
    assert main(["dataset", "plan", "--out", str(out), "--task", "upper_cas/0"]) == EXIT_USAGE
