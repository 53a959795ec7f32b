"""Built and measured rows joined, counted, written and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from cudaperf_agent.features.model import ORDER
from training.dataset.build import build, read_lines
from training.dataset.export import family_export, merged, statistics, transfer_export, write_export
from training.dataset.plan import write_plan
from training.dataset.table import from_rows, load_table, median_error, read_rows
from training.dataset.transfer import transfer_lines


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("built") / "built.jsonl"
    made = build(path, most=6, names=["axpy_shift/0", "matmul/0"])
    assert (made.tasks, made.declined) == (2, ())
    before = path.read_bytes()
    path.write_bytes(before[:-50])  # killed while it wrote the second task
    assert build(path, most=6, names=["axpy_shift/0", "matmul/0"]).variants == made.variants
    assert path.read_bytes() == before
    return list(read_lines(path))


def measured(built: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The k-th variant takes k + 1 times 100 µs; the last of each task is wrong."""
    rows: list[dict[str, Any]] = []
    for line in built:
        for k, v in enumerate(line["variants"]):
            last = k + 1 == len(line["variants"])
            rows.append(
                {
                    "task": line["task"],
                    "variant": v["variant"],
                    "status": "wrong" if last else "correct",
                    "message": "",
                    "worst_error": 0.1,
                    "samples": [1e-4 * (k + 1) * (1 + 0.01 * s) for s in range(-2, 3)],
                }
            )
        rows.append({"task": line["task"], "done": True, "device": "NVIDIA H200", "bytes": 1000})
    return rows


def test_gains_are_over_the_naive_variant_and_the_wrong_have_none(built: list[dict[str, Any]]) -> None:
    rows = merged(built, measured(built))
    first = [r for r in rows if r["task"] == "axpy_shift/0"]
    assert first[0]["naive"]
    assert first[0]["gain"] == 0
    assert first[1]["gain"] == pytest.approx(-1)
    assert first[2]["gain"] == pytest.approx(-np.log2(3))
    assert first[-1]["gain"] is None
    assert {r["device"] for r in rows} == {"NVIDIA H200"}
    assert tuple(first[0][name] for name in ORDER) == tuple(built[0]["variants"][0]["phi"])


def test_a_task_whose_naive_variant_failed_has_no_gains(built: list[dict[str, Any]]) -> None:
    rows = measured(built)
    rows[0]["status"] = "wrong"
    assert all(r["gain"] is None for r in merged(built, rows) if r["task"] == built[0]["task"])


def test_what_is_exported_comes_back_as_a_table(built: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    paths = write_export(family_export(built, measured(built)), tmp_path)
    assert all(p.is_file() for p in paths)
    table = load_table(tmp_path / "variants.parquet")
    direct = from_rows(merged(built, measured(built)))
    np.testing.assert_array_equal(table.phi, direct.phi)
    np.testing.assert_array_equal(table.gain, direct.gain)
    assert table.digest == direct.digest
    assert len(table) == sum(len(line["variants"]) - 1 for line in built)
    assert set(table.family) == {"axpy_shift", "matmul"}


def test_nothing_measured_is_said_so(built: list[dict[str, Any]]) -> None:
    with pytest.raises(ConfigError, match="measured"):
        family_export(built, [])
    with pytest.raises(ConfigError, match="no timed variants"):
        from_rows(merged(built, []))


def test_statistics_count_what_is_there(built: list[dict[str, Any]]) -> None:
    found = statistics(merged(built, measured(built)))
    total = sum(len(line["variants"]) for line in built)
    assert (found["tasks"], found["variants"], found["measured_variants"]) == (2, total, total - 2)
    assert found["status"] == {"correct": total - 2, "wrong": 2}
    assert found["naive_outside_window"] == []
    slow = [{**r, "samples": [s * 1000 for s in r["samples"]]} if "samples" in r else r for r in measured(built)]
    assert statistics(merged(built, slow))["naive_outside_window"] == ["axpy_shift/0", "matmul/0"]


def test_the_error_of_a_median_shrinks_with_samples_and_ignores_an_outlier() -> None:
    few = [1.0, 1.01, 0.99, 1.02, 0.98]
    assert median_error(few * 4) == pytest.approx(median_error(few) / 2)
    assert median_error([*few, 50.0]) < 0.1


def test_hand_written_kernels_are_exported_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    (line,) = transfer_lines(["transfer/heat3d"])
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "measured-0.jsonl").write_text("".join(json.dumps(r) + "\n" for r in measured([line])))
    (tmp_path / "built.jsonl").write_text("")
    places = ["--built", str(tmp_path / "built.jsonl"), "--measured", str(tmp_path / "measured")]
    assert main(["dataset", "export", *places, "--out", str(tmp_path)]) == 0
    assert "transfer.parquet" in capsys.readouterr().out
    assert not (tmp_path / "variants.parquet").exists()
    table = load_table(tmp_path / "transfer.parquet")
    assert set(table.task) == {"transfer/heat3d"}
    assert set(table.family) == {"heat3d"}
    assert set(table.origin) == {"hand"}
    assert len(table) == 7  # the last is wrong
    with pytest.raises(ConfigError, match="hand-written"):
        transfer_export([])


def test_an_export_loses_nothing_that_a_merge_added(
    built: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    first, second = built
    for line in built:
        kept = "".join(json.dumps(r) + "\n" for r in measured([line]))
        (tmp_path / line["family"]).mkdir()
        (tmp_path / line["family"] / "measured-0.jsonl").write_text(kept)
    (tmp_path / "built.jsonl").write_text(json.dumps(first) + "\n")
    write_plan([second], tmp_path / "plan.jsonl")
    data = tmp_path / "data"
    slices = ["--measured", str(tmp_path / first["family"])]
    export = ["dataset", "export", "--built", str(tmp_path / "built.jsonl"), *slices, "--out", str(data)]
    merge = ["dataset", "merge", "--plan", str(tmp_path / "plan.jsonl"), "--data", str(data)]
    assert main(export) == 0
    assert main(export) == 0  # the same again loses nothing
    assert main([*merge, "--measured", str(tmp_path / second["family"])]) == 0
    before = {p.name: p.read_bytes() for p in data.iterdir()}
    capsys.readouterr()

    assert main(export) == EXIT_USAGE
    told = capsys.readouterr()
    lost = f"{len(second['variants'])} of the rows that are there, such as one of {second['task']}, would be lost"
    assert f"{data / 'variants.parquet'}: {lost}" in told.err
    for remedy in ("--out", "--replace", "cudaperf dataset merge"):
        assert remedy in told.err
    assert {p.name: p.read_bytes() for p in data.iterdir()} == before

    assert main([*export, "--replace"]) == 0
    assert {r["task"] for r in read_rows(data / "variants.parquet")} == {first["task"]}
    assert {r["task"] for r in read_rows(data / "tasks.parquet")} == {first["task"]}


def test_of_an_export_that_would_lose_rows_nothing_is_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [{"task": "a/0", "variant": "1"}, {"task": "a/0", "variant": "2"}]
    write_export({"variants.parquet": rows[:1], "transfer.parquet": rows}, tmp_path)
    with pytest.raises(ConfigError, match="1 of the rows"):
        write_export({"variants.parquet": rows, "transfer.parquet": rows[1:]}, tmp_path)
    assert len(read_rows(tmp_path / "variants.parquet")) == 1
    (tmp_path / "transfer.parquet").write_text("something else")
    with pytest.raises(ConfigError, match="this is no export") as caught:
        write_export({"transfer.parquet": rows}, tmp_path)
    assert "--replace" in str(caught.value.hint)
    write_export({"transfer.parquet": rows}, tmp_path, replace=True)
    assert read_rows(tmp_path / "transfer.parquet") == rows
