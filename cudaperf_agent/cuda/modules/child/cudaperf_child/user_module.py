"""The user's file, imported, and its module made and called; what it gets wrong is refused with a remedy."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from .wire import NAMES, SHORT, nested


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
        with self.blamed("importing the file", "import", 1):
            spec = importlib.util.spec_from_file_location("cudaperf_user_module", self.file)
            assert spec is not None
            assert spec.loader is not None
            self.namespace = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = self.namespace
            spec.loader.exec_module(self.namespace)
        self.kind = getattr(self.namespace, request["class_name"], None)
        if not (isinstance(self.kind, type) and issubclass(self.kind, torch.nn.Module)):
            raise Refused(f"{request['class_name']} is no torch.nn.Module", "class")
        with self.blamed("get_init_inputs()", "init", self.line_of("get_init_inputs")):
            torch.manual_seed(0)
            made = self.namespace.get_init_inputs() if request["has_init_inputs"] else []
        self.positional, self.named = _arguments(made)

    def inputs(self) -> list[Any]:
        """What ``get_inputs`` gives, or tensors of the shapes that the user named."""
        if self.request["named_inputs"]:
            with self.blamed(f"making inputs {self.request['inputs_text']}", "inputs_flag"):
                return [_named(dtype, shape) for dtype, shape in self.request["named_inputs"]]
        line = self.line_of("get_inputs")
        with self.blamed("get_inputs()", "inputs", line):
            torch.manual_seed(0)
            made = self.namespace.get_inputs()
            if not isinstance(made, list | tuple | Iterator):
                kind = "a single tensor" if isinstance(made, torch.Tensor) else f"a value of type {type(made).__name__}"
                raise Refused(f"get_inputs() returns {kind}, not a list of forward's arguments", "inputs", line)
            return list(made)

    def new(self) -> torch.nn.Module:
        """An instance in evaluation mode."""
        assert self.kind is not None
        with self.blamed(f"making {self.request['class_name']}", "init"):
            torch.manual_seed(0)
            return self.kind(*copy.deepcopy(self.positional), **copy.deepcopy(self.named)).eval()

    @contextlib.contextmanager
    def blamed(self, doing: str, kind: str, line: int = 0) -> Iterator[None]:
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
