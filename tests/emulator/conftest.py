"""Kernels under test share one signature, ``void f(int n, const float *x, float *y)``, and one call stub."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from kernel_calls import BuildKernel, Candidate

from cudaperf_agent.cuda import emulator

STUB = """
void f(int n, const float *x, float *y);
void cudaperf_call(void *const *a) { f(*(int *)a[0], a[1], a[2]); }
"""


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled call stub."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub.c").write_text(STUB)
    subprocess.run(["gcc", "-O1", "-fPIC", "-c", "stub.c", "-o", "stub.o"], cwd=folder, check=True)
    return folder / "stub.o"


def read(path: Path) -> str:
    return path.read_text()


@pytest.fixture
def build_kernel(stub: Path, tmp_path: Path) -> BuildKernel:
    """Builds a file of `kernels/`, or a text, to a callable candidate."""

    async def build(
        source: Path | str, *, mode: emulator.Mode = "check", replace: tuple[str, str] | None = None
    ) -> Candidate:
        text = read(source) if isinstance(source, Path) else source
        if replace:
            assert replace[0] in text
            text = text.replace(*replace)
        name = source.name if isinstance(source, Path) else "kernel.cu"
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        made = await emulator.build(text, path_name=name, folder=folder, extra=[stub], mode=mode)
        return Candidate(made, mode)

    return build
