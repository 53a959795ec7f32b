"""Where results go is looked at before the work, by every command that writes a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cli_process import ROOT, Cli

from cudaperf_agent.cli.destination import check_out_file, check_out_folder, write_report, writing_file
from cudaperf_agent.errors import UsageError
from tests.unprivileged import unprivileged

CONFIGS = ROOT / "training" / "configs"
# Their inputs are not there, which each of them would say once it had begun.
COMMANDS = {
    "report": (["report", "absent"], "--out"),
    "eval report": (["eval", "report", "absent"], "--html"),
    "eval compare": (["eval", "compare", "absent", "other"], "--markdown"),
    "dataset build": (["dataset", "build", "--task", "activation/0"], "--built"),
    "dataset plan": (["dataset", "plan", "--data", "absent"], "--out"),
    "dataset merge": (["dataset", "merge", "--plan", "absent", "--measured", "."], "--data"),
    "dataset sampled": (["dataset", "sampled", "--candidates", "absent", "--measured", "."], "--out"),
    "dataset export": (["dataset", "export", "--built", "absent", "--measured", "."], "--out"),
    "dataset export --runs": (["dataset", "export", "--runs"], "--out"),
    "dataset pool": (["dataset", "pool", "--data", "absent"], "--out"),
    "ranker train": (["ranker", "train", "--data", "absent"], "--out"),
    "ranker eval": (["ranker", "eval", "--data", "absent"], "--svg"),
    "train sft": (["train", "sft", "--config", str(CONFIGS / "sft-tiny.toml")], "--out"),
    "train grpo": (["train", "grpo", "--config", str(CONFIGS / "grpo_cpu.toml")], "--out"),
}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_that_cannot_write_says_so_before_it_works(cli: Cli, tmp_path: Path, command: str) -> None:
    words, option = COMMANDS[command]
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "results"
    done = cli(*words, option, place)
    assert done.code == 2, done.err
    assert f"{tmp_path / 'file'} is not a folder" in done.err
    assert "name another f" in done.err
    assert option in done.err.splitlines()[-1]
    assert done.out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("place", ["/proc/results", "/proc/deep/results"])
def test_translate_runs_nothing_where_the_results_could_not_go(cli: Cli, c_cases: Path, place: str) -> None:
    done = cli("translate", c_cases / "saxpy.c", "--policy", "variants", "--out", place)
    assert done.code == 2
    assert f"error: {place}: nothing can be written in /proc: " in done.err
    assert "name another folder with --out" in done.err
    assert "running the C" not in done.err
    assert cli("runs", "--json").json["runs"] == []


def test_translate_looks_at_the_files_in_the_folder_too(cli: Cli, c_cases: Path, tmp_path: Path) -> None:
    (tmp_path / "saxpy.report.json").mkdir()
    done = cli("translate", c_cases / "saxpy.c", "--policy", "variants", "--out", tmp_path, "--json")
    assert done.code == 2
    assert done.json["error"]["where"] == str(tmp_path / "saxpy.report.json")
    assert done.json["error"]["message"] == "a folder, not a file"


def test_looking_leaves_nothing_behind_and_changes_nothing(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("kept")
    os.utime(there, (1, 1))
    check_out_folder(tmp_path, names=["there.json", "new.json"])
    check_out_folder(tmp_path / "new" / "deeper")
    check_out_file(there)
    check_out_file(tmp_path / "new" / "file.json")
    check_out_folder(Path())
    check_out_file(Path("file-in-this-folder.json"))
    check_out_file(Path("/dev/null"))
    assert list(tmp_path.iterdir()) == [there]
    assert there.read_text() == "kept"
    assert there.stat().st_mtime == 1


def test_a_link_to_nothing_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    with pytest.raises(UsageError, match="link is not a folder"):
        check_out_folder(tmp_path / "link")
    with pytest.raises(UsageError, match="link is not a folder"):
        check_out_file(tmp_path / "link" / "file")


def test_permissions_are_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    file.chmod(stat.S_IRUSR)
    with unprivileged(), pytest.raises(UsageError, match="permission denied"):
        check_out_file(file)
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    for place in (tmp_path, tmp_path / "new"):
        with unprivileged(), pytest.raises(UsageError, match="permission denied"):
            check_out_folder(place)
    tmp_path.chmod(stat.S_IRWXU)


def test_what_is_refused_while_writing_is_told_alike(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with pytest.raises(UsageError, match="no space left on device") as caught, writing_file(path, "--svg"):
        raise OSError(28, "No space left on device")
    assert (caught.value.where, caught.value.hint) == (str(path), "name another file with --svg")
    assert path.parent.is_dir()


def test_a_report_is_written_over_nothing_but_a_report(tmp_path: Path) -> None:
    theirs, empty, new = tmp_path / "theirs.c", tmp_path / "empty", tmp_path / "a folder" / "new.md"
    theirs.write_text("int f(void);")
    empty.write_text("")
    with pytest.raises(UsageError, match="no report and would be overwritten"):
        write_report(theirs, "made by us", ["by us"], "--html")
    assert theirs.read_text() == "int f(void);"
    for place in (empty, new, new):
        write_report(place, "made by us", ["by them", "by us"])
        assert place.read_text() == "made by us"


@pytest.mark.timeout(20)
def test_a_report_goes_to_a_device_or_a_pipe_without_reading_it(tmp_path: Path) -> None:
    write_report(Path("/dev/null"), "text", ["mark"])
    write_report(Path("/dev/zero"), "text", ["mark"])
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_report(tmp_path / "pipe", "text", ["mark"])
    assert os.read(reading, 10) == b"text"
    os.close(reading)
