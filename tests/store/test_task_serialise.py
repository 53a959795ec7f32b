"""A task survives JSON whole."""

from __future__ import annotations

import json

import pytest

from cudaperf_agent.errors import StoreError
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.serialise import task_from_dict, task_to_dict
from tests.store.store_samples import rich_task


def test_every_field_comes_back() -> None:
    task = rich_task()
    again = task_from_dict(json.loads(json.dumps(task_to_dict(task))))
    assert again == task
    assert again.parameters[1].type.dtype == task.parameters[1].type.dtype


def test_a_program_with_defaults_is_small_and_comes_back() -> None:
    task = Task("main", "program", "int main(void) { return 0; }\n", "<stdin>")
    plain = task_to_dict(task)
    assert set(plain) == {"name", "mode", "source", "path"}
    assert task_from_dict(plain) == task


@pytest.mark.parametrize(
    "change",
    [{"colour": 1}, {"mode": "poem"}, {"first_line": "one"}, {"parameters": [{"name": "n"}]}, {"source": None}],
)
def test_what_is_not_a_task_of_this_version_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        task_from_dict({**task_to_dict(rich_task()), **change})
