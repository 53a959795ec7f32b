"""A kernel file as the tests call it: built once, called with several inputs, findings beside the numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cudaperf_agent.cuda import emulator
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Argument, NativeRun, call_native

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """One call: what `y` holds, what was reported, and how the child ended."""

    y: npt.NDArray[Any] | None
    report: emulator.EmulatorReport
    native: NativeRun

    def found(self) -> set[tuple[str, int | None]]:
        """Kind and line of every finding that makes the candidate wrong."""
        return {(r.kind, r.line) for r in self.report.reports}


class Candidate:
    """A built kernel file that can be called with several inputs."""

    def __init__(self, build: emulator.EmulatorBuild, mode: emulator.Mode) -> None:
        self.build = build
        self.mode = mode

    async def call(
        self, inputs: Sequence[npt.NDArray[Any]], order: emulator.Order = "forward", seed: int = 0, seconds: float = 30
    ) -> list[Ran]:
        """Call once per input, in one child; a call that never came back has no `y`."""
        assert self.build.library is not None, self.build
        run = await call_native(
            self.build.library,
            [
                [
                    Argument(np.array(x.size, np.int32)),
                    Argument(x),
                    Argument(np.zeros(x.size, np.float32), returned=True, fill=0xFF),
                ]
                for x in inputs
            ],
            preload=[emulator.runtime_library(self.mode)],
            env=emulator.environment(order, seed),
            limits=Limits(seconds=seconds),
        )
        ran = [Ran(o.outputs[2], emulator.parse_report(o.report), run) for o in run.outcomes]
        if len(ran) < len(inputs):
            ran.append(Ran(None, emulator.parse_report(run.child.stderr.decode()), run))
        return ran


BuildKernel = Callable[..., Awaitable[Candidate]]
