"""Text that others wrote is shown, never obeyed."""

from __future__ import annotations

import json

import pytest

from cudaperf_agent.cli.output import clean, put_json, table

HOSTILE = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]52;c;ZXZpbA==\x1b\\copied", "copied"),
    ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x9b31mred", "red"),
    ("a\x08\x08b\x00c\x7f", "abc"),
    ("one\rtwo", "onetwo"),
    ("safe\u202etxt.exe", "safetxt.exe"),
    ("zero\u200bwidth", "zerowidth"),
    ("\x1bPq#0\x1b\\six", "six"),
    ("\x1bc", ""),
    ("tab\tand\nline", "tab\tand\nline"),
    ("[bold red]not markup[/]", "[bold red]not markup[/]"),
    ("ünïcödé µs", "ünïcödé µs"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_control_characters_are_stripped_and_markup_is_text(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_cleaning_twice_changes_nothing_more() -> None:
    nested = "\x1b\x1b[31m[31mx\x1b"
    assert clean(clean(nested)) == clean(nested)
    assert "\x1b" not in clean(nested)


def test_json_is_ascii_and_valid_even_where_numbers_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    put_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": "\x1b[31m"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": None, "b": [None, 1.5], "c": "\x1b[31m"}
    assert "\x1b" not in out


def test_a_table_s_cells_cannot_break_its_lines() -> None:
    assert table([("a\nb", "\x1b[2Jc")], heading=("x", "y")) == "x    y\na b  c"
