"""A benchmark's own cases: snippets of C++ become cases of a task, or are left out."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from training.evaluation.given import GivenCases, case_of
from training.evaluation.suite import Item

KERNEL = """#include <cuda_runtime.h>
__global__ void k(int n, float a, const float *x, float *y)
{ int i = threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{ k<<<1, 32, 0, stream>>>(n, a, x, y); return cudaGetLastError(); }
"""
GOOD = "float x[] = {1, 2, 3};\nfloat y[3] = {4};\nwrapper(saxpy, 3, 2.0, x, y);\n"


def saxpy() -> Task:
    return load_task(Path(__file__).parents[1] / "cases" / "c" / "saxpy.c")


def argument(array: bool, kind: bytes, values: np.ndarray) -> bytes:
    head = (b"A" if array else b"S") + kind + struct.pack("<QQ", values.itemsize, values.size)
    return head + values.tobytes()


def written(*arguments: bytes) -> bytes:
    return b"C" + b"".join(arguments) + b"E"


N = argument(False, b"i", np.array([3], np.int32))
A = argument(False, b"f", np.array([2.0]))
X = argument(True, b"f", np.arange(3, dtype=np.float32))


def test_arguments_are_converted_to_the_parameters_types() -> None:
    case = case_of(written(N, A, X, X), saxpy())
    assert case is not None
    assert case.values["n"].dtype == np.int32
    assert case.values["a"].dtype == np.float32
    assert case.values["a"].ndim == 0
    assert case.values["y"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"C",
        written(N, A, X),  # an argument too few
        written(N, A, X, X)[:-1],  # cut short
        written(N, A, X, argument(True, b"f", np.arange(3.0))),  # doubles for floats
        written(N, A, X, argument(True, b"i", np.arange(3, dtype=np.int32))),
        written(N, A, X, argument(True, b"f", np.arange(2, dtype=np.float32))),  # shorter than the extent
        written(N, A, X, A),  # a scalar for a buffer
        written(N, A, X, b"Af" + struct.pack("<QQ", 4, 1 << 60)),
        written(N, A, X, b"A?" + struct.pack("<QQ", 4, 0)),
    ],
)
def test_what_does_not_fit_is_no_case(bad: bytes) -> None:
    assert case_of(bad, saxpy()) is None


@pytest.mark.slow
async def test_snippets_are_run_and_judge_a_kernel_by_their_few_elements() -> None:
    verifier = Verifier(gpu=None)
    try:
        task = await prepare(saxpy(), wrap=verifier.place.sandbox.wrap)
        broken = "float x[] = {1};\nno_such_thing(x);\n"
        pointer = "float *x = new float[3], y[3];\nwrapper(saxpy, 3, 2.0, x, y);\n"
        item = Item("s/saxpy", "s", "s/saxpy", "", saxpy, given=(GOOD, broken, pointer), called="saxpy")
        given = GivenCases(verifier.place)
        (case,) = await given.cases(item, task)
        assert {k: v.tolist() for k, v in case.values.items()} == {
            "n": 3, "a": 2.0, "x": [1, 2, 3], "y": [4, 0, 0],
        }  # fmt: skip
        # One block of one warp is enough for them, and for no test of ours.
        few = await given.judge(task, KERNEL, (case,))
        assert (few.correct, few.passed, few.total) == (True, 1, 1)
        assert not (await verifier.test(task, KERNEL)).correct
        wrong = await given.judge(task, KERNEL.replace("+ y[i]", "- y[i]"), (case,))
        assert (wrong.status, wrong.passed) == ("wrong", 0)
        assert (await given.judge(task, "int nothing;", (case,))).status == "no_code"
    finally:
        await verifier.aclose()
