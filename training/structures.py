"""Which structures the sources of a set have, as shares: what one set of kernels has and another lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cudaperf_agent.errors import ConfigError

_VECTORS = r"\b(?:float|int|uint|double|uchar|char|short|ushort|longlong|ulonglong)[234]\b"
_LOCAL = (
    r"^ +(?:const |__align__\(\d+\) )*(?:unsigned )?(?:float|int|double|char|short|uint\d+_t|unsigned)"
    r" \w+\[[^\]\n]+\](?: =|;|,)"
)


def _has(pattern: str) -> Callable[[Mapping[str, Any]], bool]:
    found = re.compile(pattern, re.MULTILINE)
    return lambda row: found.search(row["source"]) is not None


STRUCTURES: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "two launches or more": lambda row: row["kernels"] >= 2,
    "three launches or more": lambda row: row["kernels"] >= 3,
    "a temporary buffer": _has("cudaMalloc"),
    "shared memory": _has("__shared__"),
    "barriers of a block": _has("__syncthreads"),
    "shuffles or ballots": _has("__shfl|__ballot|__reduce_"),
    "vector types": _has(_VECTORS),
    "atomics": _has(r"\batomic"),
    "arrays of a thread": _has(_LOCAL),
    "unrolling asked for": _has("#pragma unroll"),
    "launch bounds": _has("__launch_bounds__"),
    "`__restrict__`": _has("__restrict__"),
    "memset or copies": _has("cudaMem(?:set|cpy)"),
}
"""Tests of a row with ``source`` and ``kernels``, by name."""


def structures(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Share of the sources that have each of `STRUCTURES`.

    Raises:
        ConfigError: There are no rows.
    """
    kept = list(rows)
    if not kept:
        raise ConfigError("there are no sources to look at", hint="`cudaperf dataset export` makes them")
    return {name: sum(test(row) for row in kept) / len(kept) for name, test in STRUCTURES.items()}


def structures_markdown(sets: Mapping[str, Iterable[Mapping[str, Any]]]) -> str:
    """A table of `structures`, a column per set."""
    columns = {name: structures(rows) for name, rows in sets.items()}
    lines = ["| sources with | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(f"{c[name]:.2f}" for c in columns.values()) + " |" for name in STRUCTURES]
    return "\n".join(lines) + "\n"
