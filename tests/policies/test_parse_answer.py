"""Where the candidate is in an answer, and what is said when it is not there."""

from __future__ import annotations

import pytest

from cudaperf_agent.policies.parse_answer import parse_answer

KERNEL = """#include <cuda_runtime.h>
__global__ void k(int n, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2.f * y[i]; }
extern "C" int f_device(int n, float *y, cudaStream_t stream)
{
    k<<<(n + 255) / 256, 256, 0, stream>>>(n, y);
    return cudaGetLastError();
}
"""
OTHER = KERNEL.replace("2.f", "3.f")


def fenced(code: str, info: str = "cuda", mark: str = "```") -> str:
    return f"{mark}{info}\n{code}{mark}\n"


@pytest.mark.parametrize("info", ["cuda", "cpp", "", "c++", "CUDA", "cuda title=f.cu", "f.cu", "cpp:f.cu"])
def test_one_block_of_any_language_name(info: str) -> None:
    assert parse_answer("Here it is:\n\n" + fenced(KERNEL, info) + "\nIt is fast.").source == KERNEL


def test_the_last_complete_block_wins() -> None:
    assert parse_answer(fenced(OTHER) + "Better:\n" + fenced(KERNEL)).source == KERNEL


def test_usage_examples_and_shell_lines_after_the_kernel_do_not_win() -> None:
    after = fenced("int main(void) { return 0; }\n", "c") + fenced("nvcc f.cu\n", "bash") + fenced('{"a": 1}\n', "json")
    assert parse_answer(fenced(KERNEL) + after).source == KERNEL


def test_longer_fences_and_tildes() -> None:
    assert parse_answer(fenced(KERNEL, mark="````")).source == KERNEL
    assert parse_answer(fenced(KERNEL, mark="~~~")).source == KERNEL


def test_windows_line_ends() -> None:
    assert parse_answer(fenced(KERNEL).replace("\n", "\r\n")).source == KERNEL


@pytest.mark.parametrize(
    "thinking",
    [
        f"<think>\nmaybe {fenced(OTHER)}\n</think>\n",
        f"so {fenced(OTHER)} hmm</think>",
        f"<thinking>{OTHER}</thinking>",
        f"<|channel|>analysis<|message|>{fenced(OTHER)}<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_code_in_thinking_sections_is_ignored(thinking: str) -> None:
    assert parse_answer(thinking + fenced(KERNEL)).source == KERNEL
    assert OTHER not in (parse_answer(thinking + "I give up.").source or "")


def test_an_answer_that_never_stops_thinking_has_no_source() -> None:
    parsed = parse_answer("<think>\n" + fenced(KERNEL), finish_reason="length")
    assert parsed.source is None
    assert parsed.cut
    assert "thinking" in parsed.reason


@pytest.mark.parametrize(
    "headings",
    [("**f_host.c**", "**f.cu**", "**other.cu**"), ("### `f_host.c`", "### `src/f.cu`", "### `other.cu`")],
)
def test_of_several_files_the_entry_s_own_is_picked(headings: tuple[str, str, str]) -> None:
    host, own, other = headings
    c_part = fenced("void g(void) { cudaMalloc(0, 0); }\n", "c")
    answer = f"{own}\n{fenced(KERNEL)}\n{host}\n{c_part}\n{other}\n{fenced(OTHER)}"
    parsed = parse_answer(answer, name="f")
    assert parsed.source == KERNEL
    assert parsed.file_name.endswith("f.cu")


def test_the_file_name_may_be_a_comment_inside_the_block() -> None:
    answer = fenced("// f.cu\n" + KERNEL) + fenced("// bench.cu\n" + OTHER)
    assert parse_answer(answer, name="f").source == "// f.cu\n" + KERNEL


def test_a_cut_block_is_recognised() -> None:
    parsed = parse_answer("Here:\n```cuda\n" + KERNEL[:200], finish_reason="length")
    assert (parsed.source, parsed.cut) == (None, True)
    assert "cut" in parsed.reason
    assert parse_answer("Here:\n```cuda\n" + KERNEL[:200]).cut


def test_a_quoted_c_source_does_not_stand_in_for_cut_cuda() -> None:
    parsed = parse_answer(fenced("void f(int n) { }\n", "c") + "```cuda\n" + KERNEL[:150], finish_reason="length")
    assert parsed.source is None
    assert parsed.cut


def test_an_earlier_complete_kernel_survives_a_cut() -> None:
    parsed = parse_answer(fenced(KERNEL) + "Or:\n```cuda\n" + OTHER[:150], finish_reason="length")
    assert parsed.source == KERNEL
    assert parsed.cut


def test_a_missing_closing_fence_after_whole_code_is_no_cut() -> None:
    parsed = parse_answer("```cuda\n" + KERNEL, finish_reason="stop")
    assert parsed.source == KERNEL
    assert not parsed.cut
    assert parse_answer("```cuda\n" + KERNEL, finish_reason="length").source is None


def test_code_without_fences() -> None:
    assert parse_answer("Sure.\n\n" + KERNEL + "\nThat is all.").source == KERNEL
    assert parse_answer(KERNEL + "__global__ void more() {").cut


@pytest.mark.parametrize(
    ("text", "word"), [("", "empty"), ("  \n", "empty"), ("No.", "no code"), ("```bash\nls\n```", "bash")]
)
def test_answers_without_code_say_so(text: str, word: str) -> None:
    parsed = parse_answer(text)
    assert parsed.source is None
    assert word in parsed.reason


def test_braces_in_literals_and_comments_do_not_count() -> None:
    code = KERNEL + "// a { in a comment\nstatic const char *s = \"{{\"; /* { */ static const char c = '{';\n"
    assert parse_answer("```cuda\n" + code).source == code
