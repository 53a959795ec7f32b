"""`watch`, `report` and `translate --tui` as a user runs them: on a terminal and elsewhere, without Textual too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from on_terminal import ROOT, OnTerminal
from tui_world import HOSTILE, make_run

from cudaperf_agent.cli.main import main
from cudaperf_agent.execution.paths import data_dir
from cudaperf_agent.store.repository import Store

SAXPY = ROOT / "tests" / "cases" / "c" / "saxpy.c"
WITHOUT_TEXTUAL = (
    "import sys; sys.modules['textual'] = None; from cudaperf_agent.cli.main import main; sys.exit(main())"
)
WRONG = """#include <cuda_runtime.h>
__global__ void k(int n, float *y) { if (n > TURN) y[TURN] = 0; }
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    k<<<1, 1, 0, stream>>>(n, y);
    return (int)cudaGetLastError();
}
"""


@pytest.fixture
async def stored() -> str:
    """A run in the store that commands use by default."""
    data_dir().mkdir(parents=True, exist_ok=True)
    with Store() as store:
        return await make_run(store)


def without_textual(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_TEXTUAL, *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_without_textual_the_remedy_is_named() -> None:
    for command in (("watch",), ("translate", str(SAXPY), "--tui")):
        done = without_textual(*command)
        assert done.returncode == 3
        assert 'pip install "cudaperf-agent[tui]"' in done.stderr


def test_a_report_needs_no_textual(stored: str, tmp_path: Path) -> None:
    page = tmp_path / "new" / "story.html"
    done = without_textual("report", stored[:6], "--out", str(page))
    assert done.returncode == 0, done.stderr
    assert str(page) in done.stderr
    assert page.read_text().startswith("<!doctype html>")
    done = without_textual("report", "latest", "--format", "md")
    assert done.returncode == 0, done.stderr
    assert "| 4 ★ | ✓ correct | 4/4 |" in done.stdout


def test_without_a_terminal_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch"]) == 2
    assert "needs a terminal" in capsys.readouterr().err
    assert main(["translate", str(SAXPY), "--tui"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_a_report_goes_over_a_report_but_over_nothing_else(
    stored: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.html", "a.md"):
        path = tmp_path / name
        assert main(["report", stored, "--out", str(path)]) == 0
        first = path.read_text()
        assert ("<html" in first) == (name == "a.html")
        path.write_text(first + "older")
        assert main(["report", stored, "--out", str(path)]) == 0
        assert path.read_text() == first
    mine = tmp_path / "mine.md"
    mine.write_text("# my notes\n")
    capsys.readouterr()
    assert main(["report", stored, "--out", str(mine)]) == 2
    assert mine.read_text() == "# my notes\n"
    assert main(["report", "nope"]) == 2
    assert "there is no run" in capsys.readouterr().err


async def test_a_report_on_a_terminal_carries_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    data_dir().mkdir(parents=True, exist_ok=True)
    with Store() as store:
        await make_run(store, [HOSTILE])
    for form in ("html", "md"):
        assert main(["report", "latest", "--format", form]) == 0
        out = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\u202e", "\0"} & set(out)


def test_watch_on_a_terminal_leaves_it_as_it_was(stored: str) -> None:
    with OnTerminal(["watch", "latest"]) as shown:
        shown.until("__global__")
        shown.press("q")
        assert shown.end() == 0
    assert shown.seen.count("\x1b[?1049h") == shown.seen.count("\x1b[?1049l") == 1  # the other screen and back
    assert "\x1b[?25h" in shown.seen  # the cursor is back


def test_an_orderly_kill_leaves_the_terminal_as_it_was(stored: str) -> None:
    with OnTerminal(["watch", "latest"]) as shown:
        shown.until("__global__")
        assert shown.process is not None
        shown.process.terminate()
        assert shown.end() == 0
    assert shown.seen.count("\x1b[?1049h") == shown.seen.count("\x1b[?1049l") == 1


@pytest.mark.slow
def test_a_translation_is_watched_to_its_end(tmp_path: Path) -> None:
    with OnTerminal(["translate", str(SAXPY), "--policy", "variants", "--tui", "--out", str(tmp_path)]) as shown:
        shown.until("passed the hidden cases", seconds=150)
        shown.press("q")
        assert shown.end() == 0
    assert "hidden cases agree with the C" in shown.seen.split("\x1b[?1049l")[1]
    assert (tmp_path / "saxpy.cu").exists()


@pytest.mark.slow
def test_leaving_stops_the_run_and_it_can_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script"
    script.mkdir()
    for turn in range(5):
        (script / f"{turn}.cu").write_text(WRONG.replace("TURN", str(turn)))
    args = ["translate", str(SAXPY), "--policy", f"scripted:{script}", "--tui", "--out", str(tmp_path / "out")]
    with OnTerminal(args) as shown:
        shown.until("compile…", seconds=120)
        shown.press("q")
        assert shown.end(seconds=120) == 130
    assert "waiting for the step at work" in shown.seen
    assert "go on with: cudaperf resume" in shown.seen
    assert not (tmp_path / "out" / "saxpy.cu").exists()
    assert main(["show", "latest"]) == 0
    assert "interrupted" in capsys.readouterr().out


def test_a_refused_file_is_told_on_the_screen_and_after(tmp_path: Path) -> None:
    bad = tmp_path / "bad.c"
    bad.write_text("void f(int n) { for (;; }\n")
    with OnTerminal(["translate", str(bad), "--tui", "--policy", "variants"]) as shown:
        shown.until("bad.c")
        shown.press("q")
        assert shown.end() == 2
    after = shown.seen.split("\x1b[?1049l")[1]
    assert "error: " in after
    assert "bad.c:1" in after
