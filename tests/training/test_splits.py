"""Splits: every family is in one place, and what is held out is held out whole."""

from training.dataset.families import FAMILIES, all_programs
from training.splits import UNSEEN_FAMILIES, split_of


def test_unseen_families_exist_and_span_the_areas() -> None:
    areas = {family.name: family.area for family in FAMILIES}
    assert areas.keys() >= UNSEEN_FAMILIES
    alone = {a for a in areas.values() if list(areas.values()).count(a) == 1}
    assert {areas[name] for name in UNSEEN_FAMILIES} == set(areas.values()) - alone


def test_no_member_of_an_unseen_family_is_learned_from() -> None:
    learned = {p.family for p in all_programs() if split_of(p.family, p.member) in ("train", "validation")}
    assert not learned & UNSEEN_FAMILIES


def test_a_seen_family_keeps_one_member_for_choosing_and_one_for_the_end() -> None:
    splits = [split_of("matmul", member) for member in range(8)]
    assert splits == ["train"] * 6 + ["validation", "held_out_member"]
