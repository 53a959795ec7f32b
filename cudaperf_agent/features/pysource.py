"""CUDA that lies in the strings of a Python source, laid out so that every line keeps its number."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_CUDA_WORDS = re.compile(r"__global__|__device__|<<<|torch/extension\.h|cuda_runtime\.h|\btorch::Tensor\b")
_PYTHON_WORDS = re.compile(r"^\s*(import \w|from \w[\w.]* import |def \w+\(|class \w+[:(])", re.MULTILINE)
_CUDA_DIRECTIVE = re.compile(r"^\s*#\s*(include|define|pragma|if|ifdef)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EmbeddedCuda:
    """CUDA found in a Python source.

    Attributes:
        text: All of it in one text; line N of it is line N of the Python source.
        entries: Names given as ``functions=[...]`` to ``load_inline``.
        gaps: Lines of f-strings that hold CUDA and could not be read.
    """

    text: str
    entries: tuple[str, ...]
    gaps: tuple[int, ...]


def is_python(source: str) -> bool:
    """Whether a source is Python that holds CUDA, not CUDA itself."""
    if not _PYTHON_WORDS.search(source):
        return False
    if _CUDA_DIRECTIVE.search(source) and not re.search(r"\"\"\"|'''", source):
        return False
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(re.search(r"\"\"\"|'''", source)) and not source.lstrip().startswith(("#include", "//", "/*"))
    return True


def embedded_cuda(source: str) -> EmbeddedCuda | None:
    """The CUDA of a Python source; `None` if the Python does not parse.

    A docstring without CUDA words is left out. In a string that is not raw, a backslash escape stays as written, which
    C reads the same way; only an escaped line end is unescaped.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = source.split("\n")
    out = [""] * len(lines)
    gaps: list[int] = []
    formatted = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [v.value for v in node.values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
            if any(_CUDA_WORDS.search(p) for p in pieces):
                gaps.append(node.lineno)
        elif isinstance(node, ast.Constant) and id(node) not in formatted and _holds_cuda(node.value):
            _lay_out(node, lines, out)
    return EmbeddedCuda("\n".join(out), _bound_names(tree), tuple(gaps))


def _holds_cuda(value: object) -> bool:
    return isinstance(value, str) and bool(_CUDA_WORDS.search(value))


def _lay_out(node: ast.Constant, lines: list[str], out: list[str]) -> None:
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    segment = _between(lines, first, node.col_offset, last, node.end_col_offset or 0)
    body = re.sub(r"^[rRbBuU]*(\"\"\"|'''|\"|')", "", segment)
    body = re.sub(r"(\"\"\"|'''|\"|')$", "", body)
    if "\n" not in body:  # a one-line string: its escapes are real line ends
        body = str(node.value)
        out[first] += " " + body.replace("\n", " ") if "#" not in body else ""
        return
    body = body.replace("\\\\\n", "\\\n")
    for at, line in enumerate(body.split("\n")):
        if first + at < len(out):
            out[first + at] += line


def _between(lines: list[str], first: int, start: int, last: int, end: int) -> str:
    if first == last:
        return lines[first].encode()[start:end].decode("utf-8", "replace")
    head = lines[first].encode()[start:].decode("utf-8", "replace")
    tail = lines[last].encode()[:end].decode("utf-8", "replace")
    return "\n".join([head, *lines[first + 1 : last], tail])


def _bound_names(tree: ast.AST) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "functions":
                    names += [
                        c.value
                        for c in ast.walk(keyword.value)
                        if isinstance(c, ast.Constant) and isinstance(c.value, str)
                    ]
    return tuple(names)
