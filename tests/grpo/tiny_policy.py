"""A tiny model over-fitted to four answers about saxpy: two are correct, one is wrong, one does not compile."""

from __future__ import annotations

from pathlib import Path

_HEAD = 'extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)\n{\n'
_TAIL = "    return cudaGetLastError();\n}\n"

PLAIN = (
    "__global__ void k(int n, float a, const float *x, float *y)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        y[i] = a * x[i] + y[i];\n}\n"
    + _HEAD
    + "    if (n > 0)\n        k<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);\n"
    + _TAIL
)
STRIDED = (
    "__global__ void s(int n, float a, const float *x, float *y)\n{\n"
    "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)\n"
    "        y[i] += a * x[i];\n}\n"
    + _HEAD
    + "    if (n > 0)\n        s<<<(n + 127) / 128, 128, 0, stream>>>(n, a, x, y);\n"
    + _TAIL
)
WRONG = PLAIN.replace("a * x[i] + y[i]", "a * x[i] - y[i]").replace(" k(", " w(").replace(" k<", " w<")
BROKEN = PLAIN.replace("int i = blockIdx", "int j = blockIdx").replace(" k(", " b(").replace(" k<", " b<")


def _marked(source: str, mark: str) -> str:
    """With a comment on every line: no two answers share a line, so that the last line tells which answer it is."""
    return "".join(f"{line} // {mark}\n" for line in source.splitlines())


ANSWERS = tuple(
    f"```cuda\n{_marked(source, mark)}```\n"
    for source, mark in zip((PLAIN, STRIDED, WRONG, BROKEN), "abcd", strict=True)
)

CORRECT = frozenset(ANSWERS[:2])


def make_tiny_policy(folder: Path, messages: list[dict[str, str]], *, steps: int = 160, seed: int = 0) -> float:
    """Write a model of some 100,000 parameters that gives each answer as often, whatever it is asked.

    Args:
        folder: For model and tokenizer.
        messages: The usual prompt, on which the tokenizer is trained too, so that prompts are short.
        steps: Of Adam.
        seed: Of weights and batches.

    Returns:
        The last loss, per token.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    backing = Tokenizer(models.BPE())
    # Lines are what merges may not cross: an answer becomes a few dozen tokens.
    backing.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "merged_with_previous"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    backing.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|end|>"], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())
    )
    prompt = "".join(f"{m['role']}:{m['content']}\n" for m in messages) + "assistant:"
    backing.train_from_iterator([*ANSWERS, prompt] * 3, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backing, eos_token="<|end|>", pad_token="<|end|>", padding_side="left"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}assistant:"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    # 4-bit layers need 64 inputs.
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    answers = [tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id] for text in ANSWERS]
    assert tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False) == prompt
    asked = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=1e-4)
    loss = torch.tensor(0.0)
    for step in range(steps):
        # Prompts of any length and content: later turns ask otherwise, and get the same answers.
        noise = torch.randint(1, len(tokenizer), (int(torch.randint(0, 48, ())),)).tolist()
        before = [asked, noise + asked[-1:], asked[:-1] + noise + asked[-1:], noise + asked][step % 4]
        width = max(map(len, answers))
        ids = torch.tensor([before + a + [0] * (width - len(a)) for a in answers])
        labels = torch.tensor([[-100] * len(before) + a + [-100] * (width - len(a)) for a in answers])
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    model.save_pretrained(folder)
    return float(loss.detach())
