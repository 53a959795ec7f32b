"""The command line with PyTorch files: what is written, what is refused, and with which words."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

import pytest

from cudaperf_agent.cli.main import main

CASES = Path(__file__).parents[1] / "cases"
ROW_SOFTMAX = CASES / "torch" / "row_softmax_scale.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.stem for p in (CASES / "torch").glob("*.py")))
def test_the_handed_files_translate_by_variants(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    file = CASES / "torch" / f"{name}.py"
    assert main(["translate", str(file), "--policy", "variants", "--out", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"]["status"] == "correct"
    assert report["verdict"]["profile"]["cases"]["hidden"] is True
    assert "emulator" in report["verdict"]["profile"]["cases"]["reduced"]
    assert report["verdict"]["measured"] is False
    assert report["task"]["module"]["class"] == "Model"
    assert any("evaluation mode" in a for a in report["assumptions"])
    written = (tmp_path / "model_new.py").read_text()
    assert "class ModelNew" in written
    assert "cudaperf_agent" not in written
    # The verdict is of the very file that was written.
    assert report["verdict"]["digests"]["source"] == hashlib.sha256(written.encode()).hexdigest()
    if file != ROW_SOFTMAX:
        return
    # Which is judged again, and in words; how a file is read there does not depend on what is in it.
    assert main(["verify", str(tmp_path / "model_new.py"), "--task", str(file)]) == 0
    told = capsys.readouterr().out
    assert "agree with the module, on the CPU emulator" in told
    assert "not measured" in told


@pytest.mark.slow
def test_a_wrong_candidate_ends_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    text = (CASES / "torch_light" / "row_softmax_scale.py").read_text().replace("dot += e * kept[c]", "dot += kept[c]")
    candidate = tmp_path / "candidate.py"
    candidate.write_text(text)
    assert main(["verify", str(candidate), "--task", str(ROW_SOFTMAX), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["status"] == "wrong"
    assert verdict["failure"]["output"] == "output"


def test_without_torch_the_line_to_install_it_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "torch" else found(name, *a))
    assert main(["translate", str(ROW_SOFTMAX), "--policy", "variants"]) == 3
    said = capsys.readouterr().err
    assert "PyTorch is not installed" in said
    assert 'pip install "cudaperf-agent[torch]"' in said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([str(ROW_SOFTMAX), "--entry", "f"], "--entry is for C files"),
        ([str(CASES / "c" / "saxpy.c"), "--class", "Model"], "--class is for PyTorch modules"),
        ([str(ROW_SOFTMAX), "--mode", "any"], "any is no mode"),
        ([str(ROW_SOFTMAX), "--dtype", "f8"], "f8 is no floating-point type"),
        ([str(ROW_SOFTMAX), "--inputs", "f32"], "cannot read 'f32'"),
        (["missing.py"], "cannot read the file"),
    ],
)
def test_flags_that_do_not_fit(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *arguments, "--policy", "variants"]) == 2
    assert word in capsys.readouterr().err
