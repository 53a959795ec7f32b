"""A folder of PyTorch modules in KernelBench's format: `Model`, `get_inputs`, `get_init_inputs`, a task a file.

Levels are groups of their own. The baselines are eager PyTorch and `torch.compile`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.kernelbench import Problem, read_folder
from training.evaluation.suite import Item, Suite
from training.evaluation.suites.folder import read


def module_suite(folder: Path) -> Suite:
    """The modules of a KernelBench checkout, or of any folder of such files, in the order of levels and numbers.

    Raises:
        UsageError: There are no such files.
    """
    items = tuple(_item(problem, folder) for problem in read_folder(folder))
    note = "Candidates may use no library for what the module computes (mode pure-cuda)."
    return Suite(str(folder), items, (note,))


def _item(problem: Problem, folder: Path) -> Item:
    group = f"level{problem.level}" if problem.level is not None else (folder.resolve().name or "suite")
    key = f"{group}/{problem.path.stem}"
    return Item(key, group, key, read(problem.path), partial(_load, problem))


def _load(problem: Problem) -> Task:
    if problem.task is None:
        raise InputRefused(problem.declined, where=str(problem.path))
    return problem.task
