"""The forms of a PyTorch candidate: CUDA text with launchers (light), or text for torch's ``load_inline``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from cudaperf_agent.codegen.dropin import DropIn
from cudaperf_agent.codegen.modules.loader import with_loader
from cudaperf_agent.tasks.model import Task

ModuleForm = Literal["light", "load_inline"]
CLASS_NAME = "ModelNew"


@dataclass(frozen=True, slots=True)
class CudaText:
    """CUDA in a Python file: the very text that the loader gets, and the file's line that its first line is on."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A PyTorch candidate.

    Attributes:
        source: As it was handed in.
        complete: With the loader put in where it was left out: what a user gets, and what is run.
        form: How its kernels are compiled.
        cuda: Light form: what it loads.
        unread: Line of a ``load_cuda`` whose text is not plain enough to be read without running the file.
    """

    source: str
    complete: str
    form: ModuleForm
    cuda: tuple[CudaText, ...]
    unread: int | None = None


@dataclass(frozen=True, slots=True)
class NoModule:
    """Why a text is no candidate.

    Attributes:
        reason: One sentence.
        kind: It does not parse, it lacks the class, or it has no CUDA of its own.
        line: Where one is to blame.
    """

    reason: str
    kind: Literal["syntax", "class", "cuda"]
    line: int | None = None


def module_files(task: Task, source: str) -> DropIn | None:
    """What a user gets for a candidate: one Python file; `None` if it is no candidate."""
    del task
    file = read_module_file(source)
    return None if isinstance(file, NoModule) else DropIn(file.complete, None, file.form)


def read_module_file(source: str) -> ModuleFile | NoModule:
    """Understand a candidate without running it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return NoModule(f"this is not Python: {getattr(error, 'msg', error)}", "syntax", getattr(error, "lineno", None))
    if not any(isinstance(node, ast.ClassDef) and node.name == CLASS_NAME for node in tree.body):
        return NoModule(f"the file does not define the class {CLASS_NAME}", "class")
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "load_cuda"]
    inline = any(isinstance(node, ast.Call) and _called(node) in ("load_inline", "load") for node in ast.walk(tree))
    if not loads:
        if inline:
            return ModuleFile(source, source, "load_inline", ())
        return NoModule("the file has no CUDA of its own: it calls neither load_cuda nor load_inline", "cuda")
    constants = _constants(tree)
    found: dict[str, CudaText] = {}
    unread = None
    for node in loads:
        value = _folded(node.args[0], constants) if len(node.args) == 1 and not node.keywords else None
        if value is None:
            unread = node.lineno
        else:
            found.setdefault(value.text, value)
    return ModuleFile(source, with_loader(source), "light", tuple(found.values()), unread)


def _called(node: ast.Call) -> str:
    function = node.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _constants(tree: ast.Module) -> dict[str, CudaText]:
    """Names of the file that are assigned one text, once."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
            assigned.setdefault(node.target.id, []).extend([node.value] * (2 if isinstance(node, ast.AugAssign) else 1))
    found: dict[str, CudaText] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            value = _folded(node.value, found) if len(assigned[name]) == 1 else None
            if value is not None:
                found[name] = value
    return found


def _folded(node: ast.expr, constants: dict[str, CudaText]) -> CudaText | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return CudaText(node.value, node.lineno)
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _folded(node.left, constants), _folded(node.right, constants)
        return CudaText(left.text + right.text, left.line) if left and right else None
    return None
