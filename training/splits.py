"""Which tasks may be learned from: the one place that says so, by program family and member.

Two held-out sets answer two questions. *Unseen families*: no member of such a family is in ranker training, policy
training or the few-shot pool. *Held-out members*: other members of the family were learned from, this one was not.
Members `VALIDATION_MEMBER` of seen families choose checkpoints and are reported nowhere as a result.
"""

from __future__ import annotations

from typing import Literal

Split = Literal["train", "validation", "held_out_member", "unseen_family"]

UNSEEN_FAMILIES = frozenset(
    {
        "activation", "loan_value", "mix_bits",  # maps
        "flip_table",
        "gram",
        "nine_point", "wave_step",
        "row_spread", "count_matching",
        "keyed_sums",
        "padded_rows",
        "nearest_centre",
        "cheapest_descent",
        "box_blur",
        "composite",
        "ones_in_words",
    }
)  # fmt: skip
"""One or more families of every area but scans (there is one), fixed before anything was trained."""

VALIDATION_MEMBER = 6
HELD_OUT_MEMBER = 7


def split_of(family: str, member: int) -> Split:
    """The split of member `member` (0-based) of `family`."""
    if family in UNSEEN_FAMILIES:
        return "unseen_family"
    held: dict[int, Split] = {VALIDATION_MEMBER: "validation", HELD_OUT_MEMBER: "held_out_member"}
    return held.get(member, "train")
