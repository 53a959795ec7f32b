"""A call that the CUDA was not made for ends the program with a message: a real drop-in, linked with a C caller."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda import emulator
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

MAIN = """
#include <stdio.h>
#include <stdlib.h>
PROTOTYPE;
int main(int argc, char **argv)
{
    int value[8] = {0};
    for (int i = 1; i < argc; i++)
        value[i - 1] = atoi(argv[i]);
    float x[64], y[64];
    for (int i = 0; i < 64; i++)
        x[i] = 0.5f * (float)i, y[i] = 1.0f;
    CALL;
    for (int i = 0; i < 64; i++)
        printf("%g ", y[i]);
    return 0;
}
"""


@dataclass(frozen=True)
class Function:
    """One C function, the call of it, calls that it is made for, and others with the message that they end with."""

    c: str
    call: str
    right: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...]


FUNCTIONS = {
    "strides": Function(
        "void axpy(int n, float a, const float *x, int incx, float *y, int incy)\n"
        "{\n    for (int i = 0; i < n; i++)\n        y[i * incy] += a * x[i * incx];\n}\n",
        "axpy(value[0], 2.0f, x, value[1], y, value[2])",
        ("10 1 1", "10 3 5", "0 1 1", "-4 2 2"),
        (
            ("10 -1 1", "axpy: made for calls where incx is 0 or more, but here it is -1"),
            ("10 1 -2", "axpy: made for calls where incy is 0 or more, but here it is -2"),
        ),
    ),
    "picked": Function(
        "void shifted(int n, int k, const float *x, float *y)\n"
        "{\n    for (int i = 0; i < n; i++)\n        y[i] = x[i] - x[k];\n}\n",
        "shifted(value[0], value[1], x, y)",
        ("10 0", "10 9", "0 0"),
        (
            ("10 10", "shifted: made for calls where k lies in 0..n-1, but here it is 10"),
            ("10 -1", "shifted: made for calls where k lies in 0..n-1, but here it is -1"),
        ),
    ),
    "declared": Function(
        "// cudaperf: in x[1+(n-1)*step]; out y[n]; rounds in 1..9 odd; n in 1..; step in -9..3\n"
        "void every(int n, int step, int rounds, const float *x, float *y)\n"
        "{\n    for (int i = 0; i < n; i++)\n        y[i] = x[step > 0 ? i * step : 0] * (float)rounds;\n}\n",
        "every(value[0], value[1], value[2], x, y)",
        ("10 2 1", "1 -1 9"),
        (
            ("10 2 11", "every: made for calls where rounds lies in 1..9 and is odd, but here it is 11"),
            ("10 2 4", "every: made for calls where rounds lies in 1..9 and is odd, but here it is 4"),
            ("0 2 1", "every: made for calls where n is 1 or more, but here it is 0"),
            ("10 -1 1", "every: made for calls where x has 0 elements or more, but here it is -8"),
        ),
    ),
}


def build_by_c(function: Function, folder: Path) -> None:
    """``main.o``, and with the C ``by_c``."""
    (folder / "f.c").write_text(function.c)
    prototype = next(line for line in function.c.splitlines() if line.startswith("void "))
    (folder / "main.c").write_text(MAIN.replace("PROTOTYPE", prototype).replace("CALL", function.call))
    for arguments in (["-c", "main.c"], ["main.o", "f.c", "-o", "by_c"]):
        subprocess.run(["gcc", "-O1", "-w", *arguments], cwd=folder, check=True)


def run(program: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments.split()], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_what_a_call_can_violate_is_checked_on_entry(name: str, tmp_path: Path) -> None:
    function = FUNCTIONS[name]
    task = load_task(source=function.c)
    if name != "declared":  # the C itself is refused where its declared ranges are too wide for its extents
        task = await prepare(task)
    build_by_c(function, tmp_path)
    dropin = make_dropin(task, generate(task).variants[0].source)
    assert dropin is not None
    built = await emulator.build(
        dropin.cu, path_name="f.cu", folder=tmp_path, extra=[tmp_path / "main.o"], program=True
    )
    assert built.program is not None, built.diagnostics or built.unsupported

    for arguments in function.right:
        done = run(built.program, arguments)
        assert (done.returncode, done.stdout) == (0, run(tmp_path / "by_c", arguments).stdout), done.stderr
    for arguments, message in function.wrong:
        done = run(built.program, arguments)
        assert done.returncode < 0, "it ended as if nothing had been amiss"
        assert message in done.stderr
        assert not done.stdout


async def test_ranges_that_only_make_tests_sensible_are_not_checked() -> None:
    source = (
        "void f(int n, int k, const int *x, int *y)\n{\n    for (int i = 0; i < n; i++)\n        y[i] = x[i] * k;\n}\n"
    )
    task = await prepare(load_task(source=source))
    assert any(sentence.startswith("`k` is assumed") for sentence in task.assumptions), "the test tests nothing"
    dropin = make_dropin(task, generate(task).variants[0].source)
    assert dropin is not None
    assert "cudaperf_require" not in dropin.cu
