"""A right kernel that adds in another order than torch is within the budget; one that adds in half precision is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from module_bench import ModuleBench

from cudaperf_agent.cuda import modules
from cudaperf_agent.cuda.modules.budget import module_output
from cudaperf_agent.cuda.verdict import Status

sys.path.insert(0, str(Path(modules.__file__).parent / "child"))

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODULE = """import torch
class RowSum(torch.nn.Module):
    def forward(self, x):
        return {result}
def get_inputs():
    return [torch.randn(6, 2049)]
"""

ONE_AFTER_ANOTHER = '''import torch
from torch import nn

CUDA_SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void row_sum(const float *x, float *out, long long rows, long long columns) {{
    long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    {accumulator} total = {accumulator}(0.0f);
    for (long long j = 0; j < columns; ++j) total = {accumulator}(float(total) + x[row * columns + j]);
    out[row] = {result};
}}
extern "C" int run(const void *x, void *out, long long rows, long long columns, cudaStream_t stream) {{
    if (rows > 0)
        row_sum<<<(rows + 31) / 32, 32, 0, stream>>>((const float *)x, (float *)out, rows, columns);
    return cudaGetLastError();
}}
"""
kernels = load_cuda(CUDA_SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        launch(kernels.run, x, out, x.shape[0], x.shape[1])
        return out
'''


@pytest.mark.parametrize("contents", ["normal", "constant", "shifted"])
async def test_the_budget_of_a_sum_of_two_thousand_terms(contents: str) -> None:
    torch = pytest.importorskip("torch")
    from cudaperf_child.summation import AnyOrder

    source = torch.Generator().manual_seed(1)
    x = torch.randn(64, 2049, generator=source)
    x = {"normal": x, "constant": torch.full_like(x, 1.3), "shifted": x + 12}[contents]
    plain, wide = x.sum(1).numpy(), x.double().sum(1).numpy()
    with AnyOrder(source):
        summed = x.double().sum(1).numpy()
    (part,) = module_output({"name": "y", "dtype": "f32"}, plain, wide, [], summed).parts
    assert part.allowed is not None

    def within(kind: type[np.floating[Any]]) -> float:
        serial = np.add.accumulate(x.numpy().astype(kind), axis=1, dtype=kind)[:, -1].astype(np.float64)
        return float(np.mean(np.abs(serial - wide) <= part.allowed))

    assert within(np.float32) == 1.0
    assert within(np.float16) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("torch_result", "cuda_result"),
    [("x.sum(1)", "float(total)"), ("x.mean(1)", "float(total) / (float)columns")],
    ids=["sum", "mean"],
)
async def test_a_plain_loop_in_float_is_right_and_one_in_half_is_not(
    module_bench: ModuleBench, tmp_path: Path, torch_result: str, cuda_result: str
) -> None:
    path = tmp_path / "row_sum.py"
    path.write_text(MODULE.format(result=torch_result))
    task = await module_bench.described(path)
    plain = ONE_AFTER_ANOTHER.format(accumulator="float", result=cuda_result)
    for hidden in (False, True):
        verdict = await module_bench.verifier.test(task, plain, hidden=hidden)
        assert verdict.correct, verdict.message
        assert verdict.worst_error < 0.8
    half = ONE_AFTER_ANOTHER.format(accumulator="__half", result=cuda_result)
    assert (await module_bench.verifier.test(task, half)).status is Status.WRONG
