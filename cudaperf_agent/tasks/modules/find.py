"""A Python file to a task: the module's class and its inputs, found in the text; nothing of it is imported here."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from pathlib import Path

from cudaperf_agent.errors import InputRefused, UsageError, reading_hint
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.spec import DTYPES, FLOATS, ModuleMode, ModuleSpec
from cudaperf_agent.tasks.parse import with_digest

GET_INPUTS, GET_INIT_INPUTS = "get_inputs", "get_init_inputs"
MOST_ELEMENTS = 1 << 40
"""Of one named input: more than any memory has, so that no such size reaches torch, which cannot count it."""
_TENSOR = re.compile(r"\s*(?P<dtype>\w+)\s*\[(?P<shape>[\d\s,]*)\]\s*")
_SEPARATOR = re.compile(r",(?![^\[]*\])")


def is_module_file(path: Path | None) -> bool:
    """Whether a file to translate is Python."""
    return path is not None and path.suffix == ".py"


def load_module_task(
    path: Path,
    *,
    source: str | None = None,
    class_name: str | None = None,
    inputs: str | None = None,
    mode: ModuleMode = "pure-cuda",
    dtypes: Sequence[str] = (),
) -> Task:
    """Understand a Python file with a PyTorch module, without running it.

    Args:
        path: The file; also the name in messages.
        source: Its text, if it is not to be read.
        class_name: The module's class, where it is not ``Model``.
        inputs: Shapes and types of ``forward``'s arguments, e.g. ``f32[64,128], i64[64]``, where the file has no
            ``get_inputs``.
        mode: What a candidate may call.
        dtypes: Element types to test in, besides the file's own.

    Raises:
        InputRefused: There is no such module in it, or nothing says what its inputs are.
        UsageError: The file, or an argument, cannot be read.
    """
    text = _read(path) if source is None else source
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InputRefused(
            f"this is not Python: {getattr(error, 'msg', error)}",
            where=f"{path}:{line}",
            hint="Mend the line so that `python -m py_compile FILE` accepts the file, then try again.",
        ) from error
    found = _class(tree, class_name, str(path))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if inputs is not None:
        parse_inputs(inputs)
    elif GET_INPUTS not in functions:
        raise InputRefused(
            f"nothing says what the inputs of {found.name} are",
            where=f"{path}:{found.lineno}",
            hint='Name their types and shapes, e.g. --inputs "f32[64,128], i64[64]", or define get_inputs().',
        )
    unknown = next((d for d in dtypes if d not in FLOATS), None)
    if unknown is not None:
        raise UsageError(f"{unknown} is no floating-point type", where="--dtype", hint=f"One of {', '.join(FLOATS)}.")
    spec = ModuleSpec(
        class_name=found.name,
        inputs_from=GET_INPUTS if inputs is None else inputs,
        has_init_inputs=GET_INIT_INPUTS in functions,
        mode=mode,
        dtypes=tuple(dict.fromkeys(dtypes)),
    )
    return with_digest(
        Task(
            name=found.name,
            mode="module",
            source=text,
            path=str(path),
            first_line=found.lineno,
            last_line=found.end_lineno or found.lineno,
            module=spec,
        )
    )


def parse_inputs(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Types and shapes of ``f32[64,128], i64[64]``.

    Raises:
        UsageError: It has another form.
    """
    hint = f'Write e.g. "f32[64,128], i64[64]"; the types are {", ".join(DTYPES)}.'
    found = []
    for part in _SEPARATOR.split(text):
        match = _TENSOR.fullmatch(part)
        if match is None or match["dtype"] not in DTYPES:
            raise UsageError(f"cannot read {part.strip()!r} as a tensor's type and shape", where="--inputs", hint=hint)
        sizes = [s.strip() for s in match["shape"].split(",")] if match["shape"].strip() else []
        if not all(sizes):
            raise UsageError(f"a size is missing in {part.strip()!r}", where="--inputs", hint=hint)
        shape = tuple(int(s) for s in sizes)
        if math.prod(shape) > MOST_ELEMENTS:
            raise UsageError(
                f"{part.strip()!r} has more elements than {MOST_ELEMENTS}", where="--inputs", hint="Name smaller sizes."
            )
        if 0 in shape:
            raise UsageError(
                f"{part.strip()!r} has no elements, so that nothing can be compared",
                where="--inputs",
                hint="Name sizes of at least 1.",
            )
        found.append((match["dtype"], shape))
    return tuple(found)


def _class(tree: ast.Module, name: str | None, path: str) -> ast.ClassDef:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    modules = [c for c in classes if any(isinstance(f, ast.FunctionDef) and f.name == "forward" for f in c.body)]
    wanted = name or "Model"
    found = next((c for c in classes if c.name == wanted), None)
    if found is None and name is None and len(modules) == 1:
        return modules[0]
    if found is None:
        listed = ", ".join(c.name for c in modules) or "none"
        raise InputRefused(
            f"the file has no class {wanted}" if name else "nothing says which class is to be translated",
            where=f"{path}:{modules[0].lineno if modules else 1}",
            hint=f"Name it with --class NAME; classes with a forward: {listed}.",
        )
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputRefused(
            "this is not UTF-8 text", where=str(path), hint="Convert it, e.g. iconv -f latin1 -t utf-8 FILE."
        ) from error
    except OSError as error:
        why = f"cannot read the file: {error.strerror}"
        raise UsageError(why, where=str(path), hint=reading_hint(error)) from error
