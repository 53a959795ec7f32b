"""The transfer set: C tasks and CUDA kernels written by hand, apart from the families, the generator and the features.

``training/data/transfer`` has ``NAME.c``, its kernels as ``NAME/NN_what.cu`` (the first is the plain one, which others
are compared with), and ``sizes.json``: the timed size by name. Nothing here is learned from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.tasks.parse import load_task
from training.dataset.variants import DataVariant

FOLDER = Path(__file__).resolve().parent.parent / "data" / "transfer"
PREFIX = "transfer/"
"""What the names of these tasks begin with wherever tasks are named."""
ORIGIN = "hand"


@dataclass(frozen=True, slots=True)
class HandWritten:
    """A task of the transfer set.

    Attributes:
        name: ``transfer/NAME``.
        source: The C text.
        entry: Name of its entry function.
        sizes: Integer parameters of the timed size.
        kernels: The plain kernel first.
    """

    name: str
    source: str
    entry: str
    sizes: dict[str, int]
    kernels: tuple[DataVariant, ...]


def is_hand_written(name: str) -> bool:
    """Whether a task's name is one of the transfer set's."""
    return name.startswith(PREFIX)


def transfer_names(folder: Path = FOLDER) -> list[str]:
    """All tasks, in alphabetical order."""
    return [PREFIX + path.stem for path in sorted(folder.glob("*.c"))]


def hand_written(name: str, folder: Path = FOLDER) -> HandWritten:
    """One task with its kernels.

    Raises:
        ConfigError: There is no such task, or it has no size or no kernels.
    """
    stem = name.removeprefix(PREFIX)
    path = folder / f"{stem}.c"
    if not path.is_file():
        raise ConfigError(f"there is no hand-written task {stem}", where=str(path), hint="see training/data/transfer")
    sizes = json.loads((folder / "sizes.json").read_text())
    files = sorted((folder / stem).glob("*.cu"))
    if stem not in sizes or not files:
        raise ConfigError(
            f"{stem} has no {'kernels' if stem in sizes else 'size'}",
            where=str(path),
            hint="add NAME/01_plain.cu, …, and a line to sizes.json",
        )
    kernels = tuple(
        DataVariant(file.stem, {}, file.read_text(), ORIGIN, file.stem, naive=number == 0)
        for number, file in enumerate(files)
    )
    return HandWritten(PREFIX + stem, path.read_text(), stem, sizes[stem], kernels)


def contained(source: str) -> str:
    """`source` with its macros undefined at its end: several sources are compiled as one file."""
    names = dict.fromkeys(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", source, re.MULTILINE))
    return "\n".join([source, *(f"#undef {name}" for name in names), ""])


def transfer_lines(names: Sequence[str] | None = None, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Tasks with their kernels and φ, in the form of `build.task_line`. Each task is a family of its own."""
    from cudaperf_agent.features.extract import extract

    lines = []
    for name in transfer_names(folder) if names is None else names:
        program = hand_written(name, folder)
        variants = []
        for kernel in program.kernels:
            features = extract(kernel.source)
            variants.append(
                {
                    **asdict(kernel),
                    "variant": kernel.digest,
                    "phi": list(features.vector),
                    "extended": features.extended,
                    "missing": list(features.missing),
                }
            )
        lines.append(
            {
                "task": name,
                "family": program.entry,
                "member": 0,
                "area": "hand-written",
                "entry": program.entry,
                "source": program.source,
                "sizes": program.sizes,
                "digest": load_task(source=program.source, entry=program.entry).digest,
                "variants": variants,
            }
        )
    return lines
