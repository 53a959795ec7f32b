"""The module to translate, run in a process of its own: what it takes, and what it gives for the inputs of a case.

``python -I -c BOOTSTRAP reference FOLDER``: reads ``request.json``, writes ``response.json`` and files of tensors. An
error that the user can mend is ``{"refused": sentence, "kind": of `REMEDIES`, "line": n}``.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from .contents import generator, inputs_of, laid_out, moved, state_of
from .summation import AnyOrder
from .wire import NAMES, SHORT, Writer, decode, encode, nested, read_json, write_json

FINITE_SHARE = 0.95
FEW = 4


class Refused(Exception):
    """The module cannot be a task: a sentence, the kind of remedy, and the line of the file (0: that of the class)."""

    def __init__(self, message: str, kind: str, line: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line


class Module:
    """The user's file, imported, and instances of its class."""

    def __init__(self, request: dict[str, Any], folder: Path) -> None:
        self.request = request
        self.file = folder / "module.py"
        with self._blamed("importing the file", "import", 1):
            spec = importlib.util.spec_from_file_location("cudaperf_user_module", self.file)
            assert spec is not None
            assert spec.loader is not None
            self.namespace = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = self.namespace
            spec.loader.exec_module(self.namespace)
        self.kind = getattr(self.namespace, request["class_name"], None)
        if not (isinstance(self.kind, type) and issubclass(self.kind, torch.nn.Module)):
            raise Refused(f"{request['class_name']} is no torch.nn.Module", "class")
        with self._blamed("get_init_inputs()", "init", self.line_of("get_init_inputs")):
            torch.manual_seed(0)
            made = self.namespace.get_init_inputs() if request["has_init_inputs"] else []
        self.positional, self.named = _arguments(made)

    def inputs(self) -> list[Any]:
        """What ``get_inputs`` gives, or tensors of the shapes that the user named."""
        if self.request["named_inputs"]:
            with self._blamed(f"making inputs {self.request['inputs_text']}", "inputs_flag"):
                return [_named(dtype, shape) for dtype, shape in self.request["named_inputs"]]
        line = self.line_of("get_inputs")
        with self._blamed("get_inputs()", "inputs", line):
            torch.manual_seed(0)
            made = self.namespace.get_inputs()
            if not isinstance(made, list | tuple | Iterator):
                kind = "a single tensor" if isinstance(made, torch.Tensor) else f"a value of type {type(made).__name__}"
                raise Refused(f"get_inputs() returns {kind}, not a list of forward's arguments", "inputs", line)
            return list(made)

    def new(self) -> torch.nn.Module:
        """An instance in evaluation mode."""
        assert self.kind is not None
        with self._blamed(f"making {self.request['class_name']}", "init"):
            torch.manual_seed(0)
            return self.kind(*copy.deepcopy(self.positional), **copy.deepcopy(self.named)).eval()

    @contextlib.contextmanager
    def _blamed(self, doing: str, kind: str, line: int = 0) -> Iterator[None]:
        """What is raised inside is the user's to mend: at the line that raised it, or else at `line`."""
        try:
            yield
        except Refused:
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, OSError):
                kind = "sandbox"
            elif isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
                kind = "memory" if kind != "inputs_flag" else kind
            said = f"{doing} fails: {type(error).__name__}: {_first(error)}"
            raise Refused(said, kind, _line(error, str(self.file)) or line) from error

    def line_of(self, function: str) -> int:
        """Where a function of the file begins."""
        code = getattr(getattr(self.namespace, function, None), "__code__", None)
        return int(code.co_firstlineno) if code is not None and code.co_filename == str(self.file) else 0


def _arguments(made: Any) -> tuple[list[Any], dict[str, Any]]:
    """Constructor's arguments: KernelBench gives a list, or a list of positional and a dict of named ones."""
    made = list(made) if isinstance(made, list | tuple) else [made]
    if len(made) == 2 and isinstance(made[0], list) and isinstance(made[1], dict):
        return made[0], made[1]
    return made, {}


def _named(dtype: str, shape: list[int]) -> torch.Tensor:
    kind = NAMES[dtype]
    if kind.is_floating_point:
        return torch.randn(shape).to(kind)
    return torch.randint(0, 2 if kind is torch.bool else 8, shape).to(kind)


def _line(error: BaseException, file: str) -> int:
    frames = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return frames[-1] if frames else 0


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def call(model: torch.nn.Module, arguments: list[Any]) -> list[tuple[str, torch.Tensor]]:
    """Leaves of the result.

    Raises:
        Refused: One of them is no tensor.
    """
    with torch.no_grad():
        result = nested(model(*arguments))
    for name, leaf in result:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype not in SHORT:
            kind = leaf.dtype if isinstance(leaf, torch.Tensor) else type(leaf).__name__
            if arguments and not any(isinstance(a, torch.Tensor) for a in arguments):
                given = ", ".join(dict.fromkeys(type(a).__name__ for a in arguments))
                raise Refused(f"get_inputs() gives no tensor to forward, only {given}", "inputs")
            raise Refused(f"forward returns {name} of type {kind}, which cannot be compared", "output")
    return result


def accepts(model: torch.nn.Module, arguments: list[Any]) -> list[tuple[str, torch.Tensor]] | None:
    """The result if the module takes the arguments, else `None`."""
    try:
        return call(model, arguments)
    except Refused:
        raise
    except (Exception, SystemExit):  # whatever the user's code raises says no
        return None


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
    arguments = _draw(specs, shapes, own, "normal", request["seed"])
    with module._blamed("forward", "forward"):
        first = call(model, arguments)
    fresh = _draw(specs, shapes, own, "normal", request["seed"])
    changed = [i for i, (a, b) in enumerate(zip(arguments, fresh, strict=True)) if not _same(a, b)]
    if changed:
        raise Refused(f"forward of {request['class_name']} changes its input {changed[0]} in place", "in_place")
    again = call(model, fresh)
    if len(first) != len(again) or not all(_same(a, b) for (_, a), (_, b) in zip(first, again, strict=True)):
        said = f"forward of {request['class_name']} gives another result each time, also in evaluation mode"
        raise Refused(said, "random")
    fresh = _draw(specs, shapes, own, "normal", request["seed"])
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
    return json.dumps(tracer.trace_file(str(folder / "module.py"), request["class_name"], request["inputs_text"]))


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


def _draw(
    specs: list[dict[str, Any]], shapes: list[list[int]], dtype: str, contents: str, seed: int, name: str = "probe"
) -> list[Any]:
    return inputs_of({"name": name, "dtype": dtype, "shapes": shapes, "contents": contents}, specs, seed)


def _own(specs: list[dict[str, Any]]) -> str:
    return next((s["dtype"] for s in specs if s.get("floating")), "f32")


Places = list[tuple[int, int]]


class Sizes:
    """Which dimensions of the inputs can change, and how small they must be for a run that takes few operations.

    Equal sizes may mean one thing or several: each is first changed alone, and what is refused alone, together.

    Args:
        model: Asked by calls.
        specs: Of the inputs.
        request: With the numbers.
    """

    def __init__(self, model: torch.nn.Module, specs: list[dict[str, Any]], request: dict[str, Any]) -> None:
        self._model = model
        self._specs = specs
        self._request = request
        self.shapes = [list(s.get("shape", [])) for s in specs]
        self._groups: dict[int, Places] = {}
        for which, shape in enumerate(self.shapes):
            for dimension, size in enumerate(shape):
                self._groups.setdefault(size, []).append((which, dimension))

    def found(self) -> dict[str, Any]:
        """What can change, its least and its largest values, and shapes that take few operations."""
        # First all that can shrink does, the largest first, so that what is asked afterwards is asked at small sizes.
        for size, places in sorted(self._groups.items(), reverse=True):
            if not self._shrink(size, places):
                for place in places:
                    self._shrink(size, [place])
        free: list[dict[str, Any]] = []
        for size, places in self._groups.items():
            alone = [place for place in places if self._can_grow([place])]
            together = [place for place in places if place not in alone]
            for some in [*([place] for place in alone), together]:
                if some and ((len(some) == 1 and some[0] in alone) or self._can_grow(some)):
                    free.append({"size": size, "places": [list(p) for p in some], "least": self._least(some)})
        return {"dimensions": free, "reduced": self._reduce(free)}

    def _taken(self, shapes: list[list[int]]) -> bool:
        arguments = _draw(self._specs, shapes, _own(self._specs), "normal", self._request["seed"])
        return accepts(self._model, arguments) is not None

    def _changed(self, places: Places, size: int) -> list[list[int]]:
        copied = [list(s) for s in self.shapes]
        for which, dimension in places:
            copied[which][dimension] = size
        return copied

    def _shrink(self, size: int, places: Places) -> bool:
        small = self._request["probe"]
        while small < size:
            changed = self._changed(places, small)
            if self._taken(changed):
                self.shapes = changed
                return True
            small *= 2
        return False

    def _can_grow(self, places: Places) -> bool:
        # Never down to 1, which may broadcast without being a size of its own.
        was = self.shapes[places[0][0]][places[0][1]]
        return all(self._taken(self._changed(places, was + more)) for more in (1, 2))

    def _least(self, places: Places) -> int:
        was = self.shapes[places[0][0]][places[0][1]]
        return next(n for n in range(1, was + 1) if n == was or self._taken(self._changed(places, n)))

    def _reduce(self, free: list[dict[str, Any]]) -> int:
        """The largest value of what can change at which all of it is within the budgets; sets the shapes to it."""
        reduced, before = int(self._request["largest"]), self.shapes
        while True:
            shapes = [list(s) for s in before]
            for one in free:
                for which, place in one["places"]:
                    shapes[which][place] = max(one["least"], min(one["size"], reduced))
            small = sum(_count(s) for s in shapes) <= self._request["elements"]
            if reduced <= 1 or (small and self._operations(shapes) <= self._request["operations"]):
                break
            reduced = max(1, reduced * 3 // 4)
        self.shapes = shapes if self._taken(shapes) else before
        return reduced

    def _operations(self, shapes: list[list[int]]) -> int:
        """Multiplications of matrix products and convolutions, plus elements of the outputs."""
        arguments = _draw(self._specs, shapes, _own(self._specs), "normal", self._request["seed"])
        with FlopCounterMode(display=False) as counter:
            result = accepts(self._model, arguments)
        outputs = sum(int(t.numel()) for _, t in result or [])
        return int(counter.get_total_flops()) // 2 + outputs


def _count(shape: list[int]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _open(model: torch.nn.Module, specs: list[dict[str, Any]], shapes: list[list[int]], which: int, seed: int) -> bool:
    """Whether results stay finite when an input leaves the range that was seen."""
    spec = specs[which]
    if not spec.get("floating") or spec["distinct"]:
        return False
    opened = [{**s, "open_range": i == which} for i, s in enumerate(specs)]
    for contents in ("normal", "negative", "large", "zeros"):
        result = accepts(model, _draw(opened, shapes, _own(specs), contents, seed))
        if result is None:
            return False
        finite = [t.isfinite().double().mean().item() for _, t in result if t.is_floating_point() and t.numel()]
        if any(share < FINITE_SHARE for share in finite):
            return False
    return True


def _takes(module: Module, specs: list[dict[str, Any]], shapes: list[list[int]], dtype: str, seed: int) -> bool:
    model = module.new().to(NAMES[dtype])
    return accepts(model, _draw(specs, shapes, dtype, "normal", seed)) is not None


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


def main(folder: Path) -> None:
    """Answer the request of a folder."""
    request = read_json(folder / "request.json")
    answer = {"describe": describe, "expect": expect}[request["do"]]
    try:
        response = answer(request, folder)
    except Refused as error:
        response = {"refused": str(error), "kind": error.kind, "line": error.line}
    write_json(folder / "response.json", response)
