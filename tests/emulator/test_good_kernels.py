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

REFERENCES: dict[str, Callable[[Array], Array]] = {
    "saxpy": lambda x: 2 * x,
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
