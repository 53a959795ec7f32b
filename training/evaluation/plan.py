"""The plan of an evaluation and where it is kept: a file beside the store, so that the same command goes on."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import StoreError, UsageError
from cudaperf_agent.execution.paths import data_dir
from cudaperf_agent.store.claims import claim
from training.evaluation.suite import Suite

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_ID_LETTERS = 14
SEED_STRIDE = 10_000
"""Seed s of an evaluation samples its trajectories with s · this and the numbers after it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is evaluated, and how; a plan that is gone on with must have the same.

    Attributes:
        suite: Name or path.
        policy: As given to ``--policy``.
        n: Trajectories per task and seed.
        turns: Most turns of a trajectory.
        seeds: How many.
        limit: Most tasks; `None` for all.
    """

    suite: str
    policy: str
    n: int
    turns: int
    seeds: int
    limit: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("n", SEED_STRIDE), ("turns", 5), ("seeds", SEED_STRIDE)):
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(f"{name} is {getattr(self, name)}", where=f"--{name}", hint=f"from 1 to {most}")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"limit is {self.limit}", where="--limit", hint="at least 1, or leave it out")


@dataclass(slots=True)
class Plan:
    """One evaluation.

    Attributes:
        name: Of the evaluation.
        settings: What it was begun with.
        policy: Name of the policy as the store knows it.
        backend: ``gpu`` or ``emulator``.
        notes: Sentences for the reader of a report.
        tasks: By key: ``digest`` of the suite's item, ``group``, ``family``, ``facts``, ``hand`` (whether there is
            one), and once known ``task`` (digest of the task) or ``refused``, and ``given``: how each trajectory's
            kernel did on the benchmark's own cases.
    """

    name: str
    settings: Settings
    policy: str
    backend: str
    notes: tuple[str, ...] = ()
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run_id(self, key: str, seed: int | str) -> str:
        """Id of the run of a task and seed (or ``hand``) in the store: the same whenever it is asked for."""
        told = json.dumps([self.name, asdict(self.settings), self.backend, key, seed, self.tasks[key]["digest"]])
        return "ev" + hashlib.sha256(told.encode()).hexdigest()[:_ID_LETTERS]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """The inverse of `to_dict`."""
        known = {f.name for f in fields(Settings)}
        settings = Settings(**{k: v for k, v in data["settings"].items() if k in known})
        return cls(**{**data, "settings": settings, "notes": tuple(data["notes"])})


def new_plan(name: str, settings: Settings, suite: Suite, policy: str, backend: str, notes: tuple[str, ...]) -> Plan:
    """A plan with nothing done."""
    tasks = {
        item.key: {
            "digest": item.digest, "group": item.group, "family": item.family, "facts": item.facts,
            "hand": bool(item.hand),
        }
        for item in suite.items
    }  # fmt: skip
    return Plan(name, settings, policy, backend, notes, tasks)


class Plans:
    """The plans in a folder.

    Args:
        folder: Where they lie; ``evaluations`` in the data folder where left out.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_dir() / "evaluations"

    def path(self, name: str) -> Path:
        """The file of a plan.

        Raises:
            UsageError: It is no name.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"`{name}` is no name of an evaluation", where="--out", hint="letters, digits, dots and dashes"
            )
        return self.folder / f"{name}.json"

    def names(self) -> tuple[str, ...]:
        """Of all plans."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.json")))

    def load(self, name: str) -> Plan | None:
        """The plan of a name, `None` if there is none.

        Raises:
            StoreError: The file cannot be read.
        """
        path = self.path(name)
        if not path.exists():
            return None
        try:
            return Plan.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the evaluation cannot be read: {error}", where=str(path), hint="choose another --out NAME"
            ) from error

    @contextmanager
    def claim(self, name: str) -> Iterator[None]:
        """Hold an evaluation while working on it, from before its plan is loaded.

        Raises:
            UsageError: It is no name.
            StoreError: Another process is at work on it, or the folder cannot be written.
        """
        path = self.path(name)
        refusal = StoreError(
            f"another process is at work on the evaluation {name}",
            where=str(path),
            hint=f"Wait until it has ended, or stop it: the same command then goes on. Beside it: --out {name}-2",
        )
        self._make_folder(path)
        with claim(self.folder / "plans", name, refusal):
            yield

    def _make_folder(self, path: Path) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_written(path, error) from error

    def save(self, plan: Plan) -> None:
        """Write it, whole or not at all.

        Raises:
            StoreError: The file cannot be written.
        """
        path = self.path(plan.name)
        new = path.with_suffix(".new")
        self._make_folder(path)
        try:
            with new.open("w", encoding="utf-8") as file:
                json.dump(plan.to_dict(), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> StoreError:
    return StoreError(f"the evaluation cannot be written: {error.strerror}", where=str(path))


def check_same(plan: Plan, settings: Settings, suite: Suite, policy: str, backend: str) -> None:
    """That a stored plan may be gone on with.

    Raises:
        UsageError: It was begun with other settings, another suite, another policy or on another machine.
    """
    other = f"choose another name: --out {plan.name}-2"
    for name, old in asdict(plan.settings).items():
        new = getattr(settings, name)
        if new != old:
            raise UsageError(f"{plan.name} was begun with {name} {old}, not {new}", where="--out", hint=other)
    if plan.policy != policy:
        raise UsageError(f"{plan.name} was begun with {plan.policy}, not {policy}", where="--out", hint=other)
    if plan.backend != backend:
        raise UsageError(f"{plan.name} was begun on the {plan.backend}, not the {backend}", where="--out", hint=other)
    if {item.key: item.digest for item in suite.items} != {k: t["digest"] for k, t in plan.tasks.items()}:
        raise UsageError(f"the suite has changed since {plan.name} was begun", where=suite.name, hint=other)
