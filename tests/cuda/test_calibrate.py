"""Calibration on a stand-in for a GPU: real processes, timed on the emulator; only the ceilings are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.cuda import calibrate as calibrating
from cudaperf_agent.cuda.calibrate import CALIBRATION, calibrate
from cudaperf_agent.cuda.ceilings import Ceilings
from cudaperf_agent.cuda.clocks import CLOCKS
from cudaperf_agent.cuda.spread import SPREAD, known_spread
from cudaperf_agent.cuda.workplace import VerifierConfig, Workplace
from cudaperf_agent.errors import EXIT_BACKEND, BackendUnavailable
from tests.cuda.standin import CEILINGS, GPU, stand_in

SMALL = replace(
    CALIBRATION,
    kernels=tuple(replace(k, size_bytes=16 << 10) for k in CALIBRATION.kernels if k.name in ("saxpy", "decay")),
    processes=SPREAD.fewest,
    batch=4,
    timing=replace(
        CALIBRATION.timing,
        samples=6,
        contents=2,
        fewest_contents=2,
        contents_bytes=1 << 18,
        clocks=replace(CLOCKS, slack_seconds=1.0, batch_slack_seconds=1.0),  # a busy machine must not decide this
    ),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    verifier = stand_in(VerifierConfig(also_emulate=False), tmp_path, monkeypatch)

    async def ceilings(*_: object, again: bool, **__: object) -> Ceilings:
        assert again, "what was known from before is measured anew"
        return CEILINGS

    monkeypatch.setattr(calibrating, "device_ceilings", ceilings)
    # Kept elsewhere than what other tests find; the emulator stays where it was built.
    monkeypatch.setattr("cudaperf_agent.cuda.spread.cache_dir", lambda: tmp_path / "kept")
    return verifier.place


async def test_processes_of_every_kernel_are_timed_and_their_spread_is_kept(place: Workplace) -> None:
    said: list[str] = []
    found = await calibrate(place, said.append, SMALL)
    assert found.processes == {"saxpy": SPREAD.fewest, "decay": SPREAD.fewest}, said
    assert len(found.spread.points) == 2
    assert all(p.seconds > 0 and p.processes == SPREAD.fewest for p in found.spread.points)
    assert known_spread(GPU) == found.spread
    assert found.files[1].exists()
    assert (found.device, found.ceilings) == (GPU.name, CEILINGS)
    assert found.pairs.pairs == SPREAD.fewest
    assert sum("processes; the last" in line for line in said) == 3
    assert str(found.files[0]) in said[0]
    assert str(found.files[1]) in said[-1]


async def test_what_is_too_little_is_not_kept(place: Workplace) -> None:
    said: list[str] = []
    found = await calibrate(place, said.append, replace(SMALL, seconds=0.0, kernels=SMALL.kernels[:1]))
    assert not found.spread.points
    assert "too few processes" in said[-1]
    assert known_spread(GPU).points == ()
    assert len(found.files) == 1


async def test_without_a_gpu_there_is_nothing_to_calibrate() -> None:
    with pytest.raises(BackendUnavailable, match="nothing to calibrate") as bad:
        await calibrate(Workplace(VerifierConfig(), gpu=None), print)
    assert bad.value.exit_code == EXIT_BACKEND


def test_the_kernels_are_ones_that_the_generator_takes() -> None:
    from cudaperf_agent.codegen.variants import generate
    from cudaperf_agent.tasks.parse import load_task

    for kernel in CALIBRATION.kernels:
        assert generate(load_task(source=kernel.c)).variants, kernel.name
