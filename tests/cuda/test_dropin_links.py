"""The written files really are drop-in: a C program links once the C and once the CUDA, and both give the same."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.gpu import find_gpu
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.stub import call_stub, entry_prototype, native_arguments, outputs_by_name

CASES = Path(__file__).parents[1] / "cases" / "c"
NAMES = sorted(p.stem for p in CASES.glob("*.c") if not p.stem.startswith("prog_"))

# Of functions that a caller calls besides the entry: what a header of the user's would say.
OTHERS = {"kmeans_assign": "void set_centroids(const float *values, int k);"}

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    unsigned long long count = 0, size[64];
    void *args[64];
    if (fread(&count, 8, 1, stdin) != 1 || count > 64)
        return 2;
    for (unsigned long long i = 0; i < count; i++) {
        if (fread(&size[i], 8, 1, stdin) != 1)
            return 2;
        args[i] = malloc(size[i] + 1);
        if (fread(args[i], 1, size[i], stdin) != size[i])
            return 2;
    }
    SETUP
    cudaperf_call(args);
    for (unsigned long long i = 0; i < count; i++)
        fwrite(args[i], 1, size[i], stdout);
    return 0;
}
"""


def caller(task: Task) -> str:
    """A C program of its own: it knows the function's prototype and nothing of how it is made."""
    setup = "cudaperf_setup(args);" if task.setup else ""
    declared = [task.type_declarations, f"{entry_prototype(task)};", OTHERS.get(task.name, "")]
    return "\n".join([*declared, call_stub(task), MAIN.replace("SETUP", setup)])


def call_program(program: Path, task: Task, case: Case) -> dict[str, np.ndarray]:
    """Run the program on one case; its buffers by name."""
    arguments = native_arguments(task, case, fill=None)
    sent = struct.pack("<Q", len(arguments))
    sent += b"".join(struct.pack("<Q", a.data.nbytes) + a.data.tobytes() for a in arguments)
    done = subprocess.run([str(program)], input=sent, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found, at = {}, 0
    for index, argument in enumerate(arguments):
        raw = done.stdout[at : at + argument.data.nbytes]
        at += argument.data.nbytes
        found[index] = np.frombuffer(raw, argument.data.dtype).reshape(argument.data.shape)
    assert at == len(done.stdout)
    return outputs_by_name(task, {i: v for i, v in found.items() if arguments[i].returned})


def gcc(folder: Path, *arguments: str) -> None:
    subprocess.run(["gcc", "-O1", "-w", *arguments], cwd=folder, check=True)


def nvcc(folder: Path, *arguments: str) -> None:
    subprocess.run([find_nvcc().path, "-O2", "-arch=native", *arguments], cwd=folder, check=True)


async def parts(name: str, folder: Path) -> tuple[Task, list[Path], str]:
    """The task, the caller's and the host part's objects, and the text of NAME.cu."""
    task = await prepare(load_task(CASES / f"{name}.c"))
    dropin = make_dropin(task, generate(task).variants[0].source)
    assert dropin is not None
    (folder / "caller.c").write_text(caller(task))
    gcc(folder, "-c", "caller.c")
    gcc(folder, "caller.o", str(CASES / f"{name}.c"), "-o", "by_c", "-lm")
    objects = [folder / "caller.o"]
    if dropin.host_c is not None:
        (folder / f"{name}_host.c").write_text(dropin.host_c)
        gcc(folder, "-c", f"{name}_host.c")
        objects.append(folder / f"{name}_host.o")
    return task, objects, dropin.cu


async def check(task: Task, by_c: Path, by_cuda: Path) -> None:
    """Both programs agree on a small, an uneven and the largest visible case."""
    cases = make_cases(task, hidden=False)
    chosen = [cases[0], cases[len(cases) // 2], max(cases, key=lambda c: sum(v.nbytes for v in c.values.values()))]
    for case, expected in zip(chosen, await Oracle(task).expected(chosen), strict=True):
        from_c, from_cuda = call_program(by_c, task, case), call_program(by_cuda, task, case)
        assert compare(task, case, expected, from_c).ok
        comparison = compare(task, case, expected, from_cuda)
        assert comparison.ok, comparison.mismatch


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_a_c_program_links_the_cuda_in_place_of_the_c(name: str, tmp_path: Path) -> None:
    task, objects, cu = await parts(name, tmp_path)
    built = await emulator.build(cu, path_name=f"{name}.cu", folder=tmp_path, extra=objects, program=True)
    assert built.program is not None, built.diagnostics or built.unsupported
    await check(task, tmp_path / "by_c", built.program)


@pytest.mark.gpu
@pytest.mark.skipif(find_gpu() is None, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name", NAMES)
async def test_a_c_program_links_the_cuda_on_a_gpu(name: str, tmp_path: Path) -> None:
    task, objects, cu = await parts(name, tmp_path)
    (tmp_path / f"{name}.cu").write_text(cu)
    nvcc(tmp_path, f"{name}.cu", *(str(o) for o in objects), "-o", "by_cuda")
    await check(task, tmp_path / "by_c", tmp_path / "by_cuda")
