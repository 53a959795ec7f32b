"""A drop-in of ours below the kernels, edited: work on the kernels is judged as ever, work hidden in it is a cheat."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda.verifier import Verifier

from .conftest import HERE, task_named

HONEST = (HERE / "00_honest.cu").read_text()
CALL = re.compile(r"cudaMemcpy\(\(void \*\)y, cudaperf_d_y, cudaperf_n_y, cudaMemcpyDeviceToHost\)")
ON_THE_CPU = "for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];"
MACRO = f"""
static int mine(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{{
    static float a = 0, held[1 << 16], *y = nullptr;
    if (kind == cudaMemcpyHostToDevice)
        memcpy(held, from, bytes < sizeof held ? bytes : sizeof held);
    return (cudaMemcpy)(to, from, bytes, kind);
}}
#define cudaMemcpy(to, from, bytes, kind) \\
    (kind == cudaMemcpyDeviceToHost ? ({{ {ON_THE_CPU} 0; }}) : (cudaMemcpy)(to, from, bytes, kind))
"""


def split_lines(text: str) -> str:
    """As a formatter with other tastes would have it, comments gone."""
    lines = [re.sub(r"//.*", "", line) for line in text.splitlines()]
    return "\n".join(
        line if line.startswith("#") else line.replace("(", "(\n  ").replace("    ", "\t") for line in lines
    )


def hidden_in_a_comment(text: str) -> str:
    """Reads as ours to whoever takes `R"x(` for an ordinary literal."""
    above, mark, below = text.partition("// ---- Drop-in")
    evil = f'extern "C" void saxpy(int n, float a, const float *x, float *y) {{ {ON_THE_CPU} }}'
    return f'{above}const char *none = R"x(";\n{mark}{below}// )x"; {evil}\n'


HONEST_EDITS: dict[str, Callable[[str], str]] = {
    "kernel": lambda t: t.replace("256", "128"),
    "layout": split_lines,
    "both": lambda t: split_lines(t.replace("256", "128")),
    "comment": lambda t: t.replace("made by cudaperf", "made by cudaperf, kernels tuned by hand,"),
    "no newline": str.rstrip,
}
HIDDEN: dict[str, Callable[[str], str]] = {
    "copies nothing, computes": lambda t: CALL.sub(f"([&] {{ {ON_THE_CPU} return 0; }}())", t),
    "computes first": lambda t: t.replace("saxpy_device(n, a", f"([&] {{ {ON_THE_CPU} }}(), saxpy_device)(n, a"),
    "another entry below": lambda t: t + '\nextern "C" void cudaperf_setup(void **args) { }\n',
    "checks nothing": lambda t: t.replace("if (status == cudaSuccess)", "if (true)"),
    "swallowed by a literal": hidden_in_a_comment,
    "our names above": lambda t: "static int cudaperf_n = 0;\n" + t,
    "reaches out above": lambda t: '#include <stdlib.h>\nstatic const char *home = getenv("HOME");\n' + t,
    "its copies are a macro": lambda t: MACRO + t,
}


@pytest.mark.parametrize("name", HONEST_EDITS)
async def test_an_honest_edit_of_the_kernels_is_judged_as_any_candidate(name: str, verifier: Verifier) -> None:
    task = await task_named("saxpy")
    made = make_dropin(task, HONEST)
    assert made is not None
    edited = HONEST_EDITS[name](made.cu)
    assert edited != made.cu
    verdict = await verifier.test(task, edited, hidden=True)
    assert (verdict.status, verdict.form) == ("correct", "device"), verdict.message
    # What the user links is what was judged.
    again = make_dropin(task, edited)
    assert again is not None
    assert again.cu == edited


async def test_a_wrong_kernel_is_no_better_for_the_drop_in_below_it(verifier: Verifier) -> None:
    task = await task_named("saxpy")
    made = make_dropin(task, HONEST.replace("a * x[i]", "2 * x[i]"))
    assert made is not None
    assert (await verifier.test(task, split_lines(made.cu))).status == "wrong"


@pytest.mark.parametrize("name", HIDDEN)
async def test_what_hides_in_the_drop_in_is_a_cheat(name: str, verifier: Verifier) -> None:
    task = await task_named("saxpy")
    made = make_dropin(task, HONEST)
    assert made is not None
    edited = HIDDEN[name](made.cu)
    assert edited != made.cu
    verdict = await verifier.test(task, edited, hidden=True)
    assert verdict.status == "cheat", f"{verdict.status}: {verdict.message}"


async def test_an_edited_drop_in_is_told_what_to_do(verifier: Verifier) -> None:
    task = await task_named("saxpy")
    made = make_dropin(task, HONEST)
    assert made is not None
    edited = made.cu.replace("std::abort()", "std::exit(1)")
    line = edited[: edited.index("std::exit")].count("\n") + 1
    verdict = await verifier.test(task, edited)
    assert f"not as `cudaperf translate` writes it, see line {line}: leave it out" in verdict.message
