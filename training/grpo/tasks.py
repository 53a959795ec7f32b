"""What a run learns from, and in which order: fixed by the configuration alone, so that a resumed run goes on alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.grpo.config import RunSection
from training.splits import split_of


@dataclass(frozen=True, slots=True)
class Schedule:
    """Tasks of every step.

    Attributes:
        names: Task names, `per_step` for each step in turn.
        per_step: Tasks of a step.
    """

    names: tuple[str, ...]
    per_step: int

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.names) // self.per_step

    def of_step(self, step: int) -> tuple[str, ...]:
        """The tasks of one step, 0-based."""
        return self.names[step * self.per_step : (step + 1) * self.per_step]


class TaskSet(Mapping[str, Task]):
    """Tasks by name; a task is understood when it is first asked for.

    Args:
        loaders: What gives each task.
    """

    def __init__(self, loaders: Mapping[str, Callable[[], Task]]) -> None:
        self._loaders = dict(loaders)
        self._loaded: dict[str, Task] = {}

    def __getitem__(self, name: str) -> Task:
        if name not in self._loaded:
            self._loaded[name] = self._loaders[name]()
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


def training_tasks(section: RunSection) -> TaskSet:
    """The tasks by name: the named files, or generated programs of the training split.

    Raises:
        ConfigError: A family is unknown or held out, or nothing is left.
    """
    if section.files:
        files = {path.stem: partial(load_task, path) for path in section.files}
        if len(files) < len(section.files):
            raise ConfigError(
                "two files have one name", where="run.files", hint="rename one: the suffix does not count"
            )
        return TaskSet(files)
    from training.dataset.families import FAMILIES, MEMBERS

    known = {family.name: family for family in FAMILIES}
    for name in section.families:
        if name not in known:
            raise ConfigError(f"there is no family {name}", where="run.families", hint="known: " + ", ".join(known))
        if split_of(name, 0) != "train":
            raise ConfigError(f"family {name} is held out", where="run.families", hint="see training/splits.py")
    for member in section.members:
        if not 0 <= member < MEMBERS or split_of("", member) != "train":
            raise ConfigError(f"member {member} is not one to learn from", where="run.members", hint="0 to 5 are")
    programs = [
        family.program(member)
        for family in FAMILIES
        if not section.families or family.name in section.families
        for member in (section.members or range(MEMBERS))
        if split_of(family.name, member) == "train"
    ]
    return TaskSet({p.name: partial(load_task, source=p.source, entry=p.entry) for p in programs})


def make_schedule(names: Sequence[str], section: RunSection, per_step: int) -> Schedule:
    """Whole passes over the tasks, each in an order of its own, cut into steps.

    Raises:
        ConfigError: There are fewer tasks than a step takes.
    """
    names = list(names)
    if len(names) < per_step:
        raise ConfigError(
            f"a step takes {per_step} tasks and there are {len(names)}",
            where="rollout.tasks_per_step",
            hint="name more families or files, or lower it",
        )
    steps = section.steps or section.epochs * len(names) // per_step
    order: list[str] = []
    epoch = 0
    while len(order) < steps * per_step:
        shuffled = [names[i] for i in np.random.default_rng([section.seed, epoch]).permutation(len(names))]
        # A step across two passes takes no task twice: those it has come last in the new pass.
        begun = set(order[len(order) // per_step * per_step :])
        order += sorted(shuffled, key=begun.__contains__)
        epoch += 1
    return Schedule(tuple(order[: steps * per_step]), per_step)
