"""The golden table: each feature of each source was computed by hand in its leading comment and must match exactly."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest

from cudaperf_agent.features.extract import extract_here
from cudaperf_agent.features.model import ORDER

SOURCES = sorted((Path(__file__).parent / "golden").glob("*.cu"))
LINE = re.compile(r"^\s*(extended )?(\w+) = ([^#\n]+)", re.MULTILINE)


def by_hand(expression: str) -> float:
    """The value of the arithmetic in a comment: numbers, + - * / and log1p."""

    def walk(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return float(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -walk(node.operand)
        if isinstance(node, ast.BinOp):
            left, right = walk(node.left), walk(node.right)
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Div):
                return left / right
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "log1p":
            return math.log1p(walk(node.args[0]))
        raise ValueError(ast.dump(node))

    return walk(ast.parse(expression.strip(), mode="eval").body)


def test_the_table_is_long_enough() -> None:
    assert len(SOURCES) >= 40


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    source = path.read_text()
    comment = source[: source.index("*/")]
    expected: dict[str, float] = {}
    for beyond, name, expression in LINE.findall(comment):
        expected[("extended " if beyond else "") + name] = by_hand(expression)
    assert set(ORDER) <= set(expected), "the comment must give all eleven"
    features = extract_here(source)
    found: dict[str, float | None] = dict(features.values)
    found |= {f"extended {name}": value for name, value in features.extended.items()}
    wrong = {
        name: f"by hand {value}, found {found[name]}"
        for name, value in expected.items()
        if found[name] is None or abs(float(found[name] or 0.0) - value) > 1e-12
    }
    assert not wrong
    missing = re.search(r"^\s*missing (.+)$", comment, re.MULTILINE)
    assert features.missing == tuple(missing.group(1).split() if missing else ())
