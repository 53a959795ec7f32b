"""The user's class without its computing: constructor and state kept word for word, every ``forward`` gone."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

NEW_CLASS = "ModelNew"
_KERNELBENCH = frozenset({"get_inputs", "get_init_inputs"})


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What a candidate takes over from the user's file.

    Attributes:
        preamble: Imports and the definitions that the constructor needs, in their order.
        class_text: The class under its new name, with no ``forward`` and none of the methods that only it called.
        parameters: Names of forward's parameters, ``self`` left out.
    """

    preamble: str
    class_text: str
    parameters: tuple[str, ...]


def skeleton(text: str, class_name: str) -> Skeleton:
    """Take a file apart.

    Args:
        text: The user's file.
        class_name: Its module class, which has an ``__init__`` or inherits one.

    Raises:
        ValueError: There is no such class in the text, or its ``forward`` is not a plain method.
    """
    tree = ast.parse(text)
    lines = text.splitlines()
    found = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name), None)
    if found is None:
        raise ValueError(f"there is no class {class_name} at the top level of the file")
    forward = next((n for n in found.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None)
    if forward is None:
        raise ValueError(f"class {class_name} has no forward of its own")
    parameters = tuple(a.arg for a in (*forward.args.posonlyargs, *forward.args.args))[1:]
    kept = _methods_kept(found)
    class_text = _class_text(found, lines, kept)
    needed = _needed(tree, found, kept)
    kept_nodes = [n for n in tree.body if id(n) in needed]
    used = _names([*found.bases, *found.decorator_list, *_members(found, kept)]) | {"torch"}
    for node in kept_nodes:
        parts = [*node.bases, *_members(node, _methods_kept(node))] if isinstance(node, ast.ClassDef) else [node]
        used |= _names(parts)
    preamble: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if _is_used(node, used):
                preamble.append(_segment(node, lines))
        elif id(node) in needed:
            if isinstance(node, ast.ClassDef):
                preamble.append("\n\n" + _class_text(node, lines, _methods_kept(node)) + "\n\n")
            else:
                preamble.append(_segment(node, lines))
    renamed = _renamed(class_text, class_name)
    return Skeleton("\n".join(preamble).strip(), renamed, parameters)


def _is_used(node: ast.Import | ast.ImportFrom, used: set[str]) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return False
    return any((a.asname or a.name.split(".")[0]) in used or a.name == "*" for a in node.names)


def _start(node: ast.stmt) -> int:
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.lineno
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _segment(node: ast.stmt, lines: list[str]) -> str:
    return "\n".join(lines[_start(node) - 1 : node.end_lineno])


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _self_calls(node: ast.AST) -> set[str]:
    return {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}


def _methods_kept(node: ast.ClassDef) -> set[str]:
    """Methods that the constructor reaches; all double-underscore ones but ``__call__``."""
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    kept = {n for n in methods if n.startswith("__") and n.endswith("__") and n != "__call__"}
    todo = list(kept)
    while todo:
        for name in _self_calls(methods[todo.pop()]) & methods.keys() - kept - {"forward"}:
            kept.add(name)
            todo.append(name)
    return kept


def _class_text(node: ast.ClassDef, lines: list[str], kept: set[str]) -> str:
    first = node.body[0]
    head_end = _start(first) - 1
    parts = ["\n".join(lines[_start(node) - 1 : head_end]).rstrip()]
    body = [n for n in node.body if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) or n.name in kept]
    for number, member in enumerate(body):
        gap = "\n\n" if number and isinstance(member, ast.FunctionDef) else "\n"
        parts.append(gap + _segment(member, lines))
    if not body:
        parts.append("\n    pass")
    return "".join(parts)


def _needed(tree: ast.Module, found: ast.ClassDef, kept: set[str]) -> set[int]:
    """Definitions that the kept parts use, and what those use."""
    definitions: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node is not found and node.name not in _KERNELBENCH:
                definitions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in _names(targets):
                definitions[name] = node
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            for name in _bound(node):
                definitions.setdefault(name, node)
    needed: set[int] = set()
    todo: list[ast.AST] = [*found.bases, *found.decorator_list, *_members(found, kept)]
    while todo:
        for name in _names([todo.pop()]) & definitions.keys():
            node = definitions[name]
            if id(node) in needed:
                continue
            needed.add(id(node))
            if isinstance(node, ast.ClassDef):
                todo += [*node.bases, *node.decorator_list, *_members(node, _methods_kept(node))]
            else:
                todo.append(node)
    return needed


def _bound(node: ast.stmt) -> set[str]:
    """Names that come into being inside a compound statement, such as a fallback for an import."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import | ast.ImportFrom):
            found |= {a.asname or a.name.split(".")[0] for a in inner.names}
        elif isinstance(inner, ast.FunctionDef | ast.ClassDef):
            found.add(inner.name)
    return found


def _members(node: ast.ClassDef, kept: set[str]) -> list[ast.stmt]:
    return [n for n in node.body if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) or n.name in kept]


def _renamed(text: str, name: str) -> str:
    """The class's own name replaced wherever it is a name, and nothing in strings or comments."""
    rows = text.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if token.type == tokenize.NAME and token.string == name:
            row, column = token.start
            before = rows[row - 1][:column]
            if not re.search(r"\.\s*$", before):
                rows[row - 1] = before + NEW_CLASS + rows[row - 1][column + len(name) :]
    return "".join(rows)
