"""Editing the user's file: what we set can be read, what was there comes back to the letter."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from cudaperf_agent.cli.user_file import forget, marked, record, unmarked
from cudaperf_agent.errors import ConfigError

VALUES = {"url": "http://127.0.0.1:8000/v1", "model": 'a "model"'}
TEXTS = [
    "",
    "# only a comment\n",
    "display = 'plain'",
    "[translate]\nturns = 3\n",
    '[endpoint]\nurl = "http://old/v1" # mine\n\n# more\ntemperature = 0.3\n\n[translate]\nturns = 3 # three\n',
    '[ endpoint ] # section\nmodel="old"',
    "[endpoint]\r\nurl = 'http://old/v1'\r\n[prompt]\r\n",
    '[translate]\npolicy = "auto"\n[endpoint]\napi_key = "k"\n[endpoint.more]\nurl = "no"\n',
    '[endpoint]\nmodel_of_others = 1\nurl_of = "x"\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_values_are_set_all_else_is_kept_and_comes_back(text: str) -> None:
    edited = marked(text, "endpoint", VALUES)
    before, after = tomllib.loads(text), tomllib.loads(edited)
    assert after == {**before, "endpoint": {**before.get("endpoint", {}), **VALUES}}
    ending = "" if not text or text.endswith("\n") else "\n"
    assert unmarked(edited) == text + ending
    # After a crash the next start begins from the user's own text.
    assert marked(edited, "endpoint", VALUES) == marked(text + ending, "endpoint", VALUES)


@pytest.mark.parametrize(
    "text", ['endpoint = {url = "x"}\n', 'endpoint.url = "x"\n', '[endpoint]\nurl = """a\nb"""\n', "[x\n"]
)
def test_what_this_edit_would_break_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be edited"):
        marked(text, "endpoint", VALUES)


def test_edits_in_between_stay() -> None:
    edited = marked("[endpoint]\nurl = 'old'\n", "endpoint", VALUES)
    assert unmarked(edited + "timeout = 9\n") == "[endpoint]\nurl = 'old'\ntimeout = 9\n"


def test_files_are_made_kept_private_and_deleted_when_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    record(path, "endpoint", VALUES)
    assert tomllib.loads(path.read_text())["endpoint"] == VALUES
    forget(path)
    assert not path.exists()
    forget(path)
    path.write_text("# mine\n")
    path.chmod(0o600)
    record(path, "endpoint", VALUES)
    assert path.stat().st_mode & 0o777 == 0o600
    forget(path)
    assert path.read_text() == "# mine\n"
    assert [p.name for p in path.parent.iterdir()] == ["config.toml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "config.toml"
    real.write_text("[endpoint]\n")
    link.symlink_to(real)
    record(link, "endpoint", VALUES)
    assert link.is_symlink()
    assert tomllib.loads(real.read_text())["endpoint"] == VALUES


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="cannot be written"):
        record(tmp_path / "config.toml", "endpoint", VALUES)
