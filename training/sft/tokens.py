"""Rows as token ids, exactly as a policy's prompt and answer are tokenised, and the order in which they are learned."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.sft.rows import Row

IGNORED = -100
"""Label of a token that carries no loss."""

_MEGABATCH = 40
"""Batches among which rows are sorted by length: large enough for little padding, small enough to stay shuffled."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A row: token ids of prompt and answer, and how many are the prompt's."""

    ids: list[int]
    prompt: int

    @property
    def labels(self) -> list[int]:
        """The ids with the prompt ignored."""
        return [IGNORED] * self.prompt + self.ids[self.prompt :]


def encode(rows: Sequence[Row], tokenizer: Any, context: int) -> list[Encoded]:
    """Rows that fit into `context` tokens, in their order.

    Prompt and answer are tokenised apart, as when a policy is asked: the prompt's ids are what it is given, the
    answer's what it draws; the answer ends with the end-of-sequence token.
    """
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "system", "content": row.system}, {"role": "user", "content": row.user}],
            add_generation_prompt=True,
            tokenize=False,
        )
        for row in rows
    ]
    if not rows:
        return []
    asked = tokenizer(prompts, add_special_tokens=False)["input_ids"]
    answered = tokenizer([row.answer for row in rows], add_special_tokens=False)["input_ids"]
    end = tokenizer.eos_token_id
    made = [Encoded([*a, *b, end], len(a)) for a, b in zip(asked, answered, strict=True)]
    return [one for one in made if len(one.ids) <= context]


def learning_order(lengths: Sequence[int], batch: int, epochs: int, seed: int) -> list[int]:
    """Indices of rows, batch after batch over all epochs: shuffled, rows of like length together.

    The last batch of an epoch is filled up from its beginning, so that every batch is whole.
    """
    order: list[int] = []
    rng = random.Random(seed)
    for _ in range(epochs):
        every = list(range(len(lengths)))
        rng.shuffle(every)
        every += [every[k % len(lengths)] for k in range(-len(every) % batch)]
        batches: list[list[int]] = []
        for start in range(0, len(every), batch * _MEGABATCH):
            near = sorted(every[start : start + batch * _MEGABATCH], key=lambda i: lengths[i])
            batches += [near[k : k + batch] for k in range(0, len(near), batch)]
        rng.shuffle(batches)
        order += [index for one in batches for index in one]
    return order
