"""Random nests against brute force: a loop that isl calls parallel has no conflict in any small execution."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import dataclass

import pytest

from cudaperf_agent.codegen.dependence import carried
from cudaperf_agent.codegen.known import Context
from cudaperf_agent.codegen.nests import nest_of
from cudaperf_agent.codegen.plan import Planner
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower import lower_source
from cudaperf_agent.tasks.lowered import Module

SIZES = (0, 1, 2, 3, 5)
COUNT = 150


@dataclass(frozen=True)
class Touch:
    """One access of one iteration."""

    point: tuple[int, int]
    index: int
    write: bool


def value(node: ir.Expr, env: dict[str, int]) -> int:
    """An integer expression, as C computes it without overflow."""
    if isinstance(node, ir.Const):
        return int(node.value)
    if isinstance(node, ir.Ref):
        return env[node.name]
    if isinstance(node, ir.Cast):
        return value(node.operand, env)
    assert isinstance(node, ir.Binary), node
    left, right = value(node.left, env), value(node.right, env)
    if node.op in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if node.op == "/" else left - quotient * right
    return {"+": left + right, "-": left - right, "*": left * right, "<": left < right, ">=": left >= right,
            "<=": left <= right, "==": left == right}[node.op]  # fmt: skip


def execution(nest: ir.For, env: dict[str, int]) -> list[Touch]:
    """Every access to ``a`` in the nest, for given sizes."""
    found: list[Touch] = []
    inner = nest.body[0]
    assert isinstance(inner, ir.For)
    for i in _range(nest, env):
        for j in _range(inner, {**env, "i": i}):
            here = {**env, "i": i, "j": j}
            for statement in inner.body:
                if isinstance(statement, ir.If):
                    if value(statement.condition, here):
                        found += _touches(statement.then, here)
                else:
                    found += _touches((statement,), here)
    return found


def _range(loop: ir.For, env: dict[str, int]) -> range:
    end = value(loop.bound, env) + (1 if loop.relation == "<=" else 0)
    return range(value(loop.start, env), end, loop.step)


def _touches(statements: tuple[ir.Stmt, ...], env: dict[str, int]) -> list[Touch]:
    found = []
    point = (env["i"], env["j"])
    for statement in statements:
        assert isinstance(statement, ir.Assign)
        loads = [n for n in ir.walk(statement.value) if isinstance(n, ir.Load)]
        found += [Touch(point, value(n.indices[0], env), False) for n in loads if n.pointer == "a"]
        assert isinstance(statement.target, ir.Load)
        found.append(Touch(point, value(statement.target.indices[0], env), True))
    return found


def conflicts(touches: list[Touch]) -> set[str]:
    """The loops in whose different iterations one element is touched, once by a store."""
    by_index: dict[int, list[Touch]] = defaultdict(list)
    for touch in touches:
        by_index[touch.index].append(touch)
    found: set[str] = set()
    for mine in by_index.values():
        for one, two in itertools.combinations(mine, 2):
            if one.write or two.write:
                found |= {v for v, x, y in zip("ij", one.point, two.point, strict=True) if x != y}
    return found


def random_nest(seed: int) -> str:
    """A C function with two loops around one or two assignments to ``a``."""
    rng = random.Random(seed)
    rows = ["i*m + j", "i*m + j", "j*n + i", "i*m + (m - 1 - j)", "(i + 1)*m + j", "i*m + j + 1", "i + j", "2*i + j",
            "i - j + m", "i", "j", "(i/2)*m + j", "i*m + j/2", "i*m + j%2", "3*(i*m + j) + 1", "2*(i*m + j)",
            "i*m", "n - 1 - i",
            "i*i + j", "(n - i)*m + j", "i%3*m + j", "i*(m + 1) + j", "i*m + 2*j"]  # fmt: skip
    inner = rng.choice(["j = 0; j < m; j++", "j = 0; j < m; j++", "j = 1; j < m - 1; j++", "j = 0; j <= i; j++",
                        "j = i; j < m; j++", "j = 0; j < m; j += 2", "j = 0; j <= m; j++"])  # fmt: skip
    outer = rng.choice(["i = 0; i < n; i++", "i = 1; i < n; i++", "i = 0; i < n; i += 2", "i = 1; i <= n; i++"])
    lines = []
    for _ in range(rng.choice([1, 1, 2])):
        value_text = rng.choice(["b[i]", f"a[{rng.choice(rows)}]", f"a[{rng.choice(rows)}] + a[{rng.choice(rows)}]"])
        guard = rng.choice(["", "", "", "if (j < i) ", "if (i == j) ", "if (j >= 2) "])
        lines.append(f"{guard}a[{rng.choice(rows)}] = {value_text};")
    body = " ".join(lines)
    return f"void f(int n, int m, int *a, const int *b) {{ for (int {outer}) for (int {inner}) {{ {body} }} }}"


@pytest.mark.parametrize("start", range(0, COUNT, 30))
def test_no_conflict_is_overlooked(start: int) -> None:
    proven = 0
    for seed in range(start, start + 30):
        source = random_nest(seed)
        module = lower_source(source, "f")
        assert isinstance(module, Module)
        loop = module.entry.body[0]
        assert isinstance(loop, ir.For)
        planner = Planner(module, {})
        nest = nest_of(loop)
        found = carried(planner.accesses(nest, Context()), nest.variables)
        parallel = {v for v in nest.variables if not found[v].order and not found[v].updates}
        proven += bool(parallel)
        for n, m in itertools.product(SIZES, SIZES):
            touches = execution(loop, {"n": n, "m": m})
            if any(t.index < 0 for t in touches):
                continue  # undefined in C
            wrong = parallel & conflicts(touches)
            assert not wrong, f"seed {seed}, n={n} m={m}: {wrong} of {source}"
    assert proven >= 1, "the proofs have become too weak to mean anything"
