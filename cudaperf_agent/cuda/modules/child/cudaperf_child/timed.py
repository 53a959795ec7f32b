"""Timed calls of a candidate, of the module itself (eager) and of the module under ``torch.compile``; one per process.

The parent says when: it names the contents, lets them be made, says go, and its own clock runs until the answer. The
time of a call is the host's, from the call of ``forward`` to the end of all work on the device. The pipe to the parent
is moved out of the way before foreign code is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from .candidate import Run
from .contents import generator, inputs_of, state_of
from .expect import widened_inputs
from .real import RealDevice
from .summation import AnyOrder
from .user_module import Module, accepts
from .wire import NAMES, Reader, Writer, decode, nested, read_json, write_json


class Timed:
    """One process's calls.

    Args:
        folder: With the request.
        asked, answers: Descriptors of the pipe.
    """

    def __init__(self, folder: Path, asked: int, answers: int) -> None:
        self._folder = folder
        self._request = read_json(folder / "request.json")
        self._asked = os.fdopen(asked, "r")
        self._answers = os.fdopen(answers, "w")
        self._device = RealDevice(self._request["fill"], self._request["device"])
        self._specs = [dict(s) for s in self._request["inputs"]]
        for spec in self._specs:
            spec["floating"] = spec["kind"] == "tensor" and NAMES[spec["dtype"]].is_floating_point
            spec["decoded"] = decode(json.loads(spec["value"])) if spec["kind"] == "value" else None
        self._outputs = Writer(folder / "outputs.bin")
        self._flushed: torch.Tensor | None = None

    def all(self) -> None:
        """Make the callable, then do as told until told to end."""
        work = self._callable()
        self._say(ready=True, flags=_flags())
        arguments: list[Any] = []
        result: Any = None
        for line in self._asked:
            word, _, number = line.strip().partition(" ")
            if word == "make":
                result = None
                arguments = self._contents(int(number))
                self._device.refresh()
                self._flush()
                self._device.finish()
                self._say(made=True)
            elif word == "go":
                cpu, mine = time.process_time(), time.thread_time()
                started = time.perf_counter()
                with torch.no_grad():
                    result = work(*arguments)
                    self._device.finish()
                seconds = time.perf_counter() - started
                others = (time.process_time() - cpu) - (time.thread_time() - mine)
                self._say(seconds=seconds, others=others)
            elif word == "watch":
                operators: dict[str, int] = {}
                with self._device.working(operators), torch.no_grad():
                    result = work(*arguments)
                    self._device.finish()
                self._say(operators=operators)
            elif word == "keep":
                kept = [self._leaf(name, value) for name, value in nested(result)]
                self._outputs.flush()
                self._say(outputs=kept)
            elif word == "exchange":
                self._say(exchanged=True)
            else:
                return

    def _callable(self) -> Any:
        dtype, who = self._request["dtype"], self._request["who"]
        if who == "candidate":
            run = Run(self._folder)
            return run._built(run._imported(), dtype)
        module = Module(self._request, self._folder)
        model = module.new().to(NAMES[dtype])
        states = Reader(self._folder / "state.bin")
        model.load_state_dict({n: states.get(e) for n, e in self._request["state"][dtype].items()})
        model = model.to(self._device.device)
        return torch.compile(model) if who == "compiled" else model

    def _contents(self, number: int) -> list[Any]:
        case = {"name": f"timed {number}", "dtype": self._request["dtype"], "shapes": self._request["shapes"]}
        made = inputs_of({**case, "contents": "normal"}, self._specs, self._request["seed"])
        return [self._device.put(a) if isinstance(a, torch.Tensor) else a for a in made]

    def _flush(self) -> None:
        size = int(self._request["flush_bytes"])
        if size:
            if self._flushed is None:
                self._flushed = torch.empty(size, dtype=torch.uint8, device=self._device.device)
            self._flushed.add_(1)

    def _leaf(self, name: str, value: Any) -> dict[str, Any]:
        plain = type(value) in (torch.Tensor, torch.nn.Parameter) and self._device.holds(value)
        if not plain:
            return {"name": name, "type": type(value).__name__}
        return {"name": name, **self._outputs.put(self._device.take(value))}

    def _say(self, **answer: Any) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()


def _flags() -> dict[str, Any]:
    """Settings of torch that a time depends on."""
    return {
        "matmul_allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
    }


def answer(folder: Path) -> None:
    """Right outputs at the timed size, and the state, computed on the same device without TF32."""
    request = read_json(folder / "request.json")
    device = torch.device(request["device"])
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    module, dtype = Module(request, folder), request["dtype"]
    specs = [dict(s) for s in request["inputs"]]
    for spec in specs:
        spec["floating"] = spec["kind"] == "tensor" and NAMES[spec["dtype"]].is_floating_point
        spec["decoded"] = decode(json.loads(spec["value"])) if spec["kind"] == "value" else None
    state = state_of(module.new(), request["seed"])
    kept = {n: t.to(NAMES[dtype]) if t.is_floating_point() else t for n, t in state.items()}
    states, outputs = Writer(folder / "state.bin"), Writer(folder / "expected.bin")
    entries = {name: states.put(tensor) for name, tensor in kept.items()}
    plain = _on(module.new().to(NAMES[dtype]), kept, device)
    wide = _on(module.new().double(), {n: widened_inputs(t) for n, t in kept.items()}, device)
    source = generator(request["seed"], "timed", "moved")
    shifted = _on(module.new().double(), {n: widened_inputs(t, source, NAMES[dtype]) for n, t in kept.items()}, device)
    cases: list[dict[str, Any]] = []
    sets = request["sets"]
    while len(cases) < sets:
        number = len(cases)
        case = {"name": f"timed {number}", "dtype": dtype, "shapes": request["shapes"], "contents": "normal"}
        arguments = inputs_of(case, specs, request["seed"])
        builds = {
            "plain": accepts(plain, [_put(a, device) for a in arguments]),
            "wide": accepts(wide, [_put(widened_inputs(a), device) for a in arguments]),
            "moved0": accepts(shifted, [_put(widened_inputs(a, source, NAMES[dtype]), device) for a in arguments]),
        }
        with AnyOrder(generator(request["seed"], case["name"], "summed", 0)):
            # Where the device has no memory for it, the budget is that of the other builds.
            builds["summed"] = accepts(wide, [_put(widened_inputs(a), device) for a in arguments])
        cases.append(
            {
                b: [{"name": n, **outputs.put(t)} for n, t in leaves]
                for b, leaves in builds.items()
                if leaves is not None
            }
        )
        if number == 0:
            # The first tells how large the outputs of all will be.
            sets = min(sets, max(request["fewest"], request["bytes"] // max(1, outputs.size)))
    states.flush()
    outputs.flush()
    write_json(folder / "response.json", {"state": {dtype: entries}, "cases": cases})


def _on(model: torch.nn.Module, state: dict[str, torch.Tensor], device: torch.device) -> torch.nn.Module:
    model.load_state_dict(state)
    return model.to(device)


def _put(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def main(folder: Path) -> None:
    """Answer the request of a folder."""
    if read_json(folder / "request.json")["who"] == "expect":
        answer(folder)
        return
    asked, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin = os.fdopen(nothing)
    Timed(folder, asked, answers).all()
