"""The frame of the command line: help, version, exit codes, errors, and what is imported for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from cli_process import ROOT, Cli, in_process

from cudaperf_agent import __version__
from cudaperf_agent.cli import main as main_module
from cudaperf_agent.cli.main import main
from cudaperf_agent.cli.output import JsonFlag
from cudaperf_agent.errors import BackendUnavailable, BudgetSpent, CudaPerfError, InputRefused

HEAVY = [
    *("torch", "transformers", "vllm", "textual", "langgraph", "langchain", "langchain_core", "langchain_openai"),
    *("openai", "sqlalchemy", "alembic", "islpy", "clang", "numpy", "pydantic", "rich", "asyncio"),
]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from cudaperf_agent.cli.main import main; code = main(['--help']);"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Usage: cudaperf" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_help_answers_in_half_a_second_of_processor_time() -> None:
    # Processor time, so that a busy machine does not fail it; the best of three, so that a cold disk does not.
    code = "import time; from cudaperf_agent.cli.main import main; main(['--help']); print(time.process_time())"
    seconds = min(
        float(
            subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.splitlines()[-1]
        )
        for _ in range(3)
    )
    assert seconds < 0.5


def test_version(cli: Cli) -> None:
    done = cli("--version")
    assert (done.code, done.out) == (0, f"cudaperf {__version__}\n")


@pytest.mark.parametrize("args", [["nonsense"], ["config", "show", "--nonsense"], ["config"], []])
def test_wrong_usage_ends_in_2_and_keeps_stdout_for_data(cli: Cli, args: list[str]) -> None:
    done = cli(*args)
    assert done.code == 2
    assert done.out == ""
    assert done.err


def test_wrong_usage_in_json(cli: Cli) -> None:
    done = cli("config", "show", "--json", "--nonsense")
    assert done.code == 2
    assert done.json["error"]["kind"] == "usage"
    assert "--nonsense" in done.json["error"]["message"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputRefused("no", where="a.c:3", hint="do this"), 2),
        (BackendUnavailable("no", where="nvcc", hint="do this"), 3),
        (BudgetSpent("no", where="a.c", hint="do this"), 4),
    ],
)
def test_every_error_says_what_where_and_what_next(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: CudaPerfError, code: int
) -> None:
    app = typer.Typer()

    @app.command()
    def fails(as_json: JsonFlag = False) -> int:
        raise error

    monkeypatch.setattr(main_module, "app", app)
    done = cli()
    assert done.code == code
    assert done.err == f"error: {error.where}: no\n  do this\n"
    shown = cli("--json")
    assert shown.code == code
    assert shown.json == {"error": {"kind": error.kind, "message": "no", "where": error.where, "hint": "do this"}}


def test_a_fault_of_ours_goes_to_a_file_and_not_to_the_terminal(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = typer.Typer()

    @app.command()
    def fails() -> int:
        raise RuntimeError("boom")

    monkeypatch.setattr(main_module, "app", app)
    monkeypatch.setenv("CUDAPERF_DATA_DIR", str(tmp_path))
    done = cli()
    assert done.code == 3
    assert "internal error: RuntimeError: boom" in done.err
    assert str(tmp_path / "crash.log") in done.err
    assert "Traceback" in (tmp_path / "crash.log").read_text()


def test_an_interruption_ends_in_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command()
    def fails() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "app", app)
    done = cli()
    assert (done.code, done.err) == (130, "interrupted\n")


def test_the_whole_program_runs_on_its_own() -> None:
    started = time.monotonic()
    done = in_process("config", "show", "--json")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    variables = {
        "_CUDAPERF_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "cudaperf con",
        "COMP_WORDS": "cudaperf con",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-m", "cudaperf_agent.cli.main"],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "config" in done.stdout, done.stderr


def test_main_returns_rather_than_exits() -> None:
    assert main(["--version"]) == 0


def test_a_full_stdout_is_told_and_a_full_stderr_stops_nothing() -> None:
    command = [sys.executable, "-m", "cudaperf_agent.cli.main", "config", "show"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
        quiet = subprocess.run([*command, "--nosuch"], cwd=ROOT, stderr=full, timeout=60, check=False)
    assert done.returncode == 2
    told = "error: the results cannot be written to stdout: no space left on device\n  send them to another place\n"
    assert done.stderr == told
    assert quiet.returncode == 2


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = [sys.executable, "-m", "cudaperf_agent.cli.main", "config", "show"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
