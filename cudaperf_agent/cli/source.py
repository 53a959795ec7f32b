"""What the user names: a C or Python file, its flags and other texts, read and understood; nothing is run here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudaperf_agent.errors import UsageError, reading_hint

if TYPE_CHECKING:
    from cudaperf_agent.tasks.model import Task
    from cudaperf_agent.tasks.modules.spec import ModuleMode


@dataclass(frozen=True, slots=True)
class Source:
    """What to translate.

    Attributes:
        path: The C file, or the Python file with a PyTorch module; `None` for C text that came by standard input.
        text: Its text, where it is not to be read from `path`.
        entry: The function, where the file leaves it open.
        spec: A file that says what a ``cudaperf:`` comment could say.
        stdin_files: Example inputs for a file with ``main``.
        include_dirs, defines: As for the C compiler's ``-I`` and ``-D``.
        class_name, inputs: The module's class, and the shapes of its inputs where the file does not give any.
        mode: What a candidate for a module may call: ``pure-cuda`` or ``libraries-allowed``.
        dtypes: Element types that a module is tested in, where not in its own.
    """

    path: Path | None = None
    text: str | None = None
    entry: str | None = None
    spec: Path | None = None
    stdin_files: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    class_name: str | None = None
    inputs: str | None = None
    mode: ModuleMode = "pure-cuda"
    dtypes: tuple[str, ...] = ()


def read_task(source: Source) -> Task:
    """Understand the C, or the Python, without running it.

    Raises:
        UsageError: A flag is for the other kind of file.
    """
    from cudaperf_agent.tasks.modules.find import is_module_file, load_module_task
    from cudaperf_agent.tasks.parse import load_task

    if source.path is not None and is_module_file(source.path):
        _refuse_flags(
            {"--entry": source.entry, "--spec": source.spec, "--stdin": source.stdin_files, "-I": source.include_dirs},
            "is for C files",
        )
        return load_module_task(
            source.path,
            source=source.text,
            class_name=source.class_name,
            inputs=source.inputs,
            mode=source.mode,
            dtypes=source.dtypes,
        )
    _refuse_flags(
        {"--class": source.class_name, "--inputs": source.inputs, "--dtype": source.dtypes},
        "is for PyTorch modules, in files that end in .py",
    )

    return load_task(
        source.path,
        source=source.text,
        entry=source.entry,
        spec=source.spec,
        stdin_files=source.stdin_files,
        include_dirs=source.include_dirs,
        defines=source.defines,
    )


def _refuse_flags(given: Mapping[str, object], why: str) -> None:
    flag = next((name for name, value in given.items() if value), None)
    if flag is not None:
        raise UsageError(f"{flag} {why}", where=flag, hint="Leave it out.")


def read_text(path: Path, what: str) -> str:
    """The text of a file that the user named.

    Raises:
        UsageError: It cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        hint = "Name a text file, or convert it, e.g. iconv -f latin1 -t utf-8 FILE."
        raise UsageError(f"{what} is not UTF-8 text", where=str(path), hint=hint) from None
    except OSError as error:
        why = f"{what} cannot be read: {(error.strerror or str(error)).lower()}"
        raise UsageError(why, where=str(path), hint=reading_hint(error)) from None
