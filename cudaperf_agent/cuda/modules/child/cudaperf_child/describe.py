"""What only a run can tell of a module: inputs, state and outputs, and what it takes besides the file's own inputs."""

from __future__ import annotations

import gc
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch

from .contents import laid_out, state_of
from .sizes import Sizes, draw, own_type
from .user_module import Module, Refused, accepts, call
from .wire import NAMES, SHORT, encode

FINITE_SHARE = 0.95
FEW = 4


def describe(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """All of a `ModuleSpec` that only a run can tell."""
    module = Module(request, folder)
    shown = module.inputs()
    try:
        init = encode([module.positional, module.named])
    except TypeError as error:
        raise Refused(
            f"the constructor takes {error}, which cannot be handed to another process", "init_type"
        ) from error
    empty = next((i for i, v in enumerate(shown) if isinstance(v, torch.Tensor) and not v.numel()), None)
    if empty is not None:
        said = (
            f"input {empty} has no elements (its shape is {list(shown[empty].shape)}), so that nothing can be compared"
        )
        raise Refused(said, "empty", module.line_of("get_inputs"))
    specs = [_input_spec(value) for value in shown]
    model = module.new()
    model.load_state_dict(state_of(model, request["seed"]))
    sizes = Sizes(model, specs, request)
    found = sizes.found()
    shapes = sizes.shapes
    for index, spec in enumerate(specs):
        spec["open_range"] = _open(model, specs, shapes, index, request["seed"])
    own = next((s["dtype"] for s in specs if s["floating"]), None)
    own = own or next((SHORT[t.dtype] for t in model.state_dict().values() if t.is_floating_point()), "f32")
    arguments = draw(specs, shapes, own, "normal", request["seed"])
    with module.blamed("forward", "forward"):
        first = call(model, arguments)
    fresh = draw(specs, shapes, own, "normal", request["seed"])
    changed = [i for i, (a, b) in enumerate(zip(arguments, fresh, strict=True)) if not _same(a, b)]
    if changed:
        raise Refused(f"forward of {request['class_name']} changes its input {changed[0]} in place", "in_place")
    again = call(model, fresh)
    if len(first) != len(again) or not all(_same(a, b) for (_, a), (_, b) in zip(first, again, strict=True)):
        said = f"forward of {request['class_name']} gives another result each time, also in evaluation mode"
        raise Refused(said, "random")
    fresh = draw(specs, shapes, own, "normal", request["seed"])
    strided = [laid_out(a, "spaced") if isinstance(a, torch.Tensor) else a for a in fresh]
    state = model.state_dict()
    buffers = {name for name, _ in model.named_buffers()}
    unknown = next((t.dtype for t in state.values() if t.dtype not in SHORT), None)
    if unknown is not None:
        raise Refused(f"the module's state has a tensor of type {unknown}", "state")
    return {
        "init": json.dumps(init),
        "inputs": [{k: v for k, v in s.items() if k not in ("floating", "decoded")} for s in specs],
        "state": [
            {"name": n, "dtype": SHORT[t.dtype], "shape": list(t.shape), "buffer": n in buffers}
            for n, t in state.items()
        ],
        "outputs": [{"name": n, "dtype": SHORT[t.dtype], "rank": t.dim()} for n, t in first],
        "dimensions": found["dimensions"],
        "strided": accepts(model, strided) is not None,
        "reduced": found["reduced"],
        "dtypes": [d for d in request["dtypes"] if _takes(module, specs, shapes, d, request["seed"])],
        "graph": _graph(request, folder),
        "torch": torch.__version__,
    }


def _same(one: Any, other: Any) -> bool:
    """Equal tensors, a NaN being equal to another; what is no tensor is not compared."""
    if not isinstance(one, torch.Tensor):
        return True
    return bool(torch.equal(one.nan_to_num(), other.nan_to_num()))


def _graph(request: dict[str, Any], folder: Path) -> str:
    """JSON of what the generator's own script makes of the file, where there is such a script."""
    script = folder / "tracer.py"
    if not script.exists():
        return ""
    spec = importlib.util.spec_from_file_location("cudaperf_tracer", script)
    assert spec is not None
    assert spec.loader is not None
    tracer = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tracer
    spec.loader.exec_module(tracer)
    gc.disable()  # a fifth of the time; what exporting leaves behind has no data
    try:
        return json.dumps(tracer.trace_file(str(folder / "module.py"), request["class_name"], request["inputs_text"]))
    finally:
        gc.enable()


def _input_spec(value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        try:
            return {"kind": "value", "value": json.dumps(encode(value)), "floating": False, "decoded": value}
        except TypeError as error:
            raise Refused(f"forward takes {error}, which cannot be handed to another process", "input_type") from error
    if value.dtype not in SHORT:
        raise Refused(f"forward takes a tensor of type {value.dtype}", "input_type")
    spec = {
        "kind": "tensor",
        "dtype": SHORT[value.dtype],
        "shape": list(value.shape),
        "floating": value.is_floating_point(),
    }
    spec |= {"low": None, "high": None, "distinct": [], "open_range": False}
    if value.numel():
        sample = value.reshape(-1)[: 1 << 20].double()
        spec |= {"low": float(value.min()), "high": float(value.max())}
        values = sample.unique()
        if value.is_floating_point() and 1 < values.numel() <= FEW < sample.numel():
            spec["distinct"] = values.tolist()
    return spec


def _open(model: torch.nn.Module, specs: list[dict[str, Any]], shapes: list[list[int]], which: int, seed: int) -> bool:
    """Whether results stay finite when an input leaves the range that was seen."""
    spec = specs[which]
    if not spec.get("floating") or spec["distinct"]:
        return False
    opened = [{**s, "open_range": i == which} for i, s in enumerate(specs)]
    for contents in ("normal", "negative", "large", "zeros"):
        result = accepts(model, draw(opened, shapes, own_type(specs), contents, seed))
        if result is None:
            return False
        finite = [t.isfinite().double().mean().item() for _, t in result if t.is_floating_point() and t.numel()]
        if any(share < FINITE_SHARE for share in finite):
            return False
    return True


def _takes(module: Module, specs: list[dict[str, Any]], shapes: list[list[int]], dtype: str, seed: int) -> bool:
    model = module.new().to(NAMES[dtype])
    return accepts(model, draw(specs, shapes, dtype, "normal", seed)) is not None
