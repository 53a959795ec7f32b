"""Unpacking the weights in the box: once, quietly, also where two processes begin it together."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from cudaperf_agent.policies.auto import choose_policy
from cudaperf_agent.policies.smollm2 import is_converted, smollm2_folder, weights_here

READERS = ("torch", "transformers", "gguf")

pytestmark = pytest.mark.skipif(
    not weights_here() or any(importlib.util.find_spec(name) is None for name in READERS),
    reason="the local extra is not installed",
)


@pytest.mark.slow
def test_it_is_unpacked_once_and_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path))
    assert not is_converted()
    assert "unpacks the weights" in " ".join(asyncio.run(choose_policy("local")).sentences)
    folder = smollm2_folder()
    assert is_converted()
    written = (folder / "model.safetensors").stat()
    assert written.st_size > 250_000_000
    assert capfd.readouterr() == ("", "")
    assert not asyncio.run(choose_policy("local")).sentences
    assert smollm2_folder() == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written.st_mtime_ns


def test_what_another_process_finished_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path))
    theirs = tmp_path / "models" / "smollm2-135m-instruct" / "model.safetensors"

    def convert(_: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_text("mine")
        theirs.parent.mkdir(parents=True)
        theirs.write_text("theirs")

    monkeypatch.setattr("cudaperf_agent.policies.smollm2._convert", convert)
    folder = smollm2_folder()
    assert folder == theirs.parent
    assert theirs.read_text() == "theirs"
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]
