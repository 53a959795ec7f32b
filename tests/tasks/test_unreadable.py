"""A file that cannot be read comes with what to do about it: another name, another right, another kind of file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cudaperf_agent.cli.source import read_text
from cudaperf_agent.errors import CudaPerfError, UsageError, reading_hint
from cudaperf_agent.tasks.modules.find import load_module_task
from cudaperf_agent.tasks.parse import load_task
from tests.unprivileged import unprivileged
from training.evaluation.suites.folder import read

C = "/* cudaperf: x[n] */\nvoid f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 0; }\n"


def as_spec(path: Path) -> object:
    return load_task(source=C, spec=path)


def as_example(path: Path) -> object:
    return load_task(source=C, stdin_files=[path])


READERS: dict[str, Callable[[Path], object]] = {
    "C": load_task,
    "module": load_module_task,
    "spec": as_spec,
    "example input": as_example,
    "candidate": lambda path: read_text(path, "the candidate"),
    "suite": read,
}


@pytest.mark.parametrize("reader", sorted(READERS))
def test_the_hint_fits_why_a_file_cannot_be_read(tmp_path: Path, reader: str) -> None:
    folder, file = tmp_path / "folder.c", tmp_path / "file.c"
    folder.mkdir()
    file.write_text(C)
    file.chmod(0)

    def hint(path: Path) -> str:
        with pytest.raises(UsageError) as caught:
            READERS[reader](path)
        assert caught.value.where == str(path)
        return caught.value.hint or ""

    assert hint(tmp_path / "absent.c") == hint(file / "inside") == "Check the name."
    assert hint(folder) == "This is a folder: name a file in it."
    with unprivileged():
        assert "chmod u+r" in hint(file)


def test_an_example_input_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is no file") as caught:
        as_example(tmp_path / "pipe")
    assert "to a file" in str(caught.value.hint)


def test_what_is_no_text_is_not_searched_for(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x80")
    for name in ("C", "module", "spec", "candidate"):
        with pytest.raises(CudaPerfError, match="not UTF-8 text") as caught:
            READERS[name](path)
        assert caught.value.hint
        assert "Check the name" not in caught.value.hint


def test_other_faults_are_not_the_names() -> None:
    assert "Check the name" not in reading_hint(OSError(5, "Input/output error"))
