"""The right outputs of a module for the inputs of cases, in several builds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from .contents import generator, inputs_of, laid_out, moved, state_of
from .summation import AnyOrder
from .user_module import Module, accepts
from .wire import NAMES, Writer, decode


def expect(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Inputs, state and right outputs of cases.

    Per case: the module in its own type, in double, in double with all floating-point inputs and state moved by
    one unit in the last place of that type, and in double with sums that round as those of floats may.
    """
    module, seed = Module(request, folder), request["seed"]
    specs = [dict(s) for s in request["inputs"]]
    for spec in specs:
        spec["floating"] = spec["kind"] == "tensor" and NAMES[spec["dtype"]].is_floating_point
        spec["decoded"] = decode(json.loads(spec["value"])) if spec["kind"] == "value" else None
    inputs, states, outputs = (Writer(folder / f"{name}.bin") for name in ("inputs", "state", "expected"))
    model = module.new()
    state = state_of(model, seed)
    found: dict[str, Any] = {"cases": [], "state": {}}
    for dtype in dict.fromkeys(case["dtype"] for case in request["cases"]):
        kept = {n: t.to(NAMES[dtype]) if t.is_floating_point() else t for n, t in state.items()}
        found["state"][dtype] = {name: states.put(tensor) for name, tensor in kept.items()}
    for case in request["cases"]:
        arguments = inputs_of(case, specs, seed)
        if case["probe"]:
            entries = [inputs.put(a) if isinstance(a, torch.Tensor) else None for a in arguments]
            found["cases"].append({"inputs": entries, "outputs": {"plain": []}})
            continue
        shaped = [laid_out(a, case["layout"]) if isinstance(a, torch.Tensor) else a for a in arguments]
        kept = {n: t.to(NAMES[case["dtype"]]) if t.is_floating_point() else t for n, t in state.items()}
        own = module.new().to(NAMES[case["dtype"]])
        own.load_state_dict(kept)
        result = accepts(own, shaped)
        if result is None:
            found["cases"].append(None)
            continue
        builds = {"plain": result, "wide": _wide(module, kept, arguments)}
        for number in range(request["moves"]):
            source = generator(seed, case["name"], "moved", number)
            builds[f"moved{number}"] = _wide(module, kept, arguments, source, NAMES[case["dtype"]])
        with AnyOrder(generator(seed, case["name"], "summed", 0)):
            builds["summed"] = _wide(module, kept, arguments)
        found["cases"].append(
            {
                "inputs": [inputs.put(a) if isinstance(a, torch.Tensor) else None for a in arguments],
                "outputs": {
                    build: [{"name": n, **outputs.put(t)} for n, t in leaves]
                    for build, leaves in builds.items()
                    if leaves is not None
                },
            }
        )
    for writer in (inputs, states, outputs):
        writer.flush()
    return found


def _wide(
    module: Module,
    state: dict[str, torch.Tensor],
    arguments: list[Any],
    source: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
) -> list[tuple[str, torch.Tensor]] | None:
    """The result in double, `None` where the module insists on another type."""

    def widened(value: Any) -> Any:
        return widened_inputs(value, source, dtype)

    model = module.new().double()
    model.load_state_dict({name: widened(tensor) for name, tensor in state.items()})
    return accepts(model, [widened(a) for a in arguments])


def widened_inputs(value: Any, source: torch.Generator | None = None, dtype: torch.dtype = torch.float32) -> Any:
    """A floating-point tensor in double, moved by one unit in the last place if there is a `source`; others as is."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.double() if source is None else moved(value, source, dtype)
