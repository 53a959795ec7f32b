"""Column types and packings: JSON that any SQL database holds as text, and number lists as compact blobs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_LEVEL = 3


class Json(TypeDecorator[Any]):
    """JSON in a text column; ASCII only, so that no text of a model can be unfit for a database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """To text."""
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """From text."""
        return None if value is None else json.loads(value)


def pack_ids(ids: Sequence[int] | None) -> bytes | None:
    """Token ids as deflated little-endian u32."""
    return None if ids is None else zlib.compress(np.asarray(ids, dtype="<u4").tobytes(), _LEVEL)


def unpack_ids(blob: bytes | None) -> tuple[int, ...] | None:
    """The inverse of `pack_ids`."""
    return None if blob is None else tuple(np.frombuffer(zlib.decompress(blob), dtype="<u4").tolist())


def pack_logprobs(values: Sequence[float] | None) -> bytes | None:
    """Log-probabilities as deflated little-endian f32, the precision in which inference engines hold them."""
    return None if values is None else zlib.compress(np.asarray(values, dtype="<f4").tobytes(), _LEVEL)


def unpack_logprobs(blob: bytes | None) -> tuple[float, ...] | None:
    """The inverse of `pack_logprobs`, up to f32 rounding."""
    return None if blob is None else tuple(np.frombuffer(zlib.decompress(blob), dtype="<f4").tolist())
