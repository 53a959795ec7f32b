"""What is read, and from where: CUDA in Python strings, PyTorch extensions, entries, launch geometry."""

from __future__ import annotations

import pytest

from cudaperf_agent.features.extract import extract_here
from cudaperf_agent.features.pysource import embedded_cuda, is_python

TORCH = '''"""A model with its own kernel; this docstring mentions nothing of interest."""
import torch
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

template <typename scalar_t>
__global__ void gelu(const scalar_t *__restrict__ x, scalar_t *y, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[2 * i] * scalar_t(0.5);
}

static void unused_launch(const float *x, float *y) { gelu<float><<<1, 32>>>(x, y, 1); }

torch::Tensor forward(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on the device\\n");
  const at::cuda::OptionalCUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  const int threads = 256;
  const int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gelu", ([&] {
    gelu<scalar_t><<<(n + threads - 1) / threads, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  }));
  return y;
}
"""
cpp_source = "torch::Tensor forward(torch::Tensor x);"
module = load_inline(name="gelu", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["forward"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.forward(x)
'''


def test_cuda_in_a_python_string_keeps_its_lines() -> None:
    features = extract_here(TORCH)
    assert features.gaps == ()
    assert (features["kernels"], features["tpb"], features["occ"]) == (1, 256, 1.0)
    assert features["coal"] == pytest.approx((1.0 + 0.4) / 2)
    lines = TORCH.splitlines()
    loads = [e for e in features.evidence if e.feature == "coal"]
    assert {e.text for e in loads} == {"y[i]", "x[2 * i]"}
    assert all(e.text in lines[e.line - 1] for e in loads)


def test_lines_stay_true_after_escapes_and_continued_lines() -> None:
    source = TORCH.replace(
        "#include <torch/extension.h>\n", "#include <torch/extension.h>\n#define TWO \\\\\n  2\n"
    ).replace("x[2 * i]", "x[TWO * i]")
    features = extract_here(source)
    assert features.gaps == ()
    (load,) = [e for e in features.evidence if "TWO" in e.text]
    assert "x[TWO * i]" in source.splitlines()[load.line - 1]


def test_a_pybind_module_names_the_entries() -> None:
    source = """#include <torch/extension.h>
__global__ void a(float *x) { x[threadIdx.x] = 0.0f; }
__global__ void b(float *x) { x[2 * threadIdx.x] = 0.0f; }
void bound(torch::Tensor x) { a<<<1, 64>>>(x.data_ptr<float>()); }
void unbound(torch::Tensor x) { b<<<1, 64>>>(x.data_ptr<float>()); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("bound", &bound, "doc"); }
"""
    features = extract_here(source)
    assert features.gaps == ()
    assert [site.kernel for site in features.launches] == ["a"]


def test_an_f_string_with_cuda_is_a_gap_with_its_line() -> None:
    source = TORCH.replace('cuda_source = """', 'cuda_source = f"""').replace("{", "{{").replace("}", "}}")
    assert any("f-string" in g.reason and g.line == 5 for g in extract_here(source).gaps)


def test_python_without_cuda_and_broken_python() -> None:
    assert any("no CUDA" in g.reason for g in extract_here("import torch\nx = '''nothing'''\n").gaps)
    broken = extract_here(TORCH + "\ndef (:\n")
    assert "Python" in broken.gaps[0].reason
    assert embedded_cuda("def (:") is None


def test_cuda_is_not_taken_for_python() -> None:
    assert not is_python("#include <x>\n// from here import that\n__global__ void k() {}\nimport x\n")
    assert is_python(TORCH)


KERNELS = """__global__ void one(float *x) { x[threadIdx.x] = 1.0f; }
__global__ void two(float *x) { x[threadIdx.x] = 2.0f; }
"""


@pytest.mark.parametrize(
    ("host", "entry", "launched"),
    [
        ("extern \"C\" int f_device(float *x) { one<<<1, 32>>>(x); return 0; }\n"
         "void g(float *x) { two<<<1, 32>>>(x); }", None, ["one"]),
        ("void f(float *x) { one<<<1, 32>>>(x); }\nvoid g(float *x) { two<<<1, 32>>>(x); }", "g", ["two"]),
        ("void f_device(float *x) { one<<<1, 32>>>(x); }\nvoid f(float *x) { two<<<1, 32>>>(x); }", "f", ["one"]),
        ("void f(float *x) { one<<<1, 32>>>(x); }\nvoid g(float *x) { two<<<1, 32>>>(x); }", None, ["one", "two"]),
        ("void f(float *x) { one<<<1, 32>>>(x); }\nvoid g(float *x) { f(x); }", None, ["one"]),
        ("static void h(float *x) { one<<<1, 32>>>(x); }\nvoid g(float *x) { two<<<1, 32>>>(x); }", None, ["two"]),
        ("namespace a { void f(float *x) { one<<<1, 32>>>(x); } }", None, ["one"]),
        ("struct S { void go(float *x) { one<<<1, 32>>>(x); } };\nvoid f(float *x) { S s; s.go(x); }", None, ["one"]),
        ("void f(float *x) { auto k = two; k<<<1, 32>>>(x); }", None, ["two"]),
        ("void f(float *x) { void *a[] = {&x}; cudaLaunchKernel((void *)one, dim3(1), dim3(32), a); }", None, ["one"]),
        ("void f(float *x) { if (sizeof(float) == 8) one<<<1, 32>>>(x); else two<<<1, 32>>>(x); }", None, ["two"]),
        ("void f(float *x, int n) { if (n == 0) return; one<<<1, 32>>>(x); }", None, ["one"]),
        ("void f(float *x, int n) { switch (n) { case 1: one<<<1, 32>>>(x); break; default: two<<<1, 32>>>(x); } }",
         None, ["one", "two"]),
        ("void f(float *x) { return; one<<<1, 32>>>(x); }", None, []),
        ("void f(float *x) { for (int i = 0; i < 0; ++i) one<<<1, 32>>>(x); }", None, []),
        ("void f(float *x) { auto go = [&](int n) { one<<<n, 32>>>(x); }; go(3); }", None, ["one"]),
    ],
)  # fmt: skip
def test_only_what_the_entry_reaches_counts(host: str, entry: str | None, launched: list[str]) -> None:
    features = extract_here(KERNELS + host, entry=entry)
    assert [site.kernel for site in features.launches] == launched
    assert {a.kernel for a in features.accesses} == set(launched)
    assert bool(features.gaps) is (not launched)


@pytest.mark.parametrize(
    ("geometry", "block", "grid"),
    [
        ("one<<<4, 96>>>(x);", (96, 1, 1), (4, 1, 1)),
        ("dim3 b(8, 4, 2); one<<<dim3(3, 2), b>>>(x);", (8, 4, 2), (3, 2, 1)),
        ("dim3 b; b.x = 64; b.y = 2; one<<<n, b>>>(x);", (64, 2, 1), (None, 1, 1)),
        ("int t = 32; t *= 4; one<<<n, t>>>(x);", (128, 1, 1), (None, 1, 1)),
        ("int t = n > 100 ? 256 : 64; one<<<n, t>>>(x);", (None, 1, 1), (None, 1, 1)),
        ("const int t = n > 100 ? 64 : 64; one<<<n, t>>>(x);", (64, 1, 1), (None, 1, 1)),
        ("int t; if (n > 3) t = 32; else t = 64; one<<<n, t>>>(x);", (None, 1, 1), (None, 1, 1)),
        ("dim3 g{2, 3}, b = {16, 16}; one<<<g, b>>>(x);", (16, 16, 1), (2, 3, 1)),
        ("int t = std::min(128, 256); one<<<1, t>>>(x);", (128, 1, 1), (1, 1, 1)),
        ("dim3 b = make(); one<<<1, b>>>(x);", (32, 3, 1), (1, 1, 1)),
        ("int t = 32; while (t < n) t *= 2; one<<<1, t>>>(x);", (None, 1, 1), (1, 1, 1)),
        ("int t; grow(t); one<<<1, t>>>(x);", (192, 1, 1), (1, 1, 1)),
    ],
)
def test_launch_geometry(
    geometry: str, block: tuple[int | None, int | None, int | None], grid: tuple[int | None, int | None, int | None]
) -> None:
    source = (
        "#include <algorithm>\n" + KERNELS + "static dim3 make() { return dim3(32, 3); }\n"
        "static void grow(int &t) { t = 192; }\nvoid f(float *x, int n) { " + geometry + " }"
    )
    features = extract_here(source)
    (site,) = features.launches
    assert (site.block, site.grid) == (block, grid)
    assert features.missing == (("occ", "tpb") if None in block else ())
