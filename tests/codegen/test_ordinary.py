"""Ordinary C as people write it: what translates, and what is declined, at which line and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

from .running import check

ORDINARY = sorted((Path(__file__).parent / "ordinary").glob("*.c"))

# file: (line, phrase of the reason); all other files translate.
DECLINED = {
    "adler32": (6, "needs the 'a' of the one before"),
    "below_zero_unsigned": (3, "may start below zero, is compared as unsigned"),
    "count_words": (6, "needs the 'in_word' of the one before"),
    "drawdown": (6, "needs the 'peak' of the one before"),
    "ema": (5, "needs the 's' of the one before"),
    "fill_forward": (4, "needs the 'a' of the one before"),
    "goto_retry": (4, "a label"),
    "inplace_prev": (5, "same element of 'a'"),
    "insertion": (5, "may end early"),
    "is_sorted": (4, "may end early"),
    "max_subarray": (7, "needs the 'best' of the one before"),
    "overlap_shift_right": (4, "same element of 'a'"),
    "prefix_xor": (4, "needs the 'a' of the one before"),
    "product_scan": (6, "needs the 'p' of the one before"),
    "strided_both": (11, "same element of 'dy'"),
    "swap_behind_if": (3, "'cur' moves between launches"),
    "two_out": (5, "same element of 'even'"),
    "while_cond_assign": (4, "may end early"),
    "zero_runs": (8, "needs the 'best' of the one before"),
}
TRANSLATED = [p for p in ORDINARY if p.stem not in DECLINED]
QUICK = ("own_start", "inner_while", "running_max_f", "nan_argmax", "switch_default_mid", "after_loop")


@pytest.mark.parametrize("path", ORDINARY, ids=lambda p: p.stem)
def test_it_translates_or_says_why_not(path: Path) -> None:
    generation = generate(load_task(path))
    if path.stem not in DECLINED:
        assert generation.declined is None
        assert generation.naive is not None
        return
    declined = generation.declined
    assert declined is not None
    line, phrase = DECLINED[path.stem]
    assert declined.line == line
    assert phrase in declined.reason
    assert declined.remedy


@pytest.mark.parametrize("path", [p for p in TRANSLATED if p.stem in QUICK], ids=lambda p: p.stem)
async def test_the_naive_variant_gives_what_the_c_gives(path: Path, tmp_path: Path) -> None:
    task = await prepare(load_task(path))
    naive = generate(task).naive
    assert naive is not None
    cases = [*make_cases(task, hidden=False), *make_cases(task, hidden=True)]
    trouble = await check(task, naive.source, cases, tmp_path, oracle=Oracle(task))
    assert trouble.text == ""


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in TRANSLATED if p.stem not in QUICK], ids=lambda p: p.stem)
async def test_the_best_variant_passes_visible_and_hidden_cases(path: Path, tmp_path: Path) -> None:
    task = await prepare(load_task(path))
    generation = generate(task)
    cases = [*make_cases(task, hidden=False), *make_cases(task, hidden=True)]
    trouble = await check(task, generation.variants[0].source, cases, tmp_path, oracle=Oracle(task))
    assert trouble.text == "", generation.variants[0].strategy
