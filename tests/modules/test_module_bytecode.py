"""Bytecode of torch's files is made where there is none, read and never written by processes in the sandbox."""

from __future__ import annotations

import json
import logging
import os
import py_compile
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.cuda.modules import bytecode
from cudaperf_agent.cuda.modules.bytecode import BYTECODE, bytecode_prefix, usable
from cudaperf_agent.cuda.modules.python_child import python_command
from cudaperf_agent.execution.sandbox import detect

COUNTING = """import sys
from pathlib import Path
(Path(sys.pycache_prefix) / "made").write_text(" ".join(sys.argv[1:]))
"""


@pytest.fixture
def without_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the installation of torch had none; a cache of its own."""
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(bytecode, "_SAMPLE", ("there_is_no_such_file.py",))
    bytecode._prefix.cache_clear()
    yield
    bytecode._prefix.cache_clear()


def scripted(folder: Path, text: str) -> Path:
    """A child's folder with a script of its own."""
    script = folder / "child" / "cudaperf_child" / "bytecode.py"
    script.parent.mkdir(parents=True)
    script.write_text(text)
    return folder / "child"


def test_bytecode_is_usable_while_it_fits_its_source(tmp_path: Path) -> None:
    source = tmp_path / "one.py"
    source.write_text("a = 1\n")
    assert not usable(source)
    compiled = Path(py_compile.compile(str(source), doraise=True) or "")
    assert usable(source)
    os.utime(source, (1, 1))
    assert not usable(source)
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert usable(source)
    compiled.write_bytes(b"\0\0\0\0" + compiled.read_bytes()[4:])
    assert not usable(source)


def test_nothing_is_made_where_the_installation_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(bytecode, "_SAMPLE", ())
    bytecode._prefix.cache_clear()
    assert bytecode_prefix(tmp_path, []) is None
    assert not (tmp_path / "cache").exists()
    bytecode._prefix.cache_clear()


@pytest.mark.usefixtures("without_bytecode")
def test_it_is_made_once(tmp_path: Path) -> None:
    child = scripted(tmp_path, COUNTING)
    made = bytecode_prefix(child, ["packages"])
    assert made is not None
    assert (made / "made").read_text() == f"{child} packages"
    assert made.stat().st_mode & 0o755 == 0o755
    (made / "made").unlink()
    bytecode._prefix.cache_clear()  # as another process
    assert bytecode_prefix(child, ["packages"]) == made
    assert not (made / "made").exists()
    assert [p.name for p in made.parent.iterdir()] == [made.name]


@pytest.mark.usefixtures("without_bytecode")
@pytest.mark.parametrize("script", ["import sys; sys.exit('the disk is full')", "while True: pass"])
def test_where_it_cannot_be_made_that_is_told_and_nothing_fails(
    script: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    child = scripted(tmp_path, script)
    with caplog.at_level(logging.WARNING):
        assert bytecode_prefix(child, [], replace(BYTECODE, told_after=0.2, seconds=0.5)) is None
    assert "each import takes longer" in caplog.text
    assert not list((tmp_path / "cache" / "bytecode").iterdir())


@pytest.mark.usefixtures("without_bytecode")
def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path / "file"))
    assert bytecode_prefix(scripted(tmp_path, COUNTING), []) is None


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("without_bytecode")
def test_a_process_in_the_sandbox_reads_it_and_cannot_write_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "work"
    folder.mkdir()
    sandbox = detect()
    command = python_command("reference", folder, sandbox=sandbox)
    at = command.argv.index("-c")
    looking = """import json, sys
from pathlib import Path
prefix = Path(sys.pycache_prefix)
assert sys.dont_write_bytecode
import torch
specs = [getattr(m, "__spec__", None) for m in list(sys.modules.values())]
cached = [Path(s.cached) for s in specs if s is not None and isinstance(s.cached, str)]
try:
    (prefix / "planted").write_text("")
    planted = True
except OSError:
    planted = False
there = [place.is_relative_to(prefix) and place.exists() for place in cached]
print(json.dumps({"modules": len(there), "compiled": sum(there), "planted": planted}))
"""
    argv = [*command.argv[: at + 1], looking, *command.argv[at + 2 :]]
    done = subprocess.run(argv, env=command.env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["modules"] > 500
    assert found["compiled"] == found["modules"]
    if sandbox.kind == "bubblewrap":
        assert not found["planted"]
