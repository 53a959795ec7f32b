"""Which rows of a step are trained on: only those that push the policy, with the weight of the whole step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from training.grpo.rows import Turn


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows of one optimiser step on one device.

    Attributes:
        rows: A multiple of the number of micro-batches; rows at the end may be there to fill up, without advantage.
        scale: What advantages are multiplied by, so that the loss is that of all `planned` rows.
        planned: Rows that the step would have, were none left out: the constant that the loss is divided by.
        pushing: Rows with an advantage.
    """

    rows: tuple[Turn, ...]
    scale: float
    planned: int
    pushing: int


def training_rows(turns: Sequence[Turn], planned: int, micro_batches: int) -> TrainingRows:
    """Leave out rows without advantage: they would cost time and give no gradient.

    Both losses are a mean over rows of micro-batches of equal size, so leaving out rows that contribute nothing and
    scaling the others by kept over planned gives the same gradient.

    Args:
        turns: With advantages, of this device.
        planned: Rows of a full step on this device.
        micro_batches: Forward passes of the step; their number is fixed.
    """
    pushing = [t for t in turns if t.advantage != 0.0]
    filler = replace((pushing or list(turns))[0], advantage=0.0) if turns else None
    wanted = max(micro_batches, -(-len(pushing) // micro_batches) * micro_batches)
    rows = list(pushing)
    if filler is None:
        # Nothing came back (every trajectory failed): a row of two tokens keeps the step's shape and teaches nothing.
        filler = Turn("", "", 0, 0, (0,), (0,), (0.0,), "", None)
    short = replace(filler, prompt_ids=filler.prompt_ids[:1], ids=filler.ids[:1], logprobs=filler.logprobs[:1])
    rows += [short] * (wanted - len(rows))
    return TrainingRows(tuple(rows), len(rows) / planned, planned, len(pushing))
