"""The pool of examples: read strictly, chosen by likeness of the C, shown by speedup, never the task itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cudaperf_agent.errors import ConfigError, InputRefused, UsageError
from cudaperf_agent.policies.examples import ExamplePool, PoolConfig, example_line
from cudaperf_agent.policies.prompts import PromptConfig, build_messages
from cudaperf_agent.policies.similarity import distance, loop_features, spread
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task


def task(text: str, name: str = "f.c") -> Task:
    return load_task(Path(name), source=text)


MAP = "void f(int n, const float *a, float *b) {{ for (int i = 0; i < n; i++) b[i] = a[i] * {}f; }}"
STENCIL = """void f(int n, const float *a, float *b)
{{
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            b[i * n + j] = {}f * (a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]);
}}"""
GATHER = (
    "void f(int n, const int *at, const float *a, float *b) {{ for (int i = 0; i < n; i++) b[i] = a[at[i]] * {}f; }}"
)


def pool_file(folder: Path, per_kind: int = 3) -> Path:
    """A pool of maps, stencils and gathers; the speedup rises with the number."""
    lines = [
        example_line(task(text.format(f"{k + 1}.5")), f"// {kind} {k}", 1.0 + k, split="train")
        for kind, text in (("map", MAP), ("stencil", STENCIL), ("gather", GATHER))
        for k in range(per_kind)
    ]
    path = folder / "pool.jsonl"
    path.write_text("\n".join(lines) + "\n\n")
    return path


@pytest.mark.parametrize(("kind", "text"), [("map", MAP), ("stencil", STENCIL), ("gather", GATHER)])
def test_the_shortlist_is_of_the_same_kind_and_the_fastest_come_first(tmp_path: Path, kind: str, text: str) -> None:
    pool = ExamplePool.load(pool_file(tmp_path), PoolConfig(shortlist=3))
    assert len(pool) == 9
    chosen = pool.select(task(text.format("9.25")), 2)
    assert [e.cuda_source for e in chosen] == [f"// {kind} 2", f"// {kind} 1"]
    assert [e.speedup for e in chosen] == [3.0, 2.0]


def test_the_task_itself_is_never_its_own_example(tmp_path: Path) -> None:
    pool = ExamplePool.load(pool_file(tmp_path), PoolConfig(shortlist=3))
    shown = pool.select(task(MAP.format("3.5")), 9)
    assert "// map 2" not in [e.cuda_source for e in shown]
    assert len(shown) == 3


def test_full_prompts_show_examples_and_compact_ones_do_not(tmp_path: Path) -> None:
    pool = ExamplePool.load(pool_file(tmp_path))
    wanted = task(MAP.format("9.25"))
    full = build_messages(wanted, selector=pool)[1].content
    assert full.count("## Example") == PromptConfig().shown == 5
    assert "# Examples" not in build_messages(wanted, config=PromptConfig.compact(), selector=pool)[1].content
    assert "# Examples" not in build_messages(wanted)[1].content


def test_what_cannot_be_analysed_gets_no_examples_and_becomes_none(tmp_path: Path) -> None:
    odd = task("int f(int n) { return n <= 1 ? 1 : n * f(n - 1); }")
    assert loop_features(odd) is None
    assert ExamplePool.load(pool_file(tmp_path)).select(odd, 5) == ()
    with pytest.raises(InputRefused, match="cannot be analysed"):
        example_line(odd, "//", 2.0, split="train")


def test_only_the_training_split_makes_examples(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="held_out"):
        example_line(task(MAP.format("1.5")), "//", 2.0, split="held_out")
    path = pool_file(tmp_path, 1)
    lines = path.read_text().split("\n")
    entry = json.loads(lines[1])
    path.write_text("\n".join([lines[0], json.dumps({**entry, "split": "held_out"})]))
    with pytest.raises(ConfigError, match="held_out") as caught:
        ExamplePool.load(path)
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize(
    "change", [{"speedup": 0}, {"speedup": None}, {"cuda_source": ""}, {"more": 1}, {"features": 3}]
)
def test_a_malformed_line_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    path = pool_file(tmp_path, 1)
    entry = json.loads(path.read_text().split("\n")[0])
    path.write_text(json.dumps({**entry, **change}))
    with pytest.raises(ConfigError) as caught:
        ExamplePool.load(path)
    assert caught.value.where == f"{path}:1"
    assert next(iter(change)) in caught.value.message


def test_a_pool_has_an_upper_limit_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at most 8"):
        ExamplePool.load(pool_file(tmp_path), PoolConfig(pool=8))
    with pytest.raises(ConfigError, match="cannot be read"):
        ExamplePool.load(tmp_path / "gone")


def test_features_are_those_of_the_loops(c_cases: Path) -> None:
    found = {
        name: loop_features(load_task(c_cases / f"{name}.c")) for name in ("saxpy", "gemm", "spmv_csr", "jacobi2d")
    }
    saxpy, gemm, spmv, jacobi = found.values()
    assert saxpy is not None
    assert gemm is not None
    assert spmv is not None
    assert jacobi is not None
    assert saxpy["depth"] < gemm["depth"]
    assert (saxpy["indirect"], gemm["indirect"]) == (0, 0)
    assert spmv["indirect"] > 0
    assert saxpy["unit"] == jacobi["unit"] == 1
    assert gemm["accumulations"] > saxpy["accumulations"] == 0
    assert jacobi["neighbours"] > saxpy["neighbours"]
    scale = spread([saxpy, gemm, spmv, jacobi])
    assert distance(saxpy, saxpy, scale) == 0 < distance(saxpy, gemm, scale)
