"""The pool of worked translations for few-shot prompts: read from a file, chosen by likeness, shown by speedup.

One JSON object per line: ``c_source``, ``cuda_source``, ``speedup`` (measured), ``features`` (`loop_features` of the
C), ``digest`` (of the task), ``split``, which must be ``train``: nothing of an evaluation set may reach a prompt, and
``baseline`` (what the speedup is over; may be left out). `example_line` writes such a line; `SHIPPED` is the pool that
comes with the package, made by ``cudaperf dataset pool``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cudaperf_agent.errors import ConfigError, InputRefused, UsageError
from cudaperf_agent.policies.prompts import Example
from cudaperf_agent.policies.similarity import distance, loop_features, spread
from cudaperf_agent.tasks.model import Task

TRAIN = "train"
SHIPPED = Path(__file__).with_name("examples.jsonl")


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Sizes, from the method's §4: five examples out of a shortlist of 20 of a pool of 50.

    Attributes:
        pool: Most entries of a file.
        shortlist: Entries most like the task; the fastest of them are shown.
    """

    pool: int = 50
    shortlist: int = 20


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    c_source: str = Field(min_length=1)
    cuda_source: str = Field(min_length=1)
    speedup: float = Field(gt=0, allow_inf_nan=False)
    features: dict[str, float]
    digest: str
    split: str
    baseline: str = ""


class ExamplePool:
    """Chooses examples for a task; an `ExampleSelector`."""

    def __init__(self, entries: tuple[_Entry, ...], config: PoolConfig | None = None) -> None:
        self._entries = entries
        self._config = config or PoolConfig()
        self._scale = spread([entry.features for entry in entries])

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def load(cls, path: Path, config: PoolConfig | None = None) -> ExamplePool:
        """Read a pool.

        Raises:
            ConfigError: It cannot be read, a line is malformed or not of the training split, or it is too long; names
                ``file:line``.
        """
        config = config or PoolConfig()
        hint = "make the file anew from the training split, or unset prompt.examples"
        try:
            lines = path.expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the examples cannot be read: {error}", where=str(path), hint=hint) from None
        entries = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                entry = _Entry.model_validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                field = ".".join(str(part) for part in first["loc"])
                raise ConfigError(f"not an example: {field} {first['msg']}".strip(), where=place, hint=hint) from None
            if entry.split != TRAIN:
                raise ConfigError(f"an example of the split `{entry.split}`", where=place, hint=hint)
            entries.append(entry)
        if len(entries) > config.pool:
            raise ConfigError(f"{len(entries)} examples, at most {config.pool} make a pool", where=str(path), hint=hint)
        return cls(tuple(entries), config)

    def select(self, task: Task, k: int) -> tuple[Example, ...]:
        """At most `k` examples of the shortlist, best measured speedup first.

        None where the C cannot be analysed. The task's own entry is left out.
        """
        features = loop_features(task)
        if features is None:
            return ()
        others = [e for e in self._entries if e.digest != task.digest and e.c_source.strip() != task.source.strip()]
        near = sorted(others, key=lambda e: distance(features, e.features, self._scale))[: self._config.shortlist]
        best = sorted(near, key=lambda e: -e.speedup)[:k]
        return tuple(Example(e.c_source, e.cuda_source, e.speedup, e.baseline) for e in best)


def example_line(task: Task, cuda_source: str, speedup: float, *, split: str, baseline: str = "") -> str:
    """One line of a pool file.

    Args:
        task: Of the training split.
        cuda_source: A candidate that is correct on the hidden cases.
        speedup: Its measured speedup, above 0.
        split: The task's split.
        baseline: What the speedup is over.

    Raises:
        UsageError: The task is not of the training split.
        InputRefused: The C cannot be analysed.
    """
    if split != TRAIN:
        raise UsageError(f"examples come from the training split, {task.name} is of `{split}`")
    features = loop_features(task)
    if features is None:
        raise InputRefused("the loops of the C cannot be analysed", where=f"{task.path}:{task.first_line}")
    entry: dict[str, Any] = {
        "c_source": task.source,
        "cuda_source": cuda_source,
        "speedup": speedup,
        "features": features,
        "digest": task.digest,
        "split": split,
        "baseline": baseline,
    }
    return json.dumps(entry)
