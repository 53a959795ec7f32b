"""Generated candidates against their modules: real torch, real kernels on the emulator, several sizes and types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from module_runs import HANDED, HERE, Traced, compared, cuda_of, traced

from cudaperf_agent.codegen.modules.kernels import THRESHOLDS
from cudaperf_agent.codegen.modules.variants import generate_module
from tests.nvcc_batches import refused

FILES = [*sorted(HANDED.glob("*.py")), *sorted((HERE / "cases").glob("*.py"))]
OTHER_STYLES = ("group_norm_silu", "row_softmax_scale", "arg_reductions", "column_statistics", "whole_reductions")
PRODUCTS = ("linear_gelu_residual", "matmul_transposed", "convolution_bias_pool")
DECLINED = {
    "boolean_mask": ("aten.index.Tensor", 7),
    "changed_input": ("in place", 0),
    "inverse": ("linalg", 7),
    "random_numbers": ("aten.rand_like", 7),
    "sort": ("aten.sort", 7),
    "transposed_convolution": ("aten.convolution.default: transposed", 11),
}

KNOWN = {"cosine_similarity/naive": "float16"}
"""What is wrong and known (docs/pytorch-variants.md): squares that `naive` stores as float16 vanish below 6e-8."""


@pytest.fixture(scope="module")
async def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Traced]:
    """The handed modules and ours."""
    return await traced(FILES, tmp_path_factory.mktemp("traces"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_first_and_naive_variant_of_every_module(modules: dict[str, Traced], tmp_path: Path) -> None:
    assert len(modules) >= 40
    answers = await compared(modules, tmp_path, ["first", "naive"])
    assert {n: a.split(" [")[0] for n, a in answers.items() if a} == KNOWN


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_style_where_they_differ_most(modules: dict[str, Traced], tmp_path: Path) -> None:
    answers = await compared({n: modules[n] for n in OTHER_STYLES}, tmp_path)
    assert {n: a for n, a in answers.items() if a} == {}
    assert {n.split("/")[1] for n in answers} >= {"fused", "wide", "warp_rows", "block_rows", "chunks", "thread_rows"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_large_tiles_at_sizes_that_do_not_fill_them(modules: dict[str, Traced], tmp_path: Path) -> None:
    """Which a GPU gets for large products only: here one block is enough to choose them."""
    limits = replace(THRESHOLDS, enough_blocks=1)
    forced = {n: replace(m, generation=generate_module(m.graph, class_source=m.file.read_text(), limits=limits))
              for n, m in modules.items() if n in PRODUCTS}  # fmt: skip
    text = forced["linear_gelu_residual"].generation.variants[0].source
    assert ">= 1) {" in text
    assert "128x128<real>" in text
    answers = await compared(forced, tmp_path, ["fused", "wide", "block_rows"])
    assert {n: a for n, a in answers.items() if a} == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_declined_with_the_operator_and_its_line(tmp_path: Path) -> None:
    found = await traced([HERE / "declined" / f"{name}.py" for name in DECLINED], tmp_path)
    for name, (what, line) in DECLINED.items():
        declined = found[name].generation.declined
        assert declined is not None, name
        assert what in declined.reason, name
        assert declined.line == line, (name, declined)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_nvcc_compiles_every_variant(modules: dict[str, Traced]) -> None:
    texts = {f"{n}/{v.strategy}": cuda_of(v.source) for n, m in modules.items() for v in m.generation.variants}
    assert len(texts) > 200
    assert await refused(texts, flags=["-std=c++14"]) == {}
