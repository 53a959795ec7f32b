"""Runs in a child process with torch: traces module files, and compares candidates with their modules.

    python module_child.py trace TRACER OUT FILE…
    python module_child.py compare JOBS

A job is a module's file, its candidate, and a JSON of its trace; the candidates' libraries are in $CUDAPERF_KERNELS.
"""

from __future__ import annotations

import copy
import gc
import importlib.util
import json
import math
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

# Relative to an output's mean magnitude; or four times what the module itself is off by in that type, if more.
TOLERANCES = {"float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
MOST_ELEMENTS = 60_000
SIZES = ((7, 5, 33, 9), (1, 1, 1, 1), (64, 2, 3, 40), (8, 40, 4, 12))


def load(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def randomised(model: Any) -> Any:
    """The module with state away from zeros and ones."""
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5 if "var" in name else torch.randn_like(value) * 0.5)
    return model


def inputs_of(reference: Any, entries: list[dict[str, Any]], trial: int) -> list[Any]:
    """Inputs like the file's own at other sizes; its own sizes where it says which it takes (`sizes`)."""
    chosen: dict[str, int] = {}
    chance = random.Random(trial)
    allowed = getattr(reference, "SIZES", {})
    made: list[Any] = []
    total = 0  # a case too large for the emulator is left out
    for position, (entry, example) in enumerate(zip(entries, reference.get_inputs(), strict=True)):
        if not isinstance(example, torch.Tensor):
            made.append(example)
            continue
        shape = []
        for axis, (dimension, own) in enumerate(zip(entry["shape"], entry["example"], strict=True)):
            if isinstance(dimension, int):
                shape.append(dimension)
            elif dimension.isidentifier():
                wanted = allowed.get((position, axis), SIZES[trial])
                shape.append(chosen.setdefault(dimension, chance.choice(wanted)))
            else:
                shape.append(own)
        total += math.prod(shape)
        if total > MOST_ELEMENTS:
            return []
        if example.is_floating_point():
            made.append(torch.randn(shape) if bool((example < 0).any()) else torch.rand(shape))
        else:
            low, high = int(example.min()), int(example.max())
            made.append(torch.randint(low, min(high, low + 40) + 1, shape).to(example.dtype))
    return made


def spread(values: torch.Tensor, right: torch.Tensor) -> float:
    """The largest error, relative to the value and the mean magnitude."""
    finite = right[torch.isfinite(right)].abs()
    scale = right.abs() + (finite.mean() if finite.numel() else 0.0) + 1e-3
    error = torch.where(values == right, torch.zeros_like(right), (values - right).abs() / scale)
    return float(error.nan_to_num(0.0, posinf=1e9).max()) if error.numel() else 0.0


def leaves(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple | list) else [value]


def problem(reference: Any, candidate: Any, graphs: dict[str, Any], *, strided: bool) -> str:
    """What is wrong with a candidate, an empty text if nothing is."""
    init = reference.get_init_inputs() if hasattr(reference, "get_init_inputs") else []
    compared = 0
    for name, tolerance in TOLERANCES.items():
        dtype = getattr(torch, name)
        model = randomised(reference.Model(*init).eval())
        new = candidate.ModelNew(*init).eval()
        new.load_state_dict(model.state_dict())
        new.to(dtype)
        own_model, wide_model = copy.deepcopy(model).to(dtype), copy.deepcopy(model).to(dtype).double()
        for trial in range(len(SIZES)):
            torch.manual_seed(trial)
            values = inputs_of(reference, graphs[name]["inputs"], trial)
            if not values:
                continue
            values = [v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values]
            if strided:
                values = [apart(v) if isinstance(v, torch.Tensor) else v for v in values]
            wide = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values]
            before = copy.deepcopy(values)
            try:
                right = leaves(wide_model(*wide))
                own = leaves(own_model(*values))
            except (RuntimeError, IndexError, ValueError):
                continue  # the module does not take these sizes
            got = leaves(new(*values))
            shown = f"{name} {[tuple(getattr(v, 'shape', ())) for v in values]}"
            if [(g.shape, g.dtype) for g in got] != [(o.shape, o.dtype) for o in own]:
                return f"{shown}: {[(g.shape, g.dtype) for g in got]} for {[(o.shape, o.dtype) for o in own]}"
            if not all(torch.equal(a, b) for a, b in zip(values, before, strict=True) if isinstance(a, torch.Tensor)):
                return f"{shown}: an input was changed"
            for position, (mine, theirs, exact) in enumerate(zip(got, own, right, strict=True)):
                exact = exact.double()
                allowed = max(tolerance, 4 * spread(theirs.double(), exact))
                off = spread(mine.double(), exact)
                if off > allowed or not torch.equal(mine.isnan(), theirs.isnan()):
                    return f"{shown}: output {position} is off by {off:.2g}, and {allowed:.2g} is allowed"
            compared += 1
    return "" if compared >= len(TOLERANCES) else f"only {compared} inputs could be compared"


def apart(value: torch.Tensor) -> torch.Tensor:
    """The same elements, not contiguous."""
    wider = torch.zeros(*value.shape[:-1], 2 * value.shape[-1], dtype=value.dtype) if value.dim() else value
    if value.dim():
        wider[..., ::2] = value
        return wider[..., ::2]
    return value


def main(argv: list[str]) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if argv[0] == "trace":
        gc.disable()  # a fifth of the time, and the process ends soon
        tracer = load(argv[1], "tracer")
        for file in argv[3:]:
            result = tracer.trace_file(file, "Model")
            Path(argv[2], f"{Path(file).stem}.json").write_text(json.dumps(result))
        return
    answers = {}
    with torch.no_grad():
        for job in json.loads(Path(argv[1]).read_text()):
            reference = load(job["module"], f"reference_{Path(job['module']).stem}")
            graphs = json.loads(Path(job["trace"]).read_text())["graphs"]
            try:
                candidate = load(job["candidate"], f"candidate_{Path(job['candidate']).stem}")
                found = problem(reference, candidate, graphs, strided=False)
                found = found or problem(reference, candidate, graphs, strided=True)
            except Exception as error:  # noqa: BLE001 - a candidate may raise anything, and the test shows it
                found = f"{type(error).__name__}: {error}"
            answers[job["name"]] = found
    print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
