"""A second measurement: kept in short, and joined with the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from training.dataset.again import AGAIN, DIGITS, in_short, measured_twice, read_again
from training.dataset.export import DATA
from training.dataset.table import EXTENDED, read_rows, write_rows

FIRST = "0123456789abcdef" + "0" * 48


def measured(variant: str, samples: list[float], status: str = "correct", task: str = "f/0") -> dict[str, Any]:
    return {"task": task, "variant": variant * 64, "status": status, "worst_error": 0.25, "samples": samples}


def exported(variant: str, seconds: float, status: str = "correct", task: str = "f/0") -> dict[str, Any]:
    """A row of an export; variant a is the naive one, of 8 s."""
    return {
        **dict.fromkeys(ORDER, 1.0),
        **dict.fromkeys((f"x_{name}" for name in EXTENDED), None),
        "task": task,
        "family": "f",
        "variant": variant * 64,
        "strategy": f"s{variant}",
        "parameters": "{}",
        "origin": "edit",
        "length": 100,
        "naive": variant == "a",
        "status": status,
        "worst_error": 2.0,
        "samples": [seconds],
        "gain": float(np.log2(8 / seconds)) if status == "correct" else None,
        "gain_error": 0.5,
    }


def test_in_short_a_variant_is_its_median_and_the_error_of_that() -> None:
    rows = [
        {**measured("0", [8.0, 8.0, 8.0]), "variant": FIRST},
        {"task": "f/0", "status": "launch_error", "variant": "f" * 64},
        {"task": "f/0", "device": "a GPU", "done": True},
        {**measured("0", [4.0, 1.0, 2.0]), "variant": FIRST},  # measured again: this one counts
    ]
    short, failed = in_short(rows)
    # log2: 2, 0, 1; the deviation from their median has the median 1: 1.253 · 1.4826 · 1 / √3 = 1.07254
    assert short == {
        "task": "f/0",
        "variant": FIRST[:DIGITS],
        "status": "correct",
        "worst_error": 0.25,
        "seconds": 2.0,
        "error": 1.07254,
    }
    assert failed == {
        "task": "f/0",
        "variant": "f" * DIGITS,
        "status": "launch_error",
        "worst_error": None,
        "seconds": None,
        "error": None,
    }


def test_the_two_are_joined_row_by_row() -> None:
    rows = [
        exported("a", 8.0), exported("b", 4.0), exported("c", 2.0, "wrong"), exported("d", 1.0), exported("e", 1.0),
        exported("a", 8.0, task="f/1"), exported("b", 4.0, task="f/1"),
    ]  # fmt: skip
    again = in_short([
        measured("a", [6.0]), measured("b", [1.5]), measured("c", [2.0]), measured("d", [1.0], "wrong"),
        measured("a", [6.0], "wrong", "f/1"), measured("b", [3.0], task="f/1"), measured("b", [3.0], task="f/2"),
    ])  # fmt: skip
    both = measured_twice(rows, again)
    assert len(both.table) == 6
    assert both.rows.tolist() == [0, 1]  # c was wrong, d is now, e was not measured again, f/1 has no naive time now
    assert both.first.gain.tolist() == [0, 1]
    assert both.second.gain.tolist() == [0, 2]  # over its own naive time
    assert both.second.error.tolist() == [0, 0]
    assert (both.seconds.tolist(), both.again.tolist()) == ([8, 4], [6, 1.5])
    assert both.matched == 6
    assert [(c["task"], c["strategy"], c["first"], c["second"]) for c in both.changed] == [
        ("f/0", "sc", "wrong", "correct"), ("f/0", "sd", "correct", "wrong"), ("f/1", "sa", "correct", "wrong"),
    ]  # fmt: skip
    assert (both.changed[0]["worst_first"], both.changed[0]["worst_second"]) == (2.0, 0.25)
    with pytest.raises(ConfigError, match="no variant is correct and timed in both"):
        measured_twice(rows, again[2:])


def test_it_is_read_from_slices_from_what_was_kept_and_from_an_export(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [measured("b", [1.0, 2.0, 4.0]), measured("a", [3.0])]
    (tmp_path / "slices").mkdir()
    (tmp_path / "slices" / "measured-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_rows(rows, tmp_path / "export.parquet")
    found = read_again([tmp_path / "slices"])
    assert [row["seconds"] for row in found] == [3.0, 2.0]
    write_rows(found, tmp_path / "kept.parquet")
    assert read_again([tmp_path / "kept.parquet"]) == read_again([tmp_path / "export.parquet"]) == found


@pytest.mark.parametrize("text", ["no JSON\n", "[]\n", '{"variant": 3}\n', '{"task": "f/0", "variant": "aa"}\n'])
def test_what_is_no_measurement_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"other\.jsonl: this is no measurement"):
        read_again([path])
    (tmp_path / "other.parquet").write_text(text)
    with pytest.raises(ConfigError, match=r"other\.parquet: this is no measurement"):
        read_again([tmp_path / "other.parquet"])
    with pytest.raises(ConfigError, match="there is no second measurement"):
        read_again([tmp_path / "none.parquet"])


def test_what_is_kept_in_the_checkout_is_of_what_is_learned_from() -> None:
    rows, again = read_rows(DATA / "variants.parquet"), read_again([AGAIN])
    short = {(row["task"], row["variant"][:DIGITS]) for row in rows}
    assert len(short) == len(rows)
    both = measured_twice(rows, again)
    assert (len(again), both.matched, len(both.first)) == (6543, 6538, 6501)
    assert {c["task"] for c in both.changed} == {"lower_product/0", "matvec_flipped/4"}
    assert AGAIN.stat().st_size < 300_000
