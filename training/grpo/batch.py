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
    # Nothing came back (every trajectory failed): rows of two tokens keep the step's shape and teach nothing.
    some = (pushing or list(turns) or [Turn("", "", 0, 0, (0,), (0,), (0.0,), "", None)])[0]
    wanted = max(micro_batches, -(-len(pushing) // micro_batches) * micro_batches)
    return filled(TrainingRows(tuple(pushing or [_short(some)]), 0.0, planned, len(pushing)), wanted)


def filled(training: TrainingRows, wanted: int) -> TrainingRows:
    """With rows that teach nothing added up to `wanted`, and the scale that belongs to it.

    Every process of a run must train on as many rows as the others: TRL gathers numbers of each row.
    """
    rows = training.rows + (_short(training.rows[0]),) * (wanted - len(training.rows))
    return replace(training, rows=rows, scale=len(rows) / training.planned)


def _short(turn: Turn) -> Turn:
    return replace(turn, prompt_ids=turn.prompt_ids[:1], ids=turn.ids[:1], logprobs=turn.logprobs[:1], advantage=0.0)
