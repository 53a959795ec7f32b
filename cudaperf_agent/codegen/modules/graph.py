"""From the JSON of a traced graph to the tensor IR, operator by operator."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cudaperf_agent.codegen.modules.build import cast, constant, point, size_value
from cudaperf_agent.codegen.modules.sizes import Expr, Size, as_expr, evaluated, product, text_of
from cudaperf_agent.codegen.modules.tensors import SUPPORTED, Buffer, Index, Program, Tensor, View

MAXIMUM = 9223372036854775807
"""What torch writes for "to the end"."""


class Unsupported(Exception):
    """An operator or a form of it that there is no rule for: what, and the line of the user's file."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where


@dataclass
class Sizes:
    """The sizes of one graph, and their values in the example.

    Attributes:
        known: By name.
        hints: Values in the example, by name.
    """

    known: dict[str, Size] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)

    def expr(self, value: int | str) -> Expr:
        """A number or a formula over sizes."""
        return as_expr(value) if isinstance(value, int) else self._parsed(ast.parse(value, mode="eval").body)

    def dimension(self, value: int | str) -> Expr:
        """The same as a dimension of a tensor: a product; a sum gets a name of its own."""
        expr = self.expr(value)
        return expr if len(expr.terms) <= 1 else self.named(expr)

    def named(self, value: Expr) -> Expr:
        """A size of its own, computed from others."""
        return self._derived(text_of(value, python=True), evaluated(value, self.hints))

    def dimension_of(self, shape: Index) -> Expr:
        """Several dimensions as one."""
        whole = product(shape)
        return whole if len(whole.terms) <= 1 else self.named(whole)

    def _derived(self, formula: str, hint: int) -> Expr:
        for size in self.known.values():
            if size.formula == formula:
                return as_expr(size)
        size = Size(f"n{sum(bool(s.formula) for s in self.known.values())}", formula)
        self.known[size.name], self.hints[size.name] = size, hint
        return as_expr(size)

    def _parsed(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return as_expr(node.value)
        if isinstance(node, ast.Name):
            return as_expr(self.known.setdefault(node.id, Size(node.id)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._parsed(node.operand)
        if isinstance(node, ast.BinOp):
            left, right = self._parsed(node.left), self._parsed(node.right)
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
                case ast.Pow() if right.constant is not None and 0 <= right.constant < 8:
                    result = as_expr(1)
                    for _ in range(right.constant):
                        result = result * left
                    return result
                case ast.FloorDiv() | ast.Mod() if right.terms:
                    sign = "//" if isinstance(node.op, ast.FloorDiv) else "%"
                    a, b = evaluated(left, self.hints), evaluated(right, self.hints)
                    formula = f"({text_of(left, python=True)}) {sign} ({text_of(right, python=True)})"
                    return self._derived(formula, a // b if sign == "//" else a % b)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Max", "Min"):
            parts, name = [self._parsed(a) for a in node.args], node.func.id.lower()
            values = [evaluated(p, self.hints) for p in parts]
            formula = f"{name}({', '.join(text_of(p, python=True) for p in parts)})"
            return self._derived(formula, max(values) if name == "max" else min(values))
        raise Unsupported(f"a size computed as {ast.unparse(node)}")


@dataclass(frozen=True, slots=True)
class Call:
    """One node of the graph as a rule sees it.

    Attributes:
        op: The operator with its overload.
        label: The node's name.
        where: The line of the user's file.
        arguments: By the schema's names.
        values: Tensors (and lists of results) made so far.
        sizes: Of the graph.
        out: Shapes and types of the results.
    """

    op: str
    label: str
    where: str
    arguments: Mapping[str, Any]
    values: Mapping[str, Tensor | tuple[Tensor | None, ...]]
    sizes: Sizes
    out: tuple[tuple[Index, str] | None, ...]

    @property
    def shape(self) -> Index:
        """Of the first result."""
        assert self.out[0] is not None
        return self.out[0][0]

    @property
    def dtype(self) -> str:
        """Of the first result."""
        assert self.out[0] is not None
        return self.out[0][1]

    def fail(self, why: str) -> Unsupported:
        """The refusal of this node."""
        return Unsupported(f"{self.op}: {why}", self.where)

    def has(self, name: str) -> bool:
        """Whether an argument is there and not None."""
        return self.arguments.get(name) is not None

    def tensor(self, name: str) -> Tensor:
        """An argument that is a tensor."""
        value = self.operand(name)
        if not isinstance(value, Tensor):
            raise self.fail(f"{name} is not a tensor")
        return value

    def maybe(self, name: str) -> Tensor | None:
        """A tensor that may be missing."""
        return self.tensor(name) if self.has(name) else None

    def operand(self, name: str) -> Tensor | float | int | bool:
        """A tensor or a number."""
        return self._operand(self.arguments.get(name), name)

    def _operand(self, raw: Any, name: str) -> Tensor | float | int | bool:
        if isinstance(raw, dict) and "node" in raw:
            value = self.values[raw["node"]]
            if isinstance(value, Tensor):
                return value
            raise self.fail(f"{name} is a list of results")
        if isinstance(raw, dict) and "size" in raw:
            return size_value(self.sizes.expr(raw["size"]), "int64")
        if isinstance(raw, dict) and "number" in raw:
            return self._real(ast.parse(raw["number"], mode="eval").body)
        if isinstance(raw, dict) and "float" in raw:
            return float(raw["float"])
        if isinstance(raw, bool | int | float):
            return raw
        raise self.fail(f"{name} is not a number")

    def _real(self, node: ast.expr) -> Tensor:
        """A float computed from sizes, computed again in the kernel."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return constant(float(node.value), "float32")
        if isinstance(node, ast.Name):
            return size_value(self.sizes.expr(node.id), "float32")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return point("neg", self._real(node.operand), dtype="float32")
        if isinstance(node, ast.BinOp):
            names: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}
            if type(node.op) in names:
                return point(names[type(node.op)], self._real(node.left), self._real(node.right), dtype="float32")
            if isinstance(node.op, ast.FloorDiv | ast.Mod):
                return size_value(self.sizes.expr(ast.unparse(node)), "float32")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = [self._real(a) for a in node.args]
            if node.func.id in ("ToFloat", "Float", "float") and len(arguments) == 1:
                return arguments[0]
            if node.func.id in ("IntTrueDiv", "FloatTrueDiv") and len(arguments) == 2:
                return point("div", *arguments, dtype="float32")
            if node.func.id in ("OpaqueUnaryFn_sqrt", "sqrt") and len(arguments) == 1:
                return point("sqrt", *arguments, dtype="float32")
        raise self.fail(f"a number computed as {ast.unparse(node)}")

    def tensors(self, name: str) -> list[Tensor | None]:
        """A list of tensors, some of which may be missing."""
        found: list[Tensor | None] = []
        for raw in self.arguments[name]:
            value = None if raw is None else self._operand(raw, name)
            if value is not None and not isinstance(value, Tensor):
                raise self.fail(f"{name} is not a list of tensors")
            found.append(value)
        return found

    def number(self, name: str, default: float) -> float:
        """A float argument, known when traced."""
        value = self.operand(name) if self.has(name) else default
        if isinstance(value, Tensor):
            raise self.fail(f"{name} is a tensor")
        return value

    def whole(self, name: str, default: int = 0) -> int:
        """An integer argument, known when traced."""
        value = self.number(name, default)
        if int(value) != value:
            raise self.fail(f"{name} is not an integer")
        return int(value)

    def wholes(self, name: str, default: list[int] | None = None) -> list[int]:
        """A list of integers, known when traced."""
        raw = self.arguments.get(name)
        raw = default if raw is None else raw
        found = [raw] if isinstance(raw, int) else raw
        if not isinstance(found, list) or not all(isinstance(n, int) for n in found):
            raise self.fail(f"{name} is not a list of integers")
        return list(found)

    def size(self, name: str, default: int = 0) -> Expr:
        """An integer argument that may depend on sizes."""
        return self._size(self.arguments.get(name, default), default)

    def _size(self, raw: Any, default: int) -> Expr:
        if isinstance(raw, dict) and "size" in raw:
            return self.sizes.expr(raw["size"])
        return as_expr(default if raw is None else int(raw))

    def axes(self, name: str, rank: int) -> list[int]:
        """Dimensions, counted from the front; all of them if the argument is missing or empty."""
        raw = self.arguments.get(name)
        if raw is None or raw == []:
            return list(range(rank))
        return [a % rank if rank else 0 for a in self.wholes(name)]


Rule = Callable[[Call], "Tensor | tuple[Tensor | None, ...]"]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for operators, named with their overloads."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = function
        return function

    return register


def lowered(graph: Mapping[str, Any], main: str) -> Program:
    """The program of a graph.

    Args:
        graph: One of the graphs that `trace.py` writes.
        main: The float type it was traced in.

    Raises:
        Unsupported: There is no rule for an operator.
    """
    from cudaperf_agent.codegen.modules.operators import load_rules

    load_rules()
    sizes = Sizes()
    _read_hints(graph, sizes)
    values: dict[str, Tensor | tuple[Tensor | None, ...]] = {}
    inputs: list[Buffer] = []
    state: list[tuple[Buffer, str]] = []
    for entry in graph["state"]:
        if "value" in entry:
            values[entry["name"]] = constant(_number(entry["value"]), entry["dtype"])
            continue
        made = _buffer(entry, sizes)
        values[entry["name"]] = made
        state.append((made, entry["path"]))
    for entry in graph["inputs"]:
        if "shape" in entry:
            made = _buffer(entry, sizes)
            values[entry["name"]] = made
            inputs.append(made)
    for node in graph["nodes"]:
        values[node["name"]] = _lowered_node(node, values, sizes)
    outputs = []
    for raw in graph["outputs"]:
        value = values.get(raw["node"]) if isinstance(raw, dict) and "node" in raw else None
        if not isinstance(value, Tensor):
            raise Unsupported("forward returns something that is not a tensor")
        outputs.append(value)
    if not outputs:
        raise Unsupported("forward returns no tensor")
    used = {id(t) for t in _walk(outputs)}
    return Program(
        tuple(inputs), tuple(s for s in state if id(s[0]) in used), tuple(outputs), graph["structure"],
        dict(sizes.hints), tuple(sizes.known.values()), main,
    )  # fmt: skip


def _walk(outputs: list[Tensor]) -> list[Tensor]:
    from cudaperf_agent.codegen.modules.tensors import walk

    return list(walk(*outputs))


def _number(raw: Any) -> float:
    value = float(raw["float"]) if isinstance(raw, dict) else raw
    return value if isinstance(value, bool | int) else float(value) if math.isfinite(value) else value


def _read_hints(graph: Mapping[str, Any], sizes: Sizes) -> None:
    for entry in graph["inputs"]:
        for formula, example in zip(entry.get("shape", ()), entry.get("example", ()), strict=True):
            if isinstance(formula, str) and formula.isidentifier():
                sizes.expr(formula)
                sizes.hints[formula] = example


def _buffer(entry: Mapping[str, Any], sizes: Sizes) -> Buffer:
    if entry["dtype"] not in SUPPORTED:
        raise Unsupported(f"{entry.get('path', entry['name'])} holds {entry['dtype']} values")
    shape = tuple(sizes.dimension(n) for n in entry["shape"])
    return Buffer(shape=shape, dtype=entry["dtype"], label=entry["name"], name=entry["name"])


def _lowered_node(
    node: Mapping[str, Any], values: Mapping[str, Tensor | tuple[Tensor | None, ...]], sizes: Sizes
) -> Tensor | tuple[Tensor | None, ...]:
    where = node.get("where", "")
    if node["op"] == "getitem":
        results = values[node["args"]["0"]["node"]]
        assert isinstance(results, tuple)
        chosen: Tensor | None = results[node["args"]["1"]]
        if chosen is None:
            raise Unsupported(f"result {node['args']['1']} of {node['args']['0']['node']} is used", where)
        return chosen
    found = RULES.get(node["op"])
    if found is None:
        raise Unsupported(f"{node['op']}: no rule for this operator", where)
    out = tuple(None if o is None else (tuple(sizes.dimension(n) for n in o["shape"]), o["dtype"]) for o in node["out"])
    label = re.sub(r"_\d+$", "", node["name"])  # its number depends on what else was traced
    call = Call(node["op"], label, where, node["args"], values, sizes, out)
    made = found(call)
    for known, result in zip(out, made if isinstance(made, tuple) else (made,), strict=False):
        if known is not None and result is not None and known[1] not in SUPPORTED:
            raise call.fail(f"its result holds {known[1]} values")
    if isinstance(made, Tensor):
        return _as_traced(made, call.out[0])
    return tuple(r if r is None else _as_traced(r, o) for r, o in zip(made, out, strict=True))


def _as_traced(tensor: Tensor, known: tuple[Index, str] | None) -> Tensor:
    """The tensor with the shape and the type that torch saw: ours may be written in other words."""
    if known is None:
        return tensor
    shape, dtype = known
    assert len(tensor.shape) == len(shape), (tensor.label, tensor.shape, shape)
    if tensor.shape != shape:
        tensor = View(shape=shape, dtype=tensor.dtype, label=tensor.label, source=tensor, remap=lambda index: index)
    return cast(tensor, dtype) if tensor.dtype != dtype else tensor
