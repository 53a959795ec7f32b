"""Reader of a BabelTower-format file: JSON lines with C, CUDA, a wrapper and cases (Wen et al., ICML 2022; the form is
that of Ke et al., arXiv 2506.11153).

A candidate is judged by our own visible and hidden tests of the C, and beside them by the file's cases, whose sizes
are reported beside ours, since theirs are small. The file's CUDA, joined with its wrapper, is judged by the same rules
as the hand-written kernel. Samples are grouped by task by their key, whatever the order in which they end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from cudaperf_agent.errors import UsageError
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.evaluation.suite import Item, Suite
from training.evaluation.suites.folder import read

FIELDS = ("id", "cpp_code", "cuda_code", "consistent_cpp_inputs", "consistent_cuda_inputs", "cuda_wrapper")
_CALLED = re.compile(r"\bwrapper\s*\(\s*([A-Za-z_]\w*)")
_ARRAY = re.compile(r"\b[A-Za-z_]\w*\s*\[\s*(\d*)\s*\]\s*(?:=\s*\{([^}]*)\}|;)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def babeltower_suite(path: Path) -> Suite:
    """The tasks of the file.

    Raises:
        UsageError: A line is not of the form; names ``file:line``.
    """
    items = []
    for number, line in enumerate(read(path).splitlines(), 1):
        if line.strip():
            items.append(_item(_entry(line, f"{path}:{number}"), path.stem))
    keys = [item.key for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UsageError(f"the id of {twice} comes twice", where=str(path), hint="give every line an id of its own")
    note = (
        "Tests are our own; what passes the file's cases is told beside. Its CUDA with its wrapper is the hand-written "
        "kernel; it allocates and copies itself, so it is timed with host pointers only."
    )
    return Suite(str(path), tuple(items), (note,))


def _entry(line: str, where: str) -> dict[str, Any]:
    form = f"a line is a JSON object with {', '.join(FIELDS)}"
    try:
        data: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error.msg}", where=where, hint=form) from None
    missing = [f for f in FIELDS if not isinstance(data, Mapping) or f not in data]
    if missing:
        raise UsageError(f"{missing[0]} is missing", where=where, hint=form)
    texts = [data["cpp_code"], data["cuda_code"], data["cuda_wrapper"]]
    lists = [data["consistent_cpp_inputs"], data["consistent_cuda_inputs"]]
    whole = all(isinstance(t, str) for t in texts) and all(
        isinstance(group, list) and group and all(isinstance(case, str) for case in group) for group in lists
    )
    if not whole:
        raise UsageError("codes are texts, and inputs are lists of texts with at least one", where=where, hint=form)
    return dict(data)


def _item(entry: Mapping[str, Any], group: str) -> Item:
    name = _called(entry["consistent_cpp_inputs"])
    key = f"{group}/{entry['id']}"
    sizes = [_elements(case) for case in entry["consistent_cpp_inputs"]]
    facts = {"its cases": len(sizes), "its elements": median(sizes)}
    text = entry["cpp_code"].strip() + "\n"
    load = partial(_load, text, name, Path(f"{group}-{entry['id']}.c"))
    given = tuple(entry["consistent_cpp_inputs"]) if name else ()
    return Item(key, group, key, text, load, _hand(entry, name), facts, given, name, our_sizes)


def _load(text: str, name: str, path: Path) -> Task:
    return load_task(path, source=text, entry=name or None)


def our_sizes(task: Task) -> dict[str, Any]:
    """How many hidden cases a task has, and the elements of their largest buffers: the median and the most."""
    sizes = [max((v.size for v in case.values.values() if v.ndim), default=1) for case in make_cases(task, hidden=True)]
    return {"our cases": len(sizes), "our elements": median(sizes), "our most": max(sizes)}


def _called(cases: list[str]) -> str:
    found = _CALLED.search(cases[0])
    return found.group(1) if found else ""


def _elements(case: str) -> int:
    """Elements of the largest array that a case declares."""
    sizes = [1]
    for size, values in _ARRAY.findall(case):
        sizes.append(int(size) if size else values.count(",") + 1)
    return max(sizes)


def _hand(entry: Mapping[str, Any], name: str) -> str:
    """The file's CUDA as a whole-file candidate: kernel, wrapper, and the C's own name in front of the wrapper."""
    wrapper = _called(entry["consistent_cuda_inputs"])
    found = re.search(rf"([A-Za-z_][\w\s*]*?)\b{name}\s*\(([^)]*)\)\s*\{{", entry["cpp_code"]) if name else None
    if not found or not wrapper:
        return ""
    result, parameters = " ".join(found.group(1).split()), found.group(2).strip()
    names = [_WORD.findall(re.sub(r"\[[^\]]*\]", "", p))[-1] for p in parameters.split(",") if _WORD.search(p)]
    call = f"{wrapper}({', '.join(names)})"
    return "\n".join(
        [
            "#include <cmath>",
            "#include <cstdio>",
            "#include <cstdlib>",
            "#include <cuda_runtime.h>",
            # The kernel often has the C's own name, which the last function here must have.
            f"#define {name} {name}_in_cuda",
            entry["cuda_code"],
            entry["cuda_wrapper"],
            f"#undef {name}",
            f'extern "C" {result} {name}({parameters})',
            "{",
            f"    {call};" if result == "void" else f"    return {call};",
            "}",
            "",
        ]
    )
