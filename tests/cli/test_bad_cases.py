"""Files that cannot be translated end in one clear message with line and remedy, and never in a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import Cli, in_process

BAD = {
    "linked_list": (1, ["next", "pointer"], "indices"),
    "no_function": (2, ["no function"], "defines the function"),
    "reads_past_end": (5, ["x[", "`x`"], "cudaperf: in x[n+1]"),
    "side_effects": (5, ["fopen"], "caller"),
    "syntax_error": (3, ["valid C"], "gcc"),
    "two_entries": (1, ["scale (line 1)", "shift (line 2)"], "--entry"),
}


def test_every_bad_case_is_listed(c_cases: Path) -> None:
    assert {p.stem for p in (c_cases / "bad").glob("*.c")} == set(BAD)


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_case_ends_in_2_with_line_and_remedy(cli: Cli, c_cases: Path, tmp_path: Path, name: str) -> None:
    line, words, remedy = BAD[name]
    path = c_cases / "bad" / f"{name}.c"
    done = cli("translate", path, "--policy", "variants", "--out", tmp_path / "o", "--json")
    assert done.code == 2
    error = done.json["error"]
    assert error["kind"] == "refused"
    assert error["where"].split(":")[:2] == [str(path), str(line)]
    for word in words:
        assert word in error["message"]
    assert remedy in error["hint"]
    assert "Traceback" not in done.err
    assert not (tmp_path / "o").exists()


def test_the_message_for_people_is_one_error_and_one_remedy(c_cases: Path, tmp_path: Path) -> None:
    path = c_cases / "bad" / "two_entries.c"
    done = in_process("translate", path, "--out", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2  # one error, one remedy
    assert lines[0].startswith(f"error: {path}:1: ")
    assert lines[1].startswith("  Say which: --entry scale")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"\xff\xfe\x00binary\x00", "text file"),
        (b"#include <absent_header.h>\nvoid f(void) {}\n", "absent"),
    ],
)
def test_other_unusable_files(cli: Cli, tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "x.c"
    path.write_bytes(content)
    done = cli("translate", path, "--json")
    assert done.code == 2
    assert word in f"{done.json['error']['message']} {done.json['error']['hint']}"


def test_a_folder_is_no_file(cli: Cli, tmp_path: Path) -> None:
    done = cli("translate", tmp_path, "--json")
    assert done.code == 2
    assert str(tmp_path) in done.json["error"]["where"]
