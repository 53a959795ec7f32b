"""Who judges in a run: a verifier made of the configuration's numbers."""

from __future__ import annotations

import time
from pathlib import Path

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from training.grpo.config import make_config
from training.grpo.run import _verifier

SAXPY = Path(__file__).parents[1] / "cases" / "c" / "saxpy.c"
ENDLESS = """
__global__ void k(int n, float a, const float *x, float *y)
{
    for (int i = 0; i < n; i += 0) y[0] += a * x[0];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    k<<<1, 32, 0, stream>>>(n, a, x, y);
    return (int)cudaGetLastError();
}
"""


async def test_an_endless_loop_costs_the_seconds_that_the_run_allows() -> None:
    verify = {"backend": "emulator", "timing": False, "test_seconds": 1.5}
    verifier = _verifier(make_config({"rollout": {"engine": "transformers"}, "verify": verify}))
    try:
        task = await prepare(load_task(SAXPY))
        built = await verifier.compile(task, ENDLESS)
        assert built.correct, built.message
        began = time.monotonic()
        verdict = await verifier.test(task, ENDLESS)
    finally:
        await verifier.aclose()
    assert verdict.status is Status.TIMEOUT
    # With the default of 30 s it would have taken that long.
    assert time.monotonic() - began < 20
