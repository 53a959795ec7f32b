"""The reference in docs/ is what the commands say of themselves."""

from __future__ import annotations

from cli_process import ROOT

from cudaperf_agent.cli.reference import reference
from cudaperf_agent.settings import setting_keys


def test_the_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "cli.md").read_text()
    assert written == reference(), "python -m cudaperf_agent.cli.reference > docs/cli.md"


def test_every_command_and_setting_is_in_it() -> None:
    text = reference()
    for command in ("translate", "resume", "runs", "show", "verify", "features", "doctor", "config show"):
        assert f"## cudaperf {command}\n" in text
    for key in setting_keys():
        assert f"| `{key}` |" in text


def test_every_command_and_option_has_help() -> None:
    assert "|  |\n" not in reference().split("## Settings")[0]
