"""Verdicts on PyTorch candidates, on the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from module_bench import ModuleBench

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.errors import InputRefused

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANY_FLOAT = '''import torch
from torch import nn

CUDA_SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T> __global__ void scaled(const T *x, T *out, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = T(float(x[i]) * 1.5f);
}
template <class T> int run(const void *x, void *out, long long n, cudaStream_t stream) {
    if (n > 0) scaled<T><<<(n + 255) / 256, 256, 0, stream>>>((const T *)x, (T *)out, n);
    return cudaGetLastError();
}
extern "C" int run_f32(const void *x, void *out, long long n, cudaStream_t s) { return run<float>(x, out, n, s); }
extern "C" int run_f16(const void *x, void *out, long long n, cudaStream_t s) { return run<__half>(x, out, n, s); }
extern "C" int run_bf16(const void *x, void *out, long long n, cudaStream_t s) {
    return run<__nv_bfloat16>(x, out, n, s);
}
"""
kernels = load_cuda(CUDA_SOURCE)
RUN = {torch.float32: kernels.run_f32, torch.float16: kernels.run_f16, torch.bfloat16: kernels.run_bf16}


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        launch(RUN[x.dtype], x, out, x.numel())
        return out
'''
SCALED = """import torch
class Scaled(torch.nn.Module):
    def forward(self, x):
        return 1.5 * x
"""


@pytest.fixture
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.getbasetemp() / "scaled.py"
    path.write_text(SCALED)
    return path


async def test_what_a_run_shows_of_a_module(module_bench: ModuleBench, torch_cases: Path) -> None:
    module = (await module_bench.described(torch_cases / "row_softmax_scale.py")).module
    assert module is not None
    scores, mask = module.inputs
    assert (scores.dtype, scores.shape, scores.open_range) == ("f32", (2048, 1024), True)
    assert mask.distinct == (0.0, 1.0)
    # Rows and columns of both inputs change together, and are told apart although one file could have them equal.
    assert [d.places for d in module.dimensions] == [((0, 0), (1, 0)), ((0, 1), (1, 1))]
    assert module.strided
    assert [o.rank for o in module.outputs] == [1]


async def test_the_hand_written_candidate_is_correct(
    module_bench: ModuleBench, torch_cases: Path, row_softmax_candidate: str
) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    visible = await module_bench.verifier.test(task, row_softmax_candidate)
    assert visible.correct, visible.message
    assert visible.form == "light"
    assert 0 < visible.worst_error < 1
    assert "emulator" in visible.profile["cases"]["reduced"]
    assert not visible.measured
    hidden = await module_bench.verifier.test(task, row_softmax_candidate, hidden=True)
    assert hidden.correct, hidden.message
    assert hidden.total > visible.total


async def test_a_missing_barrier_is_found_with_the_line_of_the_python_file(
    module_bench: ModuleBench, torch_cases: Path, row_softmax_candidate: str
) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    line = "    shared[threadIdx.x] = largest;\n    __syncthreads();\n"
    assert line in row_softmax_candidate
    verdict = await module_bench.verifier.test(
        task, row_softmax_candidate.replace(line, "    shared[threadIdx.x] = largest;\n\n")
    )
    assert verdict.status is Status.MEMORY_ERROR
    assert verdict.reports[0].kind in ("race", "uninit-read")
    text = row_softmax_candidate.splitlines()
    assert "shared[threadIdx.x" in text[(verdict.reports[0].line or 0) - 1]


async def test_a_compile_error_has_the_line_of_the_python_file(
    module_bench: ModuleBench, torch_cases: Path, row_softmax_candidate: str
) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    broken = row_softmax_candidate.replace("float sum = 0, dot = 0;", "float sum = zero, dot = 0;")
    verdict = await module_bench.verifier.compile(task, broken)
    assert verdict.status is Status.COMPILE_ERROR
    line = next(i for i, text in enumerate(broken.splitlines(), 1) if "sum = zero" in text)
    assert verdict.diagnostics[0].line == line
    assert "zero" in verdict.message


async def test_python_errors_have_their_line(
    module_bench: ModuleBench, torch_cases: Path, row_softmax_candidate: str
) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    broken = row_softmax_candidate.replace("kernels.row_softmax,", "kernels.nothing,")
    verdict = await module_bench.verifier.test(task, broken)
    assert verdict.status is Status.CRASH
    line = next(i for i, text in enumerate(broken.splitlines(), 1) if "kernels.nothing" in text)
    assert verdict.message.startswith(f"line {line}: AttributeError")


async def test_load_inline_needs_a_gpu(module_bench: ModuleBench, torch_cases: Path) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    text = (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
        "m = load_inline(name='m', cpp_sources='', cuda_sources='')\nclass ModelNew(torch.nn.Module):\n    pass\n"
    )
    verdict = await module_bench.verifier.test(task, text)
    assert verdict.status is Status.UNSUPPORTED
    assert "real GPU" in verdict.message


async def test_all_the_types_that_are_asked_for_are_tested(module_bench: ModuleBench, scaled: Path) -> None:
    task = await module_bench.described(scaled, class_name="Scaled", inputs="f32[40,33]", dtypes=("f32", "f16", "bf16"))
    verdict = await module_bench.verifier.test(task, ANY_FLOAT)
    assert verdict.correct, verdict.message
    assert verdict.profile["cases"]["dtypes"] == ["f32", "f16", "bf16"]
    # A result rounded to bfloat16 in between is right for bfloat16 only.
    rough = ANY_FLOAT.replace("T(float(x[i]) * 1.5f)", "T(float(__float2bfloat16(float(x[i]))) * 1.5f)")
    verdict = await module_bench.verifier.test(task, rough)
    assert verdict.status is Status.WRONG
    assert verdict.failure is not None
    assert verdict.failure.name.startswith("f32")


async def test_a_module_that_cannot_be_run_is_refused_with_its_line(module_bench: ModuleBench, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(SCALED.replace("return 1.5 * x", "return x @ x"))
    with pytest.raises(InputRefused) as caught:
        await module_bench.described(file, class_name="Scaled", inputs="f32[40,33]")
    assert caught.value.where == f"{file}:4"
    assert "forward fails" in caught.value.message


async def test_randomness_is_refused(module_bench: ModuleBench, tmp_path: Path) -> None:
    file = tmp_path / "chance.py"
    file.write_text(SCALED.replace("return 1.5 * x", "return x * torch.rand_like(x)"))
    with pytest.raises(InputRefused, match="another result each time"):
        await module_bench.described(file, class_name="Scaled", inputs="f32[40,33]")


async def test_sizes_that_the_module_fixes_stay_as_they_are(module_bench: ModuleBench, torch_cases: Path) -> None:
    module = (await module_bench.described(torch_cases / "linear_gelu_residual.py")).module
    assert module is not None
    changing = {place for d in module.dimensions for place in d.places}
    assert changing == {(0, 0), (0, 1)}
    assert {s.name for s in module.state} == {"up.weight", "up.bias", "down.weight", "gain"}


LIBRARY = '''import torch
from torch import nn

CUDA_SOURCE = r"""
#include <cuda_runtime.h>

__global__ void relu_bias(const float *x, const float *bias, float *out, long long n, long long width) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(x[i] + bias[i % width], 0.0f);
}

extern "C" int run(const float *x, const float *bias, float *out, long long n, long long width, cudaStream_t stream) {
    if (n > 0) relu_bias<<<(n + 255) / 256, 256, 0, stream>>>(x, bias, out, n, width);
    return cudaGetLastError();
}
"""
kernels = load_cuda(CUDA_SOURCE)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(24, 40)

    def forward(self, x):
        product = torch.mm(x.view(-1, 24), self.layer.weight.t()).view(*x.shape[:-1], 40)
        out = torch.empty_like(product)
        launch(kernels.run, product, self.layer.bias, out, out.numel(), 40)
        return {"hidden": out, "shape": (x.shape[0] * torch.ones(1, dtype=torch.int64, device=x.device),)}
'''
LAYER = """import torch
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(24, 40)
    def forward(self, x):
        hidden = torch.relu(self.layer(x.contiguous().view(-1, 24)).view(*x.shape[:-1], 40))
        return {"hidden": hidden, "shape": (torch.tensor([x.shape[0]], device=x.device),)}
"""


async def test_libraries_where_they_are_allowed_and_results_that_are_nested(
    module_bench: ModuleBench, tmp_path: Path
) -> None:
    file = tmp_path / "layer.py"
    file.write_text(LAYER)
    options = {"class_name": "Layer", "inputs": "f32[6,24]"}
    allowed = await module_bench.described(file, mode="libraries-allowed", **options)
    assert allowed.module is not None
    assert [o.name for o in allowed.module.outputs] == ["output.hidden", "output.shape[0]"]
    verdict = await module_bench.verifier.test(allowed, LIBRARY)
    assert verdict.correct, verdict.message
    pure = await module_bench.described(file, **options)
    forbidden = await module_bench.verifier.test(pure, LIBRARY)
    assert forbidden.status is Status.CHEAT
    assert "mm" in forbidden.message
