"""A task as plain JSON-ready values and back, so that a stored run can be resumed without its source file."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, Union

from cudaperf_agent.errors import StoreError
from cudaperf_agent.tasks.model import Task


def task_to_dict(task: Task) -> dict[str, Any]:
    """Plain dicts, lists, strings and numbers; fields that hold their default are left out.

    Args:
        task: Any task.
    """
    plain = _plain(task)
    assert isinstance(plain, dict)
    return plain


def task_from_dict(data: dict[str, Any]) -> Task:
    """The inverse of `task_to_dict`; fields that a newer version wrote and this one lacks are refused.

    Raises:
        StoreError: `data` is not a task as this version knows it.
    """
    try:
        task = _build(Task, data)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the stored task cannot be read: {error}",
            hint="It was written by another version of cudaperf; upgrade, or start the run anew from its C file.",
        ) from error
    assert isinstance(task, Task)
    return task


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {}
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if field.default is dataclasses.MISSING or content != field.default:
                kept[field.name] = _plain(content)
        return kept
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _build(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        if unknown := sorted(set(value) - set(hints)):
            raise ValueError(f"unknown field {unknown[0]!r} of {kind.__name__}")
        return kind(**{name: _build(hints[name], content) for name, content in value.items()})
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, Union):
        if value is None:
            return None
        (wanted,) = (a for a in typing.get_args(kind) if a is not types.NoneType)
        return _build(wanted, value)
    if origin is tuple:
        return tuple(_build(typing.get_args(kind)[0], item) for item in value)
    if origin is Literal:
        if value not in typing.get_args(kind):
            raise ValueError(f"{value!r} is none of {typing.get_args(kind)}")
        return value
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
