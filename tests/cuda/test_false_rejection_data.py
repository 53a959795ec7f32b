"""The committed verdicts of correct kernels: enough, of today's texts, each rejection told in the docs."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.false_rejections import by_hand, of_families

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks" / "false_rejections.jsonl"


def rows() -> list[dict[str, str]]:
    return [json.loads(line) for line in DATA.read_text().splitlines()]


def test_five_hundred_distinct_kernels_were_judged() -> None:
    found = rows()
    assert len(found) >= 500
    assert len({row["key"] for row in found}) == len(found)
    assert len({row["task"] for row in found}) >= 200
    assert DATA.stat().st_size < 300_000


def test_all_that_were_written_by_hand_are_among_them_as_they_are_now() -> None:
    keys = {candidate.key for candidate in by_hand()}
    assert len(keys) == 133
    assert keys <= {row["key"] for row in rows()}


def test_those_of_the_families_are_what_the_generator_still_makes() -> None:
    known = {row["key"] for row in rows()}
    drawn = of_families()
    assert all(next(drawn).key in known for _ in range(10))


def test_every_rejection_is_told() -> None:
    text = (ROOT / "docs" / "verdicts.md").read_text()
    for row in rows():
        if row["status"] != "correct":
            assert f"`{row['task']}`" in text, row
