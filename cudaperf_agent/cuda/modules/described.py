"""What runs of modules told before, in the cache folder: the same file under the same torch is not run for it again."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.modules.python_child import CHILD
from cudaperf_agent.execution.paths import cache_dir


def place_of(source: str, request: dict[str, Any], tracer: Path) -> Path | None:
    """Where the answer to a request lies, or would; `None` where the version of torch is not known.

    Args:
        source: The module's file.
        request: With all numbers that the answer depends on.
        tracer: The script that runs beside it.
    """
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
    parts = [source, json.dumps(request, sort_keys=True), _programs(tracer), torch, platform.python_version()]
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_dir() / "modules" / f"{key}.json"


def recall(place: Path | None) -> dict[str, Any] | None:
    """The answer that lies there."""
    if place is None:
        return None
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def keep(place: Path | None, answer: dict[str, Any]) -> None:
    """Put an answer there, whole or not at all; where that cannot be done, the module is run again next time."""
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, suffix=".new")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(answer, file)
        os.replace(name, place)


@lru_cache(maxsize=4)
def _programs(tracer: Path) -> str:
    """A digest of what is run with the module."""
    digest = hashlib.sha256()
    for path in [*sorted(CHILD.rglob("*.py")), *([tracer] if tracer.exists() else [])]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
