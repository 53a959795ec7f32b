"""Prompts for PyTorch modules, pinned: ``python tests/policies/test_module_prompts.py`` writes them anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.codegen.modules.forms import ModuleFile, read_module_file
from cudaperf_agent.cuda.modules.screen import screen_module
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.policies.base import Attempt, ProposalRequest
from cudaperf_agent.policies.parse_answer import parse_answer
from cudaperf_agent.policies.prompts import PromptConfig, build_messages, estimate_tokens
from cudaperf_agent.policies.variants import VariantsPolicy
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.find import load_module_task
from cudaperf_agent.tasks.modules.spec import Dimension, InputSpec, ModuleMode, OutputSpec, StateSpec

CASES = Path(__file__).parents[1] / "cases"
GOLDEN = Path(__file__).parent / "golden_modules"
FORMS = {"full": PromptConfig(), "compact": PromptConfig.compact()}
CANDIDATE = (CASES / "torch_light" / "row_softmax_scale.py").read_text()


def described(mode: ModuleMode = "pure-cuda") -> Task:
    """A task as a run would describe it, without a run."""
    text = (CASES / "torch" / "linear_gelu_residual.py").read_text()
    task = load_module_task(Path("linear_gelu_residual.py"), source=text, mode=mode)
    assert task.module is not None
    module = replace(
        task.module,
        inputs=(InputSpec("tensor", "f32", (64, 128, 256), -5.0, 5.0, open_range=True),),
        outputs=(OutputSpec("output", "f32", 3),),
        state=(StateSpec("gain", "f32", (256,)), StateSpec("up.weight", "f32", (512, 256))),
        dimensions=(Dimension(64, ((0, 0),)), Dimension(128, ((0, 1),))),
        strided=True,
        torch="2.13",
    )
    return replace(task, module=module)


def prompt(form: str) -> str:
    failed = Verdict(Status.WRONG, "output[3] is 0, expected 1", "light", passed=2, total=9)
    history = [Attempt(0, CANDIDATE, failed, "output[3] is 0, expected 1\n")] if form == "full" else []
    messages = build_messages(described(), history, config=FORMS[form])
    return "".join(f"[{m.role}]\n{m.content.rstrip()}\n" for m in messages)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_the_prompt_is_as_pinned(form: str) -> None:
    assert prompt(form) == (GOLDEN / f"{form}.txt").read_text()


def test_the_form_that_is_shown_is_one() -> None:
    text = build_messages(described())[1].content
    example = text.split("```python\n", 1)[1].split("```", 1)[0]
    file = read_module_file(example)
    assert isinstance(file, ModuleFile)
    assert file.form == "light"
    assert file.unread is None
    assert screen_module(file) is None


def test_the_mode_changes_the_rules() -> None:
    assert "torch's operators (matmul, convolution)" in build_messages(described("libraries-allowed"))[1].content
    assert "calls no torch operator" in build_messages(described())[1].content


def test_it_fits_a_small_model() -> None:
    assert estimate_tokens(prompt("compact")) <= 2_200


def test_a_python_answer_is_read() -> None:
    answer = f"Here:\n```python\nprint(1)\n```\nThe file:\n```python\n{CANDIDATE}```\nIt is fast."
    assert parse_answer(answer, name="Model").source == CANDIDATE
    assert parse_answer(CANDIDATE).source == CANDIDATE
    assert parse_answer(f"Sure!\n\n{CANDIDATE}").source == CANDIDATE


def test_a_python_answer_that_was_cut_is_not() -> None:
    half = CANDIDATE[: CANDIDATE.index("        launch(")]
    cut = parse_answer(f"```python\n{half}", finish_reason="length")
    assert cut.source is None
    assert cut.cut
    before = parse_answer(f"```python\n{CANDIDATE}```\nBetter:\n```python\n{half}", finish_reason="length")
    assert before.source == CANDIDATE
    assert before.cut


def test_python_without_the_class_is_no_candidate() -> None:
    assert parse_answer("```python\nimport torch\nprint(torch)\n```").source is None


async def test_variants_decline_what_was_not_traced() -> None:
    (proposal,) = await VariantsPolicy().propose(ProposalRequest((), described()))
    assert proposal.declined == "the module was not traced"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in FORMS:
        (GOLDEN / f"{name}.txt").write_text(prompt(name))
