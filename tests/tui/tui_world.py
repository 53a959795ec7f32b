"""Runs for the app's tests, made by the real graph and kept in a real store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graph_world import (
    Clock,
    DirectiveVerifier,
    ScriptedPolicy,
    candidate,
    make_deps,
    saxpy_task,
)
from textual.pilot import Pilot

from cudaperf_agent.store.repository import Store
from graph.config import GraphConfig
from graph.runner import run_task
from tui.app import CudaPerfApp

NOW = 1_800_000_400.0

KERNEL = """
__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
STORY = (
    candidate("compile_error", 1) + KERNEL,
    candidate("wrong", 2) + KERNEL,
    candidate("correct 2e-4", 3) + KERNEL,
    candidate("correct 1e-4", 4) + KERNEL.replace("int i", "const int i"),
    candidate("correct 3e-4", 5) + KERNEL,
)
"""Five turns: does not compile, wrong, right, faster, slower."""

HOSTILE = (
    "// correct 1e-4\n[bold red]not markup[/] [link=http://x]l[/link]\n\x1b[31mred\x1b[0m\x1b]0;title\x07 \x07bell\n"
    "\u202eright to left\u202c \u2066isolate\u2069 שלום مرحبا\n" + "x" * 1_000_000 + "\n\0\ud800 end\n"
)


async def make_run(
    store: Store,
    script: Sequence[object] = STORY,
    *,
    trajectories: int = 1,
    run_id: str = "run-story",
    backend: str = "gpu",
) -> str:
    """A finished run of the script."""
    deps = make_deps(ScriptedPolicy(script), DirectiveVerifier(backend=backend), store, clock=Clock())  # type: ignore[arg-type]
    config = GraphConfig(turns=len(script), trajectories=trajectories, checkpointing=False)
    return (await run_task(saxpy_task(), deps, config, run_id=run_id)).run


def app_on(store: Store, folder: Path, **options: object) -> CudaPerfApp:
    """The app with a frozen clock, exporting into `folder`."""
    return CudaPerfApp(store, export_to=folder, now=lambda: NOW, **options)  # type: ignore[arg-type]


async def until(pilot: Pilot[Any], condition: Any, *, seconds: float = 10.0) -> None:
    """Let the app work until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the app never got there"
        await pilot.pause(0.02)
