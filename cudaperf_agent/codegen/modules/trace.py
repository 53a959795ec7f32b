"""The program that a sandboxed child runs: load a PyTorch module, export its graph, and write it as JSON.

    python trace.py FILE CLASS OUT [INPUTS]

FILE is the user's, CLASS the module in it, OUT the JSON to write, INPUTS a list such as ``f32[64,128], i64[64]`` for
files without ``get_inputs``. Needs torch and the standard library only; nothing else imports torch for it.

The JSON holds one graph for each float type that the module can be traced in, since an explicit conversion in its
forward is seen only where it changes something. Dimensions are numbers, or Python formulas over the sizes of the
inputs. A module that cannot be traced gives ``{"declined": {"what", "where"}}``.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

FORMAT = 1
FLOATS = ("float32", "float16", "bfloat16")
"""Float types that a graph is made for."""
MOST_NODES = 2000
_SPEC = re.compile(r"\s*([a-z]+\d*)\s*\[([\d,\s]*)\]\s*")
_SHORT = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i64": "int64", "i32": "int32",
    "u8": "uint8", "bool": "bool",
}  # fmt: skip


class Untraceable(Exception):
    """The module is outside what can be written down: what, and the line of the user's file if it is known."""

    where = ""


def trace_file(path: str, class_name: str, inputs: str | None = None) -> dict[str, Any]:
    """The graphs of a module in a file.

    Args:
        path: The user's file, which is imported.
        class_name: The module in it.
        inputs: Shapes and types of the inputs, for files that have no ``get_inputs``.

    Returns:
        The JSON object, or one with the key ``declined``.
    """
    try:
        module = _imported(path)
        model_class = getattr(module, class_name)
        arguments = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
        positional, named = _constructor_arguments(arguments)
        examples = _examples(inputs) if inputs is not None else list(module.get_inputs())
        model = model_class(*positional, **named)
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything, and this is the process that answers
        return {"declined": {"what": _first_line(error), "where": _user_line(error)}}
    return trace(model, examples)


def trace(model: Any, inputs: Sequence[Any]) -> dict[str, Any]:
    """The graphs of a module.

    Args:
        model: The module; it is converted and moved between its modes.
        inputs: Example arguments of ``forward``. Their sizes are what the choice of variants goes by.

    Returns:
        The JSON object, or one with the key ``declined``.
    """
    try:
        return _traced(model, inputs)
    except Exception as error:  # noqa: BLE001 - so may its forward, and torch about it
        if isinstance(error, Untraceable):
            return {"declined": {"what": str(error), "where": error.where}}
        return {"declined": {"what": _first_line(error), "where": _user_line(error)}}


def _imported(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("traced_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["traced_module"] = module
    spec.loader.exec_module(module)
    return module


def _constructor_arguments(given: Any) -> tuple[list[Any], dict[str, Any]]:
    """KernelBench has lists, and lists of a list and a dictionary."""
    if isinstance(given, dict):
        return [], given
    given = list(given)
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], dict):
        return list(given[0]), given[1]
    return given, {}


def _examples(spec: str) -> list[Any]:
    import torch

    found: list[Any] = []
    for match in _SPEC.finditer(spec):
        dtype = getattr(torch, _SHORT[match.group(1)])
        shape = [int(n) for n in match.group(2).split(",") if n.strip()]
        found.append(torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype))
    return found


def _traced(model: Any, examples: Sequence[Any]) -> dict[str, Any]:
    import torch

    for example in examples:
        if not isinstance(example, torch.Tensor | int | float | bool | type(None)):
            raise Untraceable(f"an input is a {type(example).__name__}, and only tensors and numbers are supported")
    attributes = _attributes(model)
    graphs = {}
    for name in FLOATS:
        dtype = getattr(torch, name)
        converted = [e.to(dtype) if isinstance(e, torch.Tensor) and e.is_floating_point() else e for e in examples]
        try:
            graphs[name] = _graph(_exported(model.to(dtype).eval(), converted), converted, model)
        except Exception:
            if name == FLOATS[0]:
                raise  # a type that the module does not take is no problem of the others
    model.to(torch.float32)
    try:
        trained = _operators(_exported(model.train(), list(examples)))
    except Exception:  # noqa: BLE001 - whatever stops it, it is not the graph of evaluation
        trained = []
    return {
        "format": FORMAT,
        "torch": torch.__version__,
        "class": type(model).__name__,
        "training_differs": trained != [n["op"] for n in graphs[FLOATS[0]]["nodes"]],
        "attributes": attributes,
        "graphs": graphs,
    }


def _exported(model: Any, examples: Sequence[Any]) -> Any:
    """The exported program, decomposed, every dimension left open that the module leaves open."""
    import torch
    from torch.export import Dim

    arguments = tuple(examples)
    open_ = tuple(dict.fromkeys(range(e.dim()), Dim.AUTO) if isinstance(e, torch.Tensor) else None for e in arguments)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(model, arguments, dynamic_shapes=open_, strict=False)
        except Exception:  # noqa: BLE001 - what fails with open sizes may work with fixed ones
            program = torch.export.export(model, arguments, strict=False)
        table = torch.export.default_decompositions()
        for kept in (torch.ops.aten.linear.default, torch.ops.aten.silu.default, torch.ops.aten.matmul.default):
            table.pop(kept, None)
        return program.run_decompositions(table)


def _operators(program: Any) -> list[str]:
    return [_operator(n) for n in program.graph.nodes if n.op == "call_function" and not _is_size(n)]


def _operator(node: Any) -> str:
    return str(node.target) if hasattr(node.target, "_schema") else getattr(node.target, "__name__", "?")


def _is_size(node: Any) -> bool:
    """Whether a node computes with sizes only."""
    import torch

    value = node.meta.get("val")
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool) or (
        value is None and "getitem" not in str(node.target)
    )


def _graph(program: Any, examples: Sequence[Any], model: Any) -> dict[str, Any]:
    import torch
    from torch.export.graph_signature import InputKind, OutputKind

    signature = program.graph_signature
    for out in signature.output_specs:
        if out.kind not in (OutputKind.USER_OUTPUT, OutputKind.TOKEN):
            raise Untraceable(f"forward changes {out.target or 'its input'} in place ({out.kind.name.lower()})")
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    if len(program.graph.nodes) > MOST_NODES:
        raise Untraceable(f"the graph has {len(program.graph.nodes)} nodes, and {MOST_NODES} is the most")
    inputs, state, user = [], [], 0
    for spec, node in zip(signature.input_specs, placeholders, strict=True):
        value = node.meta.get("val")
        if spec.kind == InputKind.USER_INPUT:
            entry: dict[str, Any] = {"name": node.name}
            if isinstance(value, torch.Tensor):
                entry |= {"shape": _shape(value), "dtype": _dtype(value), "example": list(examples[user].shape)}
            else:
                entry["value"] = _plain(examples[user])
            inputs.append(entry)
            user += 1
        elif isinstance(value, torch.Tensor):
            entry = {"name": node.name, "path": spec.target, "shape": _shape(value), "dtype": _dtype(value)}
            if spec.kind == InputKind.CONSTANT_TENSOR:
                constant = program.constants[spec.target]
                if constant.numel() == 1:
                    entry["value"] = _plain(constant.item())
                elif _found(model, spec.target) is None:
                    raise Untraceable(f"forward makes a tensor from {constant.numel()} constants ({spec.target})")
            state.append(entry)
        else:
            raise Untraceable(f"forward uses an object of kind {spec.kind.name.lower()}")
    nodes = [_node(n) for n in program.graph.nodes if n.op == "call_function" and not _is_size(n)]
    (output,) = [n for n in program.graph.nodes if n.op == "output"]
    return {
        "inputs": inputs,
        "state": state,
        "nodes": nodes,
        "outputs": [_argument(a) for a in output.args[0]],
        "structure": _structure(program, len(output.args[0])),
    }


def _structure(program: Any, count: int) -> str:
    """How forward returns its tensors: one, a tuple or a list."""
    import torch.utils._pytree as pytree

    spec = program.call_spec.out_spec
    value = pytree.tree_unflatten(list(range(count)), spec)
    if value == 0 and isinstance(value, int):
        return "one"
    if isinstance(value, tuple | list) and list(value) == list(range(count)):
        return "tuple" if isinstance(value, tuple) else "list"
    raise Untraceable(f"forward returns a {type(value).__name__} with tensors inside")


def _node(node: Any) -> dict[str, Any]:
    import torch

    value = node.meta.get("val")
    values = list(value) if isinstance(value, tuple | list) else [value]
    names = [a.name for a in node.target._schema.arguments] if hasattr(node.target, "_schema") else []
    arguments = dict(zip(names or map(str, range(len(node.args))), node.args, strict=False)) | node.kwargs
    try:
        written = {k: _argument(v) for k, v in arguments.items()}
    except Untraceable as error:
        error.where = _where(node)
        raise
    return {
        "name": node.name,
        "op": _operator(node),
        "args": written,
        "out": [{"shape": _shape(v), "dtype": _dtype(v)} if isinstance(v, torch.Tensor) else None for v in values],
        "where": _where(node),
    }


def _where(node: Any) -> str:
    """The line of the user's code that made a node, as ``file:line``."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    mine = [f"{p.rsplit('/', 1)[-1]}:{n}" for p, n in found if _is_users(p)]
    return mine[-1] if mine else ""


def _argument(value: Any) -> Any:
    import torch

    if isinstance(value, torch.fx.Node):
        known = value.meta.get("val")
        if isinstance(known, torch.SymInt):
            return {"size": _formula(known)}
        if isinstance(known, torch.SymFloat):
            return {"number": str(known)}
        if isinstance(known, torch.SymBool):
            raise Untraceable("forward decides by sizes")
        return {"node": value.name}
    if isinstance(value, torch.SymInt):
        return {"size": _formula(value)}
    if isinstance(value, torch.SymFloat):
        return {"number": str(value)}
    if isinstance(value, list | tuple):
        return [_argument(v) for v in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return None
    if hasattr(value, "_schema"):
        raise Untraceable(f"{value}: an operator with side effects, such as an error of its own")
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, bool | int | float | str | type(None)):
        return value
    raise Untraceable(f"the graph holds a {type(value).__name__}")


def _shape(value: Any) -> list[int | str]:
    return [n if isinstance(n, int) else _formula(n) for n in value.shape]


def _formula(value: Any) -> Any:
    text = str(value)
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _found(model: Any, path: str) -> Any:
    for part in path.split("."):
        model = getattr(model, part, None)
    return model


def _attributes(model: Any) -> dict[str, Any]:
    """Plain values that the module and its parts hold: what the traced numbers came from."""
    found = {}
    for prefix, part in model.named_modules():
        for name, value in vars(part).items():
            if name.startswith("_") or name == "training":
                continue
            values = value if isinstance(value, tuple) else (value,)
            if all(isinstance(v, bool | int | float | str | type(None)) for v in values):
                found[f"{prefix}.{name}" if prefix else name] = repr(value)
    return {k: v for k, v in found.items() if _readable(v)}


def _readable(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except ValueError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__


def _user_line(error: BaseException) -> str:
    """The innermost line that is neither torch's nor ours."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    return f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""


def _is_users(path: str) -> bool:
    outside = ("site-packages", "dist-packages", "<", "/lib/python", "cudaperf_child")
    return path != __file__ and not any(part in path for part in outside)


def main(argv: Sequence[str]) -> int:
    """Trace and write; the JSON says whether it worked."""
    result = trace_file(*argv[:2], *argv[3:4])
    with open(argv[2], "w") as file:
        json.dump(result, file, allow_nan=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
