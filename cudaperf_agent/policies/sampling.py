"""Batched sampling from a causal language model, with a seed of its own for every row.

`transformers.generate` draws a whole batch from one generator, so a row's answer would depend on its neighbours. Here a
row depends on its prompt and its seed alone, and its token ids and log-probabilities come out as they were drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cudaperf_agent.policies.base import ProposalRequest

if TYPE_CHECKING:
    import torch

_FENCE = re.compile(r"^[ \t]*```", re.M)


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How answers are drawn.

    Attributes:
        temperature: 0 is greedy.
        top_p: Mass of the nucleus; 1 keeps everything.
        max_tokens: Upper limit of new tokens per answer.
        stop_after_code: End an answer once its first fenced code block is closed.
        seeded: Each answer is drawn by a seed of its own, whatever is drawn beside it. vLLM then draws row by row; many
            answers at once are faster without. (The other engines always draw by seeds.)
    """

    temperature: float = 0.6
    top_p: float = 0.95
    max_tokens: int = 1400
    stop_after_code: bool = True
    seeded: bool = True


@dataclass(slots=True)
class Row:
    """One answer in the making.

    Attributes:
        prompt: Token ids of the prompt.
        seed: Of this row's own random generator.
        on_token: Called with each new piece of text.
        ids, logprobs: What was drawn, and the log-probability of each under the distribution it was drawn from.
        text: Decoded so far, special tokens left out.
        finish_reason: ``stop`` or ``length``, empty while it runs.
    """

    prompt: Sequence[int]
    seed: int
    on_token: Callable[[str], None] | None = None
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    finish_reason: str = ""


def row_seed(request: ProposalRequest, completion: int) -> int:
    """A seed for one completion: the same for the same place in a run, different everywhere else."""
    place = (request.trajectory * 1009 + request.turn) * 1013 + completion
    return ((request.seed or 0) * 1_000_003 + place) % 2**31


def sample(model: Any, tokenizer: Any, rows: Sequence[Row], config: SamplingConfig, context: int) -> None:
    """Fill in every row. Blocking; the caller keeps it off the event loop and never enters it twice at once.

    Args:
        model: A transformers causal language model in evaluation mode.
        tokenizer: Its tokenizer, with an end-of-sequence token.
        rows: Prompts, at least one token each, shorter than `context`.
        config: How to draw.
        context: Longest sequence the model takes.
    """
    import torch

    live = [row for row in rows if not row.finish_reason]
    device = next(model.parameters()).device
    width = max(len(row.prompt) for row in live)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    ids = torch.tensor([[pad] * (width - len(r.prompt)) + list(r.prompt) for r in live], device=device)
    mask = torch.tensor([[0] * (width - len(r.prompt)) + [1] * len(r.prompt) for r in live], device=device)
    generators = [torch.Generator(device="cpu").manual_seed(row.seed) for row in live]
    with torch.inference_mode():
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        out = model(input_ids=ids, attention_mask=mask, position_ids=position, use_cache=True, logits_to_keep=1)
        while True:
            chosen = [_draw(out.logits[i, -1], generators[i], config) for i in range(len(live))]
            for row, (token, logprob) in zip(live, chosen, strict=True):
                _extend(row, token, logprob, tokenizer, config, context)
            keep = [i for i, row in enumerate(live) if not row.finish_reason]
            if not keep:
                return
            cache = out.past_key_values
            if len(keep) < len(live):
                index = torch.tensor(keep, device=device)
                cache.batch_select_indices(index)
                mask, position = mask[index], position[index]
                live = [live[i] for i in keep]
                generators = [generators[i] for i in keep]
            ids = torch.tensor([[row.ids[-1]] for row in live], device=device)
            mask = torch.cat([mask, mask.new_ones((len(live), 1))], dim=1)
            position = position[:, -1:] + 1
            out = model(
                input_ids=ids, attention_mask=mask, position_ids=position, past_key_values=cache, use_cache=True
            )


def _draw(logits: torch.Tensor, generator: torch.Generator, config: SamplingConfig) -> tuple[int, float]:
    import torch

    scores = logits.float().cpu()
    if config.temperature <= 0:
        token = int(scores.argmax())
        return token, float(torch.log_softmax(scores, -1)[token])
    logs = torch.log_softmax(scores / config.temperature, -1)
    if config.top_p < 1:
        ordered, order = logs.sort(descending=True)
        # The token that crosses the threshold stays in: the nucleus is never empty.
        outside = ordered.exp().cumsum(-1) - ordered.exp() >= config.top_p
        logs[order[outside]] = -torch.inf
        logs = torch.log_softmax(logs, -1)
    token = int(torch.multinomial(logs.exp(), 1, generator=generator))
    return token, float(logs[token])


def _extend(row: Row, token: int, logprob: float, tokenizer: Any, config: SamplingConfig, context: int) -> None:
    row.ids.append(token)
    row.logprobs.append(logprob)
    if token == tokenizer.eos_token_id:
        row.finish_reason = "stop"
        return
    text = tokenizer.decode(row.ids, skip_special_tokens=True)
    # An unfinished multi-byte character decodes to a replacement sign that the next token will change.
    if not text.endswith("\N{REPLACEMENT CHARACTER}") and text.startswith(row.text):
        if row.on_token and len(text) > len(row.text):
            row.on_token(text[len(row.text) :])
        row.text = text
    if config.stop_after_code and "`" in tokenizer.decode([token]) and code_block_closed(row.text):
        row.finish_reason = "stop"
    elif len(row.ids) >= config.max_tokens or len(row.prompt) + len(row.ids) >= context:
        row.finish_reason = "length"


def code_block_closed(text: str) -> bool:
    """Whether a fenced code block has been opened and closed."""
    return len(_FENCE.findall(text)) >= 2
