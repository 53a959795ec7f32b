"""The drop-in's text: forms, staging by role, tables and what stays C."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent import __version__
from cudaperf_agent.codegen.dropin import (
    candidate_of,
    device_prototype,
    edited_dropin,
    host_part,
    kernels_of,
    make_dropin,
)
from cudaperf_agent.codegen.forms import detect_form
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.tasks.model import CType, Extent, Origin, Parameter, Role, Table, Task, TypeKind
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.stub import entry_prototype

FLOAT = CType("float", TypeKind.FLOAT, 4, 4)
INT = CType("int", TypeKind.INT, 4, 4)
SOURCE = """static float gain[2] = {1, 2};
void set_gain(const float *g) { gain[0] = g[0]; /* } */ gain[1] = g[1]; }
/* scale( { */
void scale(int n, const float *x, float *class)
{
    for (int i = 0; i < n; i++) { class[i] = gain[0] * x[i] + gain[1]; }
}
void twice(int n, const float *x, float *y) { scale(n, x, y); }
"""
KERNEL = """
__global__ void k(int n, const float *x, float *y, const float *gain)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = gain[0] * x[i] + gain[1];
}
extern "C" int scale_device(int n, const float *x, float *y, const float *gain, cudaStream_t stream)
{
    if (n > 0) k<<<(n + 255) / 256, 256, 0, stream>>>(n, x, y, gain);
    return cudaGetLastError();
}
"""


def buffer(name: str, role: Role, const: bool = False) -> Parameter:
    return Parameter(
        name,
        FLOAT,
        True,
        role,
        Origin.DEFAULT,
        f"{'const ' if const else ''}float *{name}",
        extent=Extent("n*2/2", Origin.DEFAULT),
        const=const,
    )


@pytest.fixture
def task() -> Task:
    scalar = Parameter("n", INT, False, Role.SCALAR, Origin.TYPE, "int n")
    return Task(
        "scale",
        "function",
        SOURCE,
        "scale.c",
        parameters=(scalar, buffer("x", Role.IN, True), buffer("class", Role.OUT)),
        tables=(Table("gain", FLOAT, (2,), False, 1),),
        kept_functions=("set_gain", "twice"),
    )


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (KERNEL, "device"),
        (KERNEL + 'extern "C" void scale(int n, const float *x, float *y) { }', "whole"),
        ("// scale(int) { }\n" + KERNEL, "device"),
        ("__global__ void k() {}", None),
        ("int scale_device(int n);", None),
        ("", None),
    ],
)
def test_form_is_what_the_file_defines(task: Task, source: str, form: str | None) -> None:
    assert detect_form(task, source) == form
    made = make_dropin(task, source)
    assert (made.form if made else None) == form


def test_a_program_is_whole_by_itself(task: Task) -> None:
    made = make_dropin(replace(task, mode="program", name="main"), "int main() { return 0; }")
    assert made is not None
    assert (made.form, made.host_c) == ("program", None)


def test_outputs_are_not_copied_in_and_inputs_not_out(task: Task) -> None:
    made = make_dropin(task, KERNEL)
    assert made is not None
    copies = [line.strip() for line in made.cu.splitlines() if "cudaMemcpy(" in line and "gain" not in line]
    assert len(copies) == 2
    assert "cudaperf_d_x, x," in copies[0]
    assert "(void *)class_, cudaperf_d_class" in copies[1]


def test_the_prototype_names_tables_after_the_parameters(task: Task) -> None:
    assert device_prototype(replace(task, returns=FLOAT)) == (
        'extern "C" int scale_device(int n, const float *x, float *class_, float *result, '
        "const float *gain, cudaStream_t stream)"
    )


def test_what_stays_c_compiles_and_no_longer_defines_the_entry(task: Task, tmp_path: Path) -> None:
    text = host_part(task)
    assert text is not None
    (tmp_path / "host.c").write_text(text)
    subprocess.run(["gcc", "-c", "-Wall", "-Werror", "host.c"], cwd=tmp_path, check=True)
    symbols = subprocess.run(["nm", "host.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert " U scale" in symbols
    assert " T set_gain" in symbols
    assert " T cudaperf_scale_gain" in symbols


def test_nothing_stays_c_for_a_lone_function(task: Task) -> None:
    assert host_part(replace(task, tables=(), kept_functions=())) is None


def test_the_drop_in_is_legal_cuda(task: Task, tmp_path: Path) -> None:
    made = make_dropin(task, KERNEL)
    assert made is not None
    (tmp_path / "scale.cu").write_text(made.cu)
    subprocess.run(["nvcc", "-arch=sm_90", "-Werror", "all-warnings", "-c", "scale.cu"], cwd=tmp_path, check=True)


def test_the_candidate_is_found_again_in_what_we_wrote_and_only_there(task: Task) -> None:
    made = make_dropin(task, KERNEL)
    assert made is not None
    assert candidate_of(task, made.cu) == KERNEL
    assert candidate_of(task, KERNEL) == KERNEL
    edited = made.cu.replace("cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice")
    assert candidate_of(task, edited) == edited
    assert (
        edited_dropin(task, edited) == edited[: edited.index('cudaMemcpyHostToDevice), "copying class')].count("\n") + 1
    )
    assert kernels_of(task, edited) == edited
    assert edited_dropin(task, made.cu) is None
    assert edited_dropin(task, KERNEL) is None


def test_a_drop_in_of_ours_in_another_layout_stays_as_it_is(task: Task) -> None:
    made = make_dropin(task, KERNEL)
    assert made is not None
    theirs = made.cu.replace(";\n", "; // so\n\n").replace("256", "512")
    assert (
        kernels_of(task, theirs)
        .rstrip()
        .startswith(KERNEL.replace(";\n", "; // so\n\n").replace("256", "512").rstrip())
    )
    assert "cudaperf_check" not in kernels_of(task, theirs)
    again = make_dropin(task, theirs)
    assert again is not None
    assert (again.cu, again.host_c, again.form) == (theirs, made.host_c, "device")


def test_what_another_version_wrote_is_found_again(task: Task) -> None:
    made = make_dropin(task, KERNEL)
    assert made is not None
    older = made.cu.replace(f"made by cudaperf {__version__}:", "made by cudaperf 0.0.9.dev1+g12:")
    assert older != made.cu
    assert candidate_of(task, older) == KERNEL
    sneaked = made.cu.replace(f"made by cudaperf {__version__}:", "made by cudaperf 1\nint hidden;\n//:")
    assert candidate_of(task, sneaked) == sneaked


@pytest.mark.parametrize("header", ["", "#include <stdbool.h>\n"])
def test_truth_values_are_spelt_for_c_and_for_cpp(header: str) -> None:
    body = "for (int i = 0; i < n; i++) y[i] = x[i]; return 1;"
    task = load_task(source=f"{header}_Bool f(int n, const _Bool *x, _Bool *y) {{ {body} }}")
    assert entry_prototype(task) == "_Bool f(int n, const _Bool *x, _Bool *y)"
    assert "f_device(int n, const bool *x, bool *y, bool *result, cudaStream_t stream)" in device_prototype(task)


def test_an_enum_is_the_same_integer_in_kernels_and_drop_in() -> None:
    enum = "typedef enum { RED, GREEN } color;"
    body = "for (int i = 0; i < n; i++) y[i] = x[i] == GREEN;"
    task = load_task(source=f"{enum} void f(int n, const color *x, int *y) {{ {body} }}")
    assert "const unsigned int *x" in device_prototype(task)
    for variant in generate(task).variants:
        assert "f_device(int n, const unsigned int *x, int *y, cudaStream_t stream)" in variant.source
