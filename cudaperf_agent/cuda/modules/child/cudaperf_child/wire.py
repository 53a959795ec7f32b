"""Tensors between processes: one file of raw bytes, and JSON that says what lies where. Needs torch only."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import torch

NAMES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
SHORT = {dtype: name for name, dtype in NAMES.items()}


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The elements in row-major order."""
    flat = tensor.detach().cpu().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""


def tensor_of(raw: bytes, dtype: str, shape: list[int]) -> torch.Tensor:
    """A tensor with memory of its own."""
    if not raw:
        return torch.empty(shape, dtype=NAMES[dtype])
    return torch.frombuffer(bytearray(raw), dtype=NAMES[dtype]).reshape(shape)


def nested(value: Any, path: str = "output") -> list[tuple[str, Any]]:
    """The leaves of what ``forward`` returns, each with its name: ``output``, ``output[0]``, ``output.loss``."""
    if isinstance(value, tuple | list):
        return [leaf for i, item in enumerate(value) for leaf in nested(item, f"{path}[{i}]")]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in nested(item, f"{path}.{key}")]
    return [(path, value)]


class Writer:
    """Appends tensors to a file; `entry` of each says where it is."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._at = 0

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._at

    def put(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Write a tensor; returns its entry."""
        return self.put_raw(raw_bytes(tensor), SHORT[tensor.dtype], list(tensor.shape))

    def put_raw(self, raw: bytes, dtype: str, shape: list[int]) -> dict[str, Any]:
        """Write bytes that are a tensor's."""
        entry = {"dtype": dtype, "shape": shape, "offset": self._at, "bytes": len(raw)}
        self._file.write(raw)
        self._at += len(raw)
        return entry

    def flush(self) -> None:
        """Make sure that all of it is in the file."""
        self._file.flush()


class Reader:
    """Reads tensors by their entries."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    def get(self, entry: dict[str, Any]) -> torch.Tensor:
        """The tensor of an entry."""
        self._file.seek(entry["offset"])
        return tensor_of(self._file.read(entry["bytes"]), entry["dtype"], entry["shape"])


def read_json(path: Path) -> Any:
    """The JSON of a file."""
    return json.loads(path.read_text())


def write_json(path: Path, value: Any) -> None:
    """Write it in one step: what is there is whole."""
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(value))
    os.replace(temporary, path)


def encode(value: Any) -> Any:
    """A constructor's argument as JSON; tensors become lists.

    Raises:
        TypeError: It is of another kind.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(v) for v in value]}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": {k: encode(v) for k, v in value.items()}}
    if isinstance(value, torch.dtype) and value in SHORT:
        return {"dtype": SHORT[value]}
    if isinstance(value, torch.Tensor) and value.dtype in SHORT:
        return {"tensor": value.tolist(), "dtype": SHORT[value.dtype]}
    raise TypeError(f"an argument of type {type(value).__name__}")


def decode(value: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(decode(v) for v in value["tuple"])
        if "dict" in value:
            return {k: decode(v) for k, v in value["dict"].items()}
        if "tensor" in value:
            return torch.tensor(value["tensor"], dtype=NAMES[value["dtype"]])
        return NAMES[value["dtype"]]
    return value
