"""Correct kernels give the numbers that numpy gives, in every order of threads and blocks, and nothing is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_calls import KERNELS, BuildKernel

from cudaperf_agent.cuda import emulator

Array = npt.NDArray[Any]
SIZES = (1, 31, 257, 1000)


def total(x: Array) -> Array:
    return np.concatenate([[x.sum(dtype=np.float64)], np.zeros(x.size - 1)])


def square(x: Array) -> tuple[Array, Array]:
    """The largest square matrix in `x`, as float64, and zeros for the whole."""
    m = int(np.sqrt(x.size))
    return x[: m * m].reshape(m, m).astype(np.float64), np.zeros(x.size)


def stencil(x: Array) -> Array:
    a, y = square(x)
    for _ in range(4):
        p = np.pad(a, 1)
        a = 0.5 * a + 0.125 * (p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1])
    y[: a.size] = a.ravel()
    return y


def product(x: Array) -> Array:
    a, y = square(x)
    y[: a.size] = (a @ a).ravel()
    return y


def scan_blocks(x: Array) -> Array:
    return np.concatenate([np.cumsum(x[i : i + 64], dtype=np.float64) for i in range(0, x.size, 64)])


def histogram(x: Array) -> Array:
    bins = np.clip(((x + np.float32(4)) * np.float32(2)).astype(np.int32), 0, 15)
    y = np.zeros(max(x.size, 16))
    y[:16] = np.bincount(bins, minlength=16)
    return y[: x.size]


def templates(x: Array) -> Array:
    v = 1 + 2 * x.astype(np.float64) + 0.5 * x.astype(np.float64) ** 2 + 3
    return (v + 4) * 2 + 0.25 + 1


def half_precision(x: Array) -> Array:
    v = x.astype(np.float16)
    low, high = v + np.float16(1), v * np.float16(2) + np.float16(1)
    return (low.astype(np.float64) * 0.5 + high.astype(np.float64)).astype(np.float16).astype(np.float32)


def quads(x: Array) -> Array:
    padded = np.concatenate([x, np.zeros(-x.size % 4, np.float32)]).reshape(-1, 4).astype(np.float64)
    return np.repeat(padded.sum(1) + padded.max(1), 4)[: x.size]


def first_above_one(x: Array) -> Array:
    hits = np.flatnonzero(x > 1)
    return np.full(x.size, float(hits[0] if hits.size else x.size))


def bytes_in_place(x: Array) -> Array:
    i = np.arange(x.size)
    return -(i % 100.0) + 256 * (i + 1.0) + 3 * (i % 50) + 6


def symbols(x: Array) -> Array:
    which = np.arange(x.size) % 3
    return np.array([1, 2, 3])[which] * x.astype(np.float64) + np.array([0, 1, -1])[which] + 0.5


REFERENCES: dict[str, Callable[[Array], Array]] = {
    "atomics": histogram,
    "bytes_in_place": bytes_in_place,
    "cooperative": quads,
    "early_exit": first_above_one,
    "half_precision": half_precision,
    "host_api": lambda x: 4 * x,
    "intrinsics": lambda x: x,
    "last_block": total,
    "locks": lambda x: x,
    "matmul_tiled": product,
    "reduce_shared": total,
    "saxpy": lambda x: 2 * x,
    "scan_blocks": scan_blocks,
    "stencil_2d": stencil,
    "struct_padding": lambda x: x[::-1].astype(np.float64) + 15,
    "symbols": symbols,
    "templates": templates,
    "vectors_3d": lambda x: -3 * x,
    "warp_operations": lambda x: x,
}


def inputs() -> list[Array]:
    generator = np.random.default_rng(7)
    return [generator.standard_normal(n).astype(np.float32) for n in SIZES]


def test_every_kernel_has_a_reference() -> None:
    assert {p.stem for p in (KERNELS / "good").glob("*.cu")} == set(REFERENCES)


@pytest.mark.parametrize("name", sorted(REFERENCES))
async def test_good_kernel(name: str, build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / f"{name}.cu")
    order: emulator.Order
    for order, seed in (("forward", 0), ("reverse", 0), ("random", 1), ("random", 2)):
        for x, ran in zip(inputs(), await candidate.call(inputs(), order, seed), strict=True):
            assert ran.y is not None, ran.native.child.stderr
            assert ran.report.reports == (), (order, x.size)
            assert ran.report.unsupported is None
            np.testing.assert_allclose(ran.y, REFERENCES[name](x), rtol=2e-5, atol=2e-5, err_msg=f"{order} n={x.size}")
