"""A stand-in for a GPU, to try the studies out on any machine: the whole path, with the emulator where kernels run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gpu_study import shares, spread, throughput
from cudaperf_agent.cuda import building, workplace
from cudaperf_agent.cuda.clocks import ClockRule
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.verifier import VerifierConfig
from tests.cuda.standin import GPU, stand_in

# A machine that is busy otherwise must not decide what a rehearsal shows; of times it shows nothing.
ANY_CLOCK = ClockRule(slack_seconds=1.0, batch_slack_seconds=1.0)


@contextmanager
def on_stand_in() -> Iterator[Gpu]:
    """Every verifier that is made meanwhile for the given device runs on the emulator."""
    with tempfile.TemporaryDirectory(prefix="cudaperf-rehearsal-") as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        folder.chmod(0o755)
        sandbox = stand_in(VerifierConfig(), folder, patch).place.sandbox
        patch.setattr(workplace, "detect", lambda: sandbox)
        patch.setattr(shares, "compile_cuda", vars(building)["compile_cuda"])  # the stand-in's
        for study in (shares, throughput):
            timing = replace(study.CONFIG.timing, clocks=ANY_CLOCK)
            patch.setattr(study, "CONFIG", replace(study.CONFIG, timing=timing))
        patch.setattr(spread, "CONFIG", replace(spread.CONFIG, clocks=ANY_CLOCK))
        # The L2 of nothing: what is larger than it has to be made, and looked at, on the emulator.
        yield replace(GPU, l2_bytes=1 << 16)
