"""Native calls: outputs come back, and every way of leaving a buffer is seen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Argument, call_native

STUB = "extern void cudaperf_call(void *const *a) { f(*(int *)a[0], (float *)a[1]); }\n"


@pytest.fixture
def build(tmp_path: Path):  # type: ignore[no-untyped-def]
    def compile_c(body: str) -> Path:
        source, library = tmp_path / "f.c", tmp_path / "f.so"
        source.write_text(body + STUB)
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
        return library

    return compile_c


def arguments(n: int) -> list[Argument]:
    return [Argument(np.array(n, np.int32)), Argument(np.arange(n, dtype=np.float32), returned=True)]


async def test_outputs_of_every_call_come_back(build) -> None:  # type: ignore[no-untyped-def]
    library = build("static void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] *= 2; }")
    run = await call_native(library, [arguments(5), arguments(0), arguments(2000)])
    assert run.child.ok
    assert [o.outputs[1].tolist() for o in run.outcomes[:2]] == [[0, 2, 4, 6, 8], []]
    assert np.array_equal(run.outcomes[2].outputs[1], np.arange(2000) * 2)


@pytest.mark.parametrize(("index", "writing"), [("n", True), ("n + 40000", True), ("-2000", True)])
async def test_a_write_outside_is_a_fault_with_its_place(build, index: str, writing: bool) -> None:  # type: ignore[no-untyped-def]
    library = build(f"static void f(int n, float *x) {{ x[{index}] = 1; }}")
    run = await call_native(library, [arguments(1000)])
    assert run.outcomes == ()
    assert run.fault is not None
    assert run.fault.writing is writing
    if index == "n":
        assert (run.fault.argument, run.fault.offset) == (1, 4000)


async def test_a_write_just_before_is_an_underrun(build) -> None:  # type: ignore[no-untyped-def]
    run = await call_native(build("static void f(int n, float *x) { x[-1] = 1; }"), [arguments(1000)])
    assert run.outcomes[0].underrun


async def test_calls_before_a_crash_are_kept(build) -> None:  # type: ignore[no-untyped-def]
    library = build("static void f(int n, float *x) { if (n == 3) __builtin_trap(); }")
    run = await call_native(library, [arguments(1), arguments(2), arguments(3), arguments(4)])
    assert len(run.outcomes) == 2
    assert run.child.returncode < 0


async def test_an_endless_call_ends_at_its_limit(build) -> None:  # type: ignore[no-untyped-def]
    library = build("static void f(int n, float *x) { for (volatile int i = 0;; i++); }")
    run = await call_native(library, [arguments(1)], limits=Limits(seconds=0.3))
    assert run.child.timed_out
    assert run.child.seconds < 3


async def test_a_memory_hog_is_stopped(build) -> None:  # type: ignore[no-untyped-def]
    library = build(
        "#include <stdlib.h>\n#include <string.h>\n"
        "static void f(int n, float *x) { for (;;) memset(malloc(1 << 24), 1, 1 << 24); }"
    )
    run = await call_native(library, [arguments(1)], limits=Limits(seconds=20, memory=500 << 20))
    assert run.child.out_of_memory


@pytest.mark.parametrize("trick", ["mkfifo(path, 0600);", 'symlink("/etc/passwd", path);'])
async def test_a_response_that_is_no_plain_file_is_not_read(build, trick: str) -> None:  # type: ignore[no-untyped-def]
    library = build(
        "#include <stdlib.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\n"
        'static void f(int n, float *x) { char path[4096]; strcat(strcpy(path, getenv("TMPDIR")), "/response");'
        f"unlink(path); {trick} x[0] = 1; }}"
    )
    run = await call_native(library, [arguments(4)])
    assert run.outcomes == ()


async def test_buffers_can_be_placed_so_that_an_underrun_faults(build) -> None:  # type: ignore[no-untyped-def]
    library = build("static void f(int n, float *x) { x[0] = x[n > 2 ? -1 : 0]; }")
    run = await call_native(library, [arguments(2), arguments(3)], env={"CUDAPERF_PLACE_LEFT": "1"})
    assert len(run.outcomes) == 1
    assert run.fault is not None
    assert (run.fault.argument, run.fault.offset, run.fault.writing) == (1, -4, False)
