"""A candidate, run in a process of its own: builds ``ModelNew``, calls it on every case, hands back raw bytes.

`supervise` makes the process. Reads ``request.json``, ``inputs.bin`` and ``state.bin``; appends a line to
``results.jsonl`` and bytes to ``outputs.bin`` for every case, so that what came back before a crash counts. It judges
nothing: right outputs are never in this process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from .contents import laid_out
from .emulated import EmulatedDevice, pretend_cuda
from .real import RealDevice
from .wire import NAMES, SHORT, Reader, Writer, decode, nested, raw_bytes, read_json

FILE_NAME = "model_new.py"
CLASS_NAME = "ModelNew"
Device = EmulatedDevice | RealDevice


class Run:
    """One process's work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.request = read_json(folder / "request.json")
        self.results = (folder / "results.jsonl").open("w")
        self.outputs = Writer(folder / "outputs.bin")
        self.inputs = Reader(folder / "inputs.bin")
        self.states = Reader(folder / "state.bin")
        self.models: dict[str, torch.nn.Module] = {}
        self.previous: list[Any] = []
        self.clock = {"began": time.monotonic()}
        self.device = self._device()
        self._lap("device")

    def _device(self) -> Device:
        os.environ["CUDAPERF_KERNELS"] = str(self.request["kernels"])
        fill = self.request["fill"]
        if self.request["runtime"] is None:
            return RealDevice(fill, self.request["device"])
        device = EmulatedDevice(self.request["runtime"], fill)
        # Loaded before any memory is made: the library's kind decides whether the checker watches.
        for library in self.request["libraries"]:
            ctypes.CDLL(library)
        pretend_cuda()
        return device

    def say(self, **result: Any) -> None:
        """One line of results."""
        self.outputs.flush()
        self.results.write(json.dumps(result) + "\n")
        self.results.flush()

    def _lap(self, name: str) -> None:
        now = time.monotonic()
        self.clock |= {name: now - self.clock["began"], "began": now}

    def all(self) -> None:
        """Import, build and call."""
        log: dict[str, int] = {}
        try:
            with self.device.working(log):
                kind = self._imported()
        except Exception as error:  # the candidate's own code runs here
            self.say(stage="import", **_blamed(error))
            return
        self._lap("import")
        for index, case in enumerate(self.request["cases"]):
            try:
                if case["dtype"] not in self.models:
                    with self.device.working({}):
                        self.models[case["dtype"]] = self._built(kind, case["dtype"])
            except Exception as error:
                self.say(stage="build", case=index, **_blamed(error))
                return
            self._called(index, case)
        self._lap("cases")
        if self.request["timeline"] and self.request["cases"]:
            self._traced(self.request["cases"][-1])
            self._lap("timeline")
        self.say(stage="clock", seconds=self.clock)

    def _traced(self, case: dict[str, Any]) -> None:
        """Names of what ran on the device in one more call, as the profiler saw it; none if it could not look."""
        arguments = self._arguments({**case, "over_previous": False})
        try:
            assert isinstance(self.device, RealDevice)
            with torch.no_grad():
                names = self.device.activities(lambda: self.models[case["dtype"]](*arguments))
        except Exception as error:
            self.say(stage="timeline", names=[], error=f"{type(error).__name__}: {error}"[:400])
            return
        self.say(stage="timeline", names=names)

    def _imported(self) -> Any:
        spec = importlib.util.spec_from_file_location("model_new", self.folder / FILE_NAME)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["model_new"] = module
        spec.loader.exec_module(module)
        kind = getattr(module, CLASS_NAME, None)
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
            raise TypeError(f"{CLASS_NAME} is no torch.nn.Module")
        return kind

    def _built(self, kind: Any, dtype: str) -> torch.nn.Module:
        positional, named = decode(self.request["init"])
        model: torch.nn.Module = kind(*positional, **named)
        model = model.eval().to(NAMES[dtype])
        state = {name: self.states.get(entry) for name, entry in self.request["state"][dtype].items()}
        own = {name: [SHORT.get(t.dtype, str(t.dtype)), list(t.shape)] for name, t in model.state_dict().items()}
        self.say(stage="state", dtype=dtype, state=own)
        model.load_state_dict(state)
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    parameter.data = self.device.put(parameter.data)
                    assert module._parameters[name] is parameter
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = self.device.put(buffer)
        return model

    def _arguments(self, case: dict[str, Any]) -> list[Any]:
        """The inputs on the device: in new memory, or written over those of the case before."""
        fresh = [self.inputs.get(entry) if entry else None for entry in case["inputs"]]
        values = case["values"]
        found = []
        for index, tensor in enumerate(fresh):
            if tensor is None:
                found.append(decode(values[index]))
                continue
            over = case["over_previous"]
            placed = self.previous[index] if over else laid_out(tensor, case["layout"], self._memory)
            placed.copy_(tensor)
            self.device.written(placed)
            found.append(placed)
        self.previous = found
        return found

    def _memory(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        return self.device.empty(shape, dtype)

    def _called(self, index: int, case: dict[str, Any]) -> None:
        arguments = self._arguments(case)
        self.device.refresh()
        self.device.report()
        log: dict[str, int] = {}
        started = time.perf_counter()
        try:
            with self.device.working(log), torch.no_grad():
                result = self.models[case["dtype"]](*arguments)
                self.device.finish()
            seconds = time.perf_counter() - started
            leaves = [self._leaf(name, value) for name, value in nested(result)]
        except Exception as error:
            self.say(stage="case", case=index, operators=log, report=self.device.report(), **_blamed(error))
            return
        after = [
            {"index": i, **self.outputs.put_raw(raw_bytes(self.device.take(a)), SHORT[a.dtype], list(a.shape))}
            for i, a in enumerate(arguments)
            if isinstance(a, torch.Tensor)
        ]
        self.say(
            stage="case",
            case=index,
            seconds=seconds,
            outputs=leaves,
            inputs=after,
            operators=log,
            report=self.device.report(),
        )

    def _leaf(self, name: str, value: Any) -> dict[str, Any]:
        """An output: what it is, and its bytes if it is a plain tensor on the device."""
        about: dict[str, Any] = {"name": name, "type": type(value).__name__}
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            return about
        about["on_device"] = self.device.holds(value)
        if value.dtype not in SHORT or value.layout is not torch.strided:
            return {**about, "dtype": str(value.dtype), "shape": list(value.shape)}
        got = self.device.take(value) if about["on_device"] else value.detach()
        return {**about, **self.outputs.put(got)}


def _blamed(error: BaseException) -> dict[str, Any]:
    frames = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(FILE_NAME)]
    text = (str(error).strip().splitlines() or [""])[0][:400]
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    return {"error": type(error).__name__, "message": text, "line": line or (frames[-1] if frames else 0)}
