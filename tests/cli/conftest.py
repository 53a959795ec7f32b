"""The command line in the test's own process."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import Cli, Outcome

from cudaperf_agent.cli.main import main


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `cudaperf ARGS` in this process."""

    def run(*args: str | Path) -> Outcome:
        code = main([str(a) for a in args])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Outcome(code, captured.out, captured.err)

    return run
