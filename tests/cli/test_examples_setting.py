"""`prompt.examples`: the shipped pool by default, none, or a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from cudaperf_agent.cli.parts import make_deps
from cudaperf_agent.policies.examples import SHIPPED, example_line
from cudaperf_agent.settings_model import PromptSettings
from cudaperf_agent.tasks.parse import load_task

COPY = "void copy(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = x[i]; }"
SCALE = "void scale(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = 3 * x[i]; }"


def prompt(settings: PromptSettings, *, small: bool = False) -> str:
    """The first prompt of a task; no policy, verifier or store is needed for it."""
    nothing = cast(Any, None)
    deps = make_deps(nothing, nothing, nothing, settings, small=small)
    return "\n".join(message.content for message in deps.build_messages(load_task(source=SCALE), []))


def test_full_prompts_show_the_shipped_pool_unless_it_is_turned_off() -> None:
    assert prompt(PromptSettings()).count("## Example ") == 5
    assert "## Example " not in prompt(PromptSettings(), small=True)
    assert "## Example " not in prompt(PromptSettings(examples="none"))


@pytest.mark.parametrize("written", [str, Path])
def test_a_file_of_ones_own_replaces_it(tmp_path: Path, written: type) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(example_line(load_task(source=COPY), "// my own kernel", 2.0, split="train") + "\n")
    text = prompt(PromptSettings.model_validate({"examples": written(file)}))
    assert "// my own kernel" in text
    assert text.count("## Example ") == 1
    assert "## Example 1 (2.0 times as fast)" in text


def test_the_pool_comes_with_the_package() -> None:
    assert SHIPPED.is_file()
    assert SHIPPED.parent.name == "policies"
