"""A user's folder of ``.c`` files, or of pairs of ``NAME.c`` and a hand-written ``NAME.cu``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cudaperf_agent.errors import UsageError, reading_hint
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.evaluation.suite import Item, Suite


def c_suite(folder: Path) -> Suite:
    """The ``.c`` files of a folder in the order of their names.

    A subfolder is a group of its own. Where a ``.cu`` file of the same name lies beside the C, it is judged by the
    same rules and reported as the baseline ``hand``.

    Raises:
        UsageError: A file cannot be read.
    """
    groups = sorted({path.parent for path in folder.rglob("*.c")})
    items = [item for group in groups for item in c_items(group, group_name(folder, group))]
    pairs = sum(bool(item.hand) for item in items)
    notes = (f"{pairs} of {len(items)} tasks come with a hand-written kernel.",) if pairs else ()
    return Suite(str(folder), tuple(items), notes)


def c_items(folder: Path, group: str, *, packaged: bool = False) -> tuple[Item, ...]:
    """The items of the C files that lie directly in `folder`; of `packaged` ones, messages do not tell where it is."""
    items = []
    for path in sorted(folder.glob("*.c")):
        hand = path.with_suffix(".cu")
        key = f"{group}/{path.stem}"
        text = read(path)
        load = partial(_load, Path(f"{key}.c"), text) if packaged else partial(_load, path, None)
        items.append(Item(key, group, key, text, load, read(hand) if hand.is_file() else ""))
    return tuple(items)


def group_name(root: Path, folder: Path) -> str:
    """A readable, unique name: the path below the suite's folder, or that folder's own name."""
    inner = folder.relative_to(root).as_posix()
    return inner if inner != "." else (root.resolve().name or "suite")


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        why = f"the file cannot be read: {error.strerror}"
        raise UsageError(why, where=str(path), hint=reading_hint(error)) from None


def _load(path: Path, text: str | None) -> Task:
    return load_task(path, source=text)
