"""Generation for the handed cases."""

from __future__ import annotations

from pathlib import Path

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.tasks.parse import load_task


def test_saxpy_has_exactly_one_naive_variant_among_several(c_cases: Path) -> None:
    generation = generate(load_task(c_cases / "saxpy.c"))
    assert generation.declined is None
    assert sum(v.naive for v in generation.variants) == 1
    assert len(generation.variants) >= 3
    assert "y[i] = a * x[i] + y[i];" in generation.variants[-1].source
