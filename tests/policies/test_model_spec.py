"""Names of models: taken apart, told small from large, and what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.policies.model_spec import ModelSpec, parse_spec, small_model, small_name


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("smollm2-135m-instruct", True),
        ("HuggingFaceTB/SmolLM2-360M", True),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct", True),
        ("qwen_0.6b", True),
        ("Qwen/Qwen3-8B", False),
        ("Qwen/Qwen3-30B-A3B", False),
        ("google/gemma-3-1b-it", False),
        ("gpt-5.2-mini", False),
        ("model-2507", False),
        ("", False),
    ],
)
def test_a_name_with_a_size_below_a_billion_is_small(name: str, small: bool) -> None:
    assert small_name(name) is small


def test_a_folder_is_small_by_its_context(tmp_path: Path) -> None:
    assert small_model(None)
    for context, small in ((8192, True), (8193, False)):
        (tmp_path / "config.json").write_text(f'{{"max_position_embeddings": {context}}}')
        assert small_model(str(tmp_path)) is small
    (tmp_path / "config.json").write_text("[]")
    assert not small_model(str(tmp_path))


def test_a_spec_is_taken_apart_and_put_together(tmp_path: Path) -> None:
    model, adapter = tmp_path / "a+b", tmp_path / "c+d"
    model.mkdir()
    assert parse_spec(f"{model}+{adapter}") == ModelSpec(str(model), adapter)
    assert parse_spec(str(model)) == ModelSpec(str(model), None)
    assert parse_spec("org/name+lora") == ModelSpec("org/name", Path("lora").absolute())
    assert parse_spec("smollm2-135m-instruct+lora") == ModelSpec(None, Path("lora").absolute())
    assert parse_spec("") == ModelSpec()
    for spec in (ModelSpec(str(model), adapter), ModelSpec(None, adapter), ModelSpec("org/name"), ModelSpec()):
        assert parse_spec(str(spec)) == spec


def test_a_relative_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_spec("model") == ModelSpec(str(tmp_path / "model"))
    assert parse_spec("./gone") == ModelSpec(str(tmp_path / "gone"))
