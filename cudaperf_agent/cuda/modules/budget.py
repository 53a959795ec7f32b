"""Raw bytes of tensors as arrays, and the error budget of an output: that of the C tasks, with torch's element types.

What a candidate is measured against is the module in double; how far it may be off follows from how far the module in
its own element type is off, and from how far the double moves when inputs and state move by one unit in the last place.
numpy has no bfloat16, so such an output is held as floats, with bfloat16's spacing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cudaperf_agent.tasks.budget import Builds, ExpectedOutput, Leaf, Precision, expect, float_part
from cudaperf_agent.tasks.model import Value

_NUMPY: dict[str, str] = {
    "f64": "<f8",
    "f32": "<f4",
    "f16": "<f2",
    "i64": "<i8",
    "i32": "<i4",
    "i16": "<i2",
    "i8": "i1",
    "u8": "u1",
    "bool": "?",
}
_BF16 = Precision(eps=2.0**-7, smallest=2.0**-133)


def leaf_of(entry: dict[str, Any], raw: bytes) -> Value:
    """The elements that an entry names, flat; bfloat16 as float.

    Raises:
        ValueError: The bytes are not there, or the entry is of no type that is known.
    """
    size, offset, dtype = int(entry["bytes"]), int(entry["offset"]), str(entry["dtype"])
    if offset < 0 or size < 0 or offset + size > len(raw):
        raise ValueError("bytes are missing")
    if dtype == "bf16":
        bits = np.frombuffer(raw, "<u2", size // 2, offset).astype(np.uint32) << 16
        return bits.view(np.float32)
    if dtype not in _NUMPY:
        raise ValueError(f"an unknown type: {dtype}")
    kind: np.dtype[Any] = np.dtype(_NUMPY[dtype])
    return np.frombuffer(raw, kind, size // kind.itemsize, offset)


def module_output(
    entry: dict[str, Any], plain: Value, wide: Value | None, moved: Sequence[Value], summed: Value | None = None
) -> ExpectedOutput:
    """What an output must be.

    Args:
        entry: Its name and element type.
        plain: As the module gives it.
        wide: As the module in double gives it, if it runs in double.
        moved: The same with moved inputs.
        summed: The same as `wide` with every sum off by what a right order of summation may be off by.
    """
    name = str(entry["name"])
    if plain.dtype.kind != "f":
        return expect(name, plain, Builds(wide=wide, nearest=tuple(m.astype(plain.dtype) for m in moved)))
    precision = _BF16 if entry["dtype"] == "bf16" else None
    wide = wide if wide is not None and wide.dtype.kind == "f" else None
    directed = () if wide is None or summed is None or summed.shape != wide.shape else (summed,)
    part = float_part(Leaf("", plain), wide, (), directed, tuple(moved), precision=precision)
    return ExpectedOutput(name, plain, (part,))
