"""Broken kernels: every file of `kernels/bad` says in a comment, on the very line, what must be reported there."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_calls import KERNELS, BuildKernel

FILES = sorted((KERNELS / "bad").glob("*.cu"))


def expected(text: str) -> set[tuple[str, int]]:
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        for kinds in re.findall(r"// expect ([\w, -]+)", line):
            found |= {(kind.strip(), number) for kind in kinds.split(",")}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
async def test_bad_kernel(path, build_kernel: BuildKernel) -> None:  # type: ignore[no-untyped-def]
    candidate = await build_kernel(path)
    x = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    [ran] = await candidate.call([x])
    wanted = expected(path.read_text())
    assert wanted, "the file expects nothing"
    assert ran.found() == wanted, ran.report
