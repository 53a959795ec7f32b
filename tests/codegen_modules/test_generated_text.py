"""Generation from a graph alone, without torch: what is fused, what is declined, and what the file looks like."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from cudaperf_agent.codegen.modules.graph import RULES
from cudaperf_agent.codegen.modules.operators import load_rules
from cudaperf_agent.codegen.modules.pointwise import OPERATIONS
from cudaperf_agent.codegen.modules.variants import generate_module

SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.softmax(x * self.scale, -1).sum(-1)
"""


def node(name: str, op: str, args: dict[str, Any], shape: list[int | str], dtype: str = "float32") -> dict[str, Any]:
    return {"name": name, "op": op, "args": args, "out": [{"shape": shape, "dtype": dtype}], "where": "model.py:9"}


def graph(nodes: list[dict[str, Any]], rows: int = 2048, length: int = 1024, **more: Any) -> dict[str, Any]:
    one = {
        "inputs": [{"name": "x", "shape": ["s0", "s1"], "dtype": "float32", "example": [rows, length]}],
        "state": [],
        "nodes": nodes,
        "outputs": [{"node": nodes[-1]["name"]}],
        "structure": "one",
    }
    made = {"format": 1, "class": "Model", "training_differs": False, "attributes": {"scale": "2.0"}}
    return {**made, "graphs": {"float32": one}, **more}


def softmax_sum(rows: int = 2048, length: int = 1024, **more: Any) -> dict[str, Any]:
    x: dict[str, Any] = {"self": {"node": "x"}, "other": 2.0}
    nodes = [
        node("mul", "aten.mul.Tensor", x, ["s0", "s1"]),
        node("soft", "aten._softmax.default", {"self": {"node": "mul"}, "dim": -1}, ["s0", "s1"]),
        node("total", "aten.sum.dim_IntList", {"self": {"node": "soft"}, "dim": [-1]}, ["s0"]),
    ]
    return graph(nodes, rows, length, **more)


def kernels(source: str) -> list[str]:
    return re.findall(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", source)


def test_a_softmax_and_its_sum_are_one_kernel() -> None:
    found = generate_module(softmax_sum(), class_source=SOURCE)
    assert found.declined is None
    assert kernels(found.variants[0].source) == ["rows_0"]
    assert found.naive is found.variants[-1]
    assert len(kernels(found.variants[-1].source)) == 3
    assert len({v.strategy for v in found.variants}) == len(found.variants)
    assert len({v.source.split("\n", 1)[1] for v in found.variants}) == len(found.variants)


def test_few_long_rows_are_cut_into_chunks() -> None:
    found = generate_module(softmax_sum(rows=8, length=1 << 20), class_source=SOURCE)
    first = found.variants[0].source
    assert any(k.startswith("parts_") for k in kernels(first))
    assert "chunks0 = min(max(1, -(-(s1) // 4096)), 1024)" in first
    assert not any(k.startswith("parts_") for k in kernels(generate_module(softmax_sum(), class_source=SOURCE)
                                                           .variants[0].source))  # fmt: skip


def test_forward_only_allocates_and_launches() -> None:
    tree = ast.parse(generate_module(softmax_sum(), class_source=SOURCE).variants[0].source)
    (new,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"]
    (forward,) = [n for n in new.body if isinstance(n, ast.FunctionDef) and n.name == "forward"]
    called = {ast.unparse(n.func) for n in ast.walk(forward) if isinstance(n, ast.Call)}
    allowed = {"check_module", "check_tensor", "launch", "torch.empty", "x.contiguous", "TypeError"}
    assert {c for c in called if not c.endswith(".get")} <= allowed
    assert not any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult) for n in ast.walk(forward))


def test_refuses_what_it_was_not_made_for() -> None:
    text = generate_module(softmax_sum(training_differs=True), class_source=SOURCE).variants[0].source
    assert '"scale": 2.0' in text
    assert "if self.training:" in text


@pytest.mark.parametrize(
    ("op", "arguments", "reason"),
    [
        ("aten.sort.default", {"self": {"node": "x"}}, "aten.sort.default: no rule for this operator (model.py:9)"),
        (
            "aten.cumsum.default",
            {"self": {"node": "x"}, "dim": {"node": "x"}},
            "aten.cumsum.default: dim is a tensor (model.py:9)",
        ),
    ],
)
def test_declines_with_the_operator(op: str, arguments: dict[str, Any], reason: str) -> None:
    found = generate_module(graph([node("y", op, arguments, ["s0", "s1"])]), class_source=SOURCE)
    assert found.variants == ()
    assert found.declined is not None
    assert found.declined.reason == reason
    assert found.declined.line == 9


def test_a_trace_that_failed_is_a_decline() -> None:
    found = generate_module({"declined": {"what": "no", "where": "model.py:3"}}, class_source=SOURCE)
    assert found.declined is not None
    assert (found.declined.reason, found.declined.line) == ("no (model.py:3)", 3)


def test_every_double_result_is_declined() -> None:
    x: dict[str, Any] = {"self": {"node": "x"}, "dtype": {"dtype": "float64"}}
    found = generate_module(
        graph([node("wide", "aten._to_copy.default", x, ["s0", "s1"], "float64")]), class_source=SOURCE
    )
    assert found.declined is not None
    assert "float64" in found.declined.reason


def test_templates_take_the_operands_that_they_name() -> None:
    load_rules()
    assert len(RULES) > 150
    for name, operation in OPERATIONS.items():
        for template in (operation.real, operation.whole):
            assert template.format("a", "b", "c") or not template, name
