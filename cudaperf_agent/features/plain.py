"""What the plain CUDA of a task looks like, against which a structural score is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudaperf_agent.features.model import Features

if TYPE_CHECKING:
    from cudaperf_agent.tasks.model import Task

_KEPT = 1024
_known: dict[str, Features | None] = {}


def plain_features(task: Task) -> Features | None:
    """φ of the plain CUDA that the generator gives for a task; `None` where it has none. Remembered by the task.

    Raises:
        BackendUnavailable: The parser's process cannot be started.
    """
    from cudaperf_agent.codegen.variants import plain_variant
    from cudaperf_agent.features.extract import extract

    if task.digest not in _known:
        if len(_known) >= _KEPT:
            _known.clear()
        plain = plain_variant(task)
        _known[task.digest] = extract(plain.source, entry=task.name) if plain is not None else None
    return _known[task.digest]
