"""Generated candidates against their modules: real torch, real kernels on the emulator, several sizes and types."""

from __future__ import annotations

from pathlib import Path

import pytest
from module_runs import HANDED, HERE, Traced, compared, cuda_of, traced

from cudaperf_agent.cuda.compile import CompileConfig, compile_cuda
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.execution.child import Limits

BATCH = 24
SOME = ("layer_norm_residual", "cross_entropy", "arg_reductions", "max_pool_relu", "rms_norm_float", "whole_reductions")
CASES = sorted((HERE / "cases").glob("*.py"))
DECLINED = {
    "boolean_mask": ("aten.index.Tensor", 8),
    "changed_input": ("in place", 0),
    "inverse": ("aten.linalg_inv_ex", 8),
    "random_numbers": ("aten.rand_like", 8),
    "sort": ("aten.sort", 8),
    "transposed_convolution": ("aten.convolution.default: transposed", 12),
}


@pytest.fixture(scope="module")
async def few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Traced]:
    """The handed modules, and some more."""
    files = [*sorted(HANDED.glob("*.py")), *(HERE / "cases" / f"{name}.py" for name in SOME)]
    return await traced(files, tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
async def all_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Traced]:
    return await traced(CASES, tmp_path_factory.mktemp("traces"))


@pytest.mark.slow
async def test_handed_modules_and_some_more(few: dict[str, Traced], tmp_path: Path) -> None:
    answers = await compared(few, tmp_path, ["first", "naive"])
    assert {n: a for n, a in answers.items() if a} == {}
    assert len(answers) >= len(few)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_every_variant_of_every_case(all_cases: dict[str, Traced], tmp_path: Path) -> None:
    assert len(all_cases) >= 30
    answers = await compared(all_cases, tmp_path)
    assert {n: a for n, a in answers.items() if a} == {}


@pytest.mark.slow
async def test_declined_with_the_operator_and_its_line(tmp_path: Path) -> None:
    found = await traced([HERE / "declined" / f"{name}.py" for name in DECLINED], tmp_path)
    for name, (what, line) in DECLINED.items():
        declined = found[name].generation.declined
        assert declined is not None, name
        assert what in declined.reason, name
        assert declined.line == line, (name, declined)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_nvcc_compiles_every_variant(
    few: dict[str, Traced], all_cases: dict[str, Traced], tmp_path: Path
) -> None:
    """Many in one translation unit, each with its launchers renamed and in a namespace of its own."""
    texts = list({cuda_of(v.source): None for m in (few | all_cases).values() for v in m.generation.variants})
    assert len(texts) > 100
    config = CompileConfig(flags=("-O1", "-std=c++14"), limits=Limits(seconds=600), source_bytes=8 << 20)
    for first in range(0, len(texts), BATCH):
        parts = ["#include <cuda_runtime.h>", "#include <cuda_bf16.h>", "#include <cuda_fp16.h>", "#include <math.h>"]
        for number, text in enumerate(texts[first : first + BATCH]):
            body = "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
            parts.append(f"namespace v{number} {{\n{body.replace(' forward_', f' v{number}_forward_')}\n}}")
        made = await compile_cuda(find_nvcc(), "\n".join(parts), "cubin", config=config)
        assert made.artefact is not None, [d for d in made.diagnostics if d.severity == "error"][:5]
