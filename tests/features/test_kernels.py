"""Single constructs inside kernels: what each is worth, computed by hand."""

from __future__ import annotations

import math

import pytest

from cudaperf_agent.features.extract import extract_here
from cudaperf_agent.features.model import Features

PRELUDE = """#include <cooperative_groups.h>
#include <cuda_fp16.h>
struct Params { const float *in; float *out; int n, ld; };
struct Vec { float x, y, z; };
__host__ __device__ inline Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <class T> struct View {
  T *data;
  int ld;
  __device__ T &at(int r, int c) { return data[r * ld + c]; }
  __device__ T operator()(int r, int c) const { return data[r * ld + c]; }
};
__device__ void put(float *p, int at, float v) { p[at] = v; }
__device__ void add_to(float &sum, float v) { sum += v; }
template <int W> __device__ float warp_sum(float v) {
  for (int o = W / 2; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}
template <int N> __device__ int power() { if constexpr (N == 0) return 1; else return 2 * power<N - 1>(); }
"""


def kernel(body: str, block: str = "256") -> Features:
    features = extract_here(
        PRELUDE + "__global__ void k(const float *x, float *y, int *z, int n, int ld, Params p, View<float> v) {\n"
        "const int tx = threadIdx.x, ty = threadIdx.y;\n"
        "const int i = blockIdx.x * blockDim.x + tx;\n" + body + "\n}\n"
        "void f(const float *x, float *y, int *z, int n, int ld, Params p, View<float> v) {\n"
        "k<<<n, " + block + ">>>(x, y, z, n, ld, p, v); }\n"
    )
    assert not features.gaps, features.gaps
    return features


def strides(features: Features) -> list[str]:
    return [a.stride_text for a in features.accesses if a.space == "global"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = 0;", ["1"]),
        ("y[(size_t)i * ld] = 0;", ["ld"]),
        ("y[(long long)blockIdx.y * ld + i] = 0;", ["1"]),
        ("y[i + i] = 0;", ["2"]),
        ("y[i - 3 * i] = 0;", ["2"]),
        ("y[0] = 0;", ["0"]),
        ("*(y + i) = 0; *y = 0; y[blockIdx.x] = 0;", ["1", "0", "0"]),
        ("float *q = &y[i]; q[5] = 0; *(q + tx) = 0;", ["1", "2"]),
        ("float *q = y; q += 2 * i; ++q; q[i] = 0;", ["3"]),
        ("auto q = reinterpret_cast<double *>(y) + i; *q = 0;", ["1"]),
        ("((char *)y)[i] = 0; ((float4 *)y)[i].w = 0;", ["1", "4"]),
        ("Vec *w = (Vec *)y; w[i].y = 0; Vec u = w[i];", ["3", "3"]),
        ("int at = tx; if (n > 3) at = tx + 7; y[at] = 0;", ["unknown"]),
        ("int at = n > 3 ? tx : tx + 7; y[at] = 0;", ["1"]),
        ("int at = i; for (int s = 0; s < n; ++s) at += ld; y[at] = 0;", ["1"]),
        ("int at = i; for (int s = 0; s < n; ++s) { y[at] = 0; at += ld; }", ["1"]),
        ("int at = i; for (int s = 0; s < n; ++s) { y[at] = 0; at *= 2; }", ["unknown"]),
        ("int at = 0; for (int s = 0; s < n; ++s) { y[at] = 0; at = at * 2 + 1; }", ["0"]),
        ("int at = i; while (at < n) { y[at] = 0; at += gridDim.x * blockDim.x; }", ["1"]),
        ("for (int at = n - 1 - i; at >= 0; at -= blockDim.x) y[at] = 0;", ["1"]),
        ("y[z[i]] = 0;", ["1", "indirect"]),
        ("y[z[0] + i] = 0;", ["0", "1"]),
        ("y[z[blockIdx.x] * ld + tx] = 0;", ["0", "1"]),
        ("int s[4]; s[0] = tx; y[s[0]] = 0;", ["unknown"]),
        ("const int s[2] = {3, 5}; for (int j = 0; j < 2; ++j) y[i + s[j]] = 0;", ["1"]),
        ("y[i ^ 1] = 0; y[i & ~1] = 0; y[i % ld] = 0;", ["1", "0", "1"]),
        ("y[tx / 8 * ld + tx % 8] = 0;", ["1"]),
        ("p.out[i] = p.in[i * 2]; p.out[i * p.ld] = 0;", ["2", "1", "ld"]),
        ("v.at(i, 3) = 0; y[i] = v(3, i);", ["ld", "1", "1"]),
        ("put(y, 2 * i, 1.0f); put(y + i, i, 1.0f);", ["2", "2"]),
        ("float &r = y[i]; r = 1.0f; r += 2.0f;", ["1", "1", "1"]),
        ("const float *a[2] = {x, x}; y[i] = 1.0f;", ["1"]),
        ("y[power<2>() * i] = 0;", ["4"]),
        ("auto at = [&](int r) { return r * 4; }; y[at(i)] = 0;", ["4"]),
        ("y[cooperative_groups::this_grid().thread_rank()] = 0;", ["1"]),
        ("int2 c = make_int2(tx, 4 * tx); y[c.x] = 0; y[c.y] = 0;", ["1", "4"]),
        ("__shared__ float s[256]; s[tx] = 0;", []),
        ("__shared__ float s; s = 1.0f; y[i] = s;", ["1"]),
        ("float a = x[i], b = a; y[i] = b;", ["1", "1"]),
        ("y[i]++; y[i] *= 2.0f;", ["1", "1", "1", "1"]),
        ("y[__float2int_rn(x[i])] = 0;", ["1", "indirect"]),
        ("sizeof(x[i]); y[i] = sizeof(y[i]);", ["1"]),
        ("float4 w = ((const float4 *)x)[i]; ((float4 *)y)[i] = w;", ["1", "1"]),
        ("Vec w = ((const Vec *)x)[i], u; u = w; ((Vec *)y)[i] = u;", ["3", "3"]),
        ("for (int j = 0; j < n; ++j) { y[i] = 0; if (j == 3) break; } y[i + n] = 0;", ["1", "1"]),
        ("unsigned u = i; y[u << 1] = 0; y[u >> 1] = 0;", ["2", "0"]),
    ],
)  # fmt: skip
def test_strides(body: str, expected: list[str]) -> None:
    assert strides(kernel(body)) == expected


def test_strides_in_a_square_block() -> None:
    found = kernel(
        "int t = ty * 16 + tx; y[t] = 0; y[t / 64 * ld + t % 64] = 0; y[ty] = 0; y[tx * 16 + ty] = 0;", "dim3(16, 16)"
    )
    assert strides(found) == ["1", "1", "0", "16"]


@pytest.mark.parametrize(
    ("body", "operations"),
    [
        ("y[i] = 2.0f * x[i] + 1.0f;", 2),
        ("y[i] = -x[i];", 0),
        ("y[i] = (float)(i * 3);", 1),
        ("unsigned h = i; h ^= h >> 16; h *= 0x85ebca6bu; z[i] = h;", 3),
        ("int a = z[i] + 1; z[i] = a * a;", 2),
        ("int row = i / ld, col = i % ld; y[row * n + col] = 1.0f;", 0),
        ("z[i] = i % 7 == 0 ? i + 1 : 0;", 1),
        ("float s = 0; for (int j = 0; j < n; ++j) s += x[j] * x[j]; y[i] = s;", 20),
        ("for (float t = 0; t * t < 9.0f; t += 0.5f) y[i] = t;", 20),
        ("int c = 0; for (int j = 0; j < n; ++j) if (x[j] > 0.5f) c++; z[i] = c;", 10),
        ("y[i] = fmaf(x[i], 2.0f, 1.0f) / sqrtf(x[i]);", 4),
        ("y[i] = fminf(x[i], fabsf(x[i])) + max(z[i], 3);", 4),
        ("Vec a = {1.0f, x[i], 2.0f}; Vec b = a + a; y[i] = b.x;", 3),
        ("float s = 0; add_to(s, x[i]); add_to(s, 1.0f); y[i] = s;", 2),
        ("y[i] = warp_sum<32>(x[i]);", 10),
        ("float r[4]; for (int j = 0; j < 4; ++j) r[j] = x[j] * 2.0f; y[i] = r[0];", 10),
        ("if (0) y[i] = x[i] * 2.0f; if (sizeof(int) == 4) y[i] = x[i] + 2.0f;", 1),
        ("while (true) { y[i] = x[i] + 1.0f; break; }", 10),
        ("do { y[i] = x[i] + 1.0f; } while (0);", 1),
        ("half *h = (half *)y; half a = h[i]; a += a * a; h[i] = a - h[i];", 3),
    ],
)  # fmt: skip
def test_operations(body: str, operations: int) -> None:
    assert kernel(body)["ops"] == pytest.approx(math.log1p(operations))


@pytest.mark.parametrize(
    ("body", "divergence"),
    [
        ("if (i < n) y[i] = 0;", 0),
        ("if (i >= n) return; float a = x[i]; y[i] = a;", 0),
        ("__shared__ float s[8]; if (i < n) { if (tx < ld) y[i] = 0; }", 0),
        ("if (i < n) y[i] = 0; else y[0] = 0;", 1),
        ("if (i < n) y[i] = 0; y[0] = 1.0f;", 1),
        ("y[0] = 1.0f; if (i < n) y[i] = 0;", 1),
        ("if (x[i] > 0) y[i] = 0;", 1),
        ("if (n > 3) y[i] = 0; y[1] = 0;", 0),
        ("if (x[blockIdx.x] > 0) y[i] = 0; y[1] = 0;", 0),
        ("if (i < n) { for (int j = 0; j < n; ++j) if (i > j) y[i] = 0; }", 10),
        ("for (int j = tx; j < n; j += 256) y[j] = 0;", 0),
        ("for (int j = tx; j < n; j += blockDim.x) y[j] = 0;", 0),
        ("for (int j = i; j < n; ++j) y[j] = 0;", 10),
        ("for (int j = 0; j < z[i]; ++j) y[j] = 0;", 10),
        ("for (int j = 0; j < z[0]; ++j) y[j] = 0;", 0),
        ("float a = x[i]; while (a > 1.0f) a *= 0.5f; y[i] = a;", 10),
        ("int c = 0; do { c += 1; } while (c < tx); z[i] = c;", 10),
        ("y[i] = x[i] > 0 ? 1.0f : 0.0f;", 1),
        ("y[i] = (i < n && x[i] > 0) || n == 2 ? 1.0f : 0.0f;", 1),
        ("switch (tx & 1) { case 0: y[i] = 0; break; case 1: y[i] = 1; } ", 1),
        ("switch (n) { case 0: y[i] = 0; break; case 1: y[i] = 1; } ", 0),
        ("int lane = tx % 32, warp = tx / 32; if (lane == 0) y[warp] = 0; if (warp == 0) y[lane] = 1;", 1),
        ("if (__any_sync(~0u, 1)) y[i] = 0; y[1] = 0;", 0),
        ("int flag = 0; if (i < n) flag = 1; if (flag) y[i] = 0; y[0] = 0;", 2),
        ("for (int j = 0; j < n; ++j) { if (j == tx) continue; y[j] = 0; }", 10),
    ],
)  # fmt: skip
def test_divergence(body: str, divergence: int) -> None:
    assert kernel(body)["div"] == divergence


@pytest.mark.parametrize(
    ("body", "atomics", "syncs"),
    [
        ("atomicAdd(&y[0], 1.0f); atomicMax(z, 3);", 2, 0),
        ("for (int j = 0; j < n; ++j) for (int k = 0; k < n; ++k) atomicCAS(z + k, 0, 1);", 100, 0),
        ("__shared__ int s; if (tx == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); __syncthreads();", 1, 2),
        ("for (int j = 0; j < n; ++j) { __syncwarp(); __syncthreads_or(j); }", 0, 20),
        ("auto g = cooperative_groups::this_grid(); g.sync(); cooperative_groups::sync(g);", 0, 2),
        ("__threadfence(); __shfl_sync(~0u, i, 0);", 0, 0),
    ],
)  # fmt: skip
def test_atomics_and_syncs(body: str, atomics: int, syncs: int) -> None:
    found = kernel(body)
    assert (found["atomics"], found["sync"]) == (atomics, syncs)


def test_assignment_of_a_struct_stores() -> None:
    found = kernel("float4 w = ((const float4 *)x)[i]; ((float4 *)y)[i] = w;")
    assert [(a.store, a.width, a.vector) for a in found.accesses] == [(False, 16, True), (True, 16, True)]
