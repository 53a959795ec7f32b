"""Hints: ten kernels with one planted flaw each, and what a hint says."""

from __future__ import annotations

import re
from pathlib import Path

from cudaperf_agent.features.extract import extract_here
from cudaperf_agent.features.hints import Hint, hints
from cudaperf_agent.features.ptxas import parse_ptxas

FLAWED = sorted((Path(__file__).parent / "flawed").glob("*.cu"))
GOLDEN = Path(__file__).parent / "golden"


def planted_line(source: str) -> int:
    (line,) = [n for n, text in enumerate(source.splitlines(), 1) if "// FLAW" in text]
    return line


def first(path: Path) -> Hint:
    return hints(extract_here(path.read_text()))[0]


def test_the_first_hint_names_the_planted_line_in_at_least_nine_of_ten() -> None:
    assert len(FLAWED) == 10
    missed = {p.stem: (first(p).line, planted_line(p.read_text())) for p in FLAWED}
    missed = {name: lines for name, lines in missed.items() if lines[0] != lines[1]}
    assert len(missed) <= 1, missed


def test_the_cause_is_the_planted_one() -> None:
    causes = {
        "array_of_structs": "coal",
        "bank_conflict": "bank_conflict",
        "column_store": "coal",
        "copy_in_loop": "xfer",
        "diverging_loop": "div",
        "huge_block": "occ",
        "one_address": "atomics",
        "single_block": "grid_fill",
        "strided_rows": "coal",
        "tiny_block": "occ",
    }
    assert {p.stem: first(p).feature for p in FLAWED} == causes


def test_a_hint_is_one_to_three_short_sentences_with_line_and_remedy() -> None:
    for path in [*FLAWED, *GOLDEN.glob("*.cu")]:
        for hint in hints(extract_here(path.read_text())):
            assert len(hint.message) < 360
            assert not hint.message.startswith("Line")  # displays put the line in front
            assert hint.message[0] == "`" or hint.message[0].isupper()
            text = re.sub(r"`[^`]*`", "", hint.message)
            assert 1 <= text.count(". ") + text.endswith(".") <= 3, hint.message


def test_the_stride_is_named_as_the_programmer_wrote_it() -> None:
    (found,) = [h for h in hints(extract_here((GOLDEN / "row_per_thread.cu").read_text())) if h.feature == "coal"]
    assert "`a[row * cols + j]`" in found.message
    assert "stride cols" in found.message


def test_a_good_kernel_gets_no_hints() -> None:
    assert hints(extract_here((GOLDEN / "saxpy.cu").read_text())) == ()
    assert hints(extract_here((GOLDEN / "vector_loads.cu").read_text())) == ()


PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4gemmiPKfS0_Pf' for 'sm_90'
ptxas info    : Function properties for _Z4gemmiPKfS0_Pf
    16 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 2048 bytes smem, 384 bytes cmem[0]
ptxas info    : Compiling entry function '_Z5saxpyifPKfPf' for 'sm_90'
ptxas info    : Function properties for _Z5saxpyifPKfPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 376 bytes cmem[0]
warning: something else
"""


def test_ptxas_output_is_read_and_spills_are_hinted_at() -> None:
    gemm, saxpy = parse_ptxas(PTXAS)
    assert (gemm.name, gemm.registers, gemm.shared, gemm.stack) == ("_Z4gemmiPKfS0_Pf", 64, 2048, 16)
    assert (gemm.spill_stores, gemm.spill_loads) == (24, 40)
    assert (saxpy.registers, saxpy.shared, saxpy.spill_loads) == (12, 0, 0)
    features = extract_here((GOLDEN / "tiled_gemm.cu").read_text(), ptxas=PTXAS)
    assert features.extended["registers"] == 64
    assert features.extended["shared_bytes"] == 2048
    assert features.extended["spill_bytes"] == 64
    assert any(h.feature == "spill_bytes" for h in hints(features))


def test_ptxas_of_nothing() -> None:
    assert parse_ptxas("") == ()
    assert extract_here((GOLDEN / "saxpy.cu").read_text(), ptxas="nonsense").extended["registers"] is None
