"""What the Python of a candidate may not name: ways to reach past its own computation, and to change torch itself.

As `cuda.cheats.screen`, a fence and not a proof: what gets past it meets the checks on what was launched, on what
operators ran, and the outputs, which are judged in another process.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.codegen.modules.loader import LOADER, LOADER_FUNCTIONS
from cudaperf_agent.cuda.cheats import Finding
from cudaperf_agent.cuda.cheats import screen as screen_cuda

_IMPORTS = frozenset(
    "__future__ abc collections contextlib ctypes dataclasses enum functools hashlib itertools math numbers operator "
    "os shutil subprocess tempfile textwrap torch typing warnings".split()
)
_WHY = {
    "triton": "kernels are to be CUDA C++",
    "cupy": "kernels are to be CUDA C++ that torch and nvcc are enough for",
    "numba": "kernels are to be CUDA C++",
}
# Parts of torch that look at, or change, what happens around the module.
_TORCH = (
    "torch._C",
    "torch._dynamo",
    "torch._inductor",
    "torch.utils._python_dispatch",
    "torch.utils._pytree",
    "torch.overrides",
    "torch.library",
    "torch.multiprocessing",
    "torch.distributed",
    "torch.profiler",
    "torch.compile",
    "torch.jit",
    "torch.cuda.graphs",
    "torch.cuda.CUDAGraph",
    "torch.backends",
    "torch.set_float32_matmul_precision",
    "torch.load",
    "torch.save",
    "torch.UntypedStorage",
    "torch.Tensor._make_subclass",
    "torch.Tensor._make_wrapper_subclass",
)
_NAMES = frozenset(
    "exec eval compile __import__ globals locals vars open setattr delattr __builtins__ memoryview".split()
)
_ATTRIBUTES = frozenset(
    "__globals__ __code__ __subclasses__ __builtins__ __bases__ __mro__ __torch_function__ __torch_dispatch__ "
    "_getframe f_back f_locals f_globals gi_frame tb_frame pythonapi from_address from_buffer string_at memmove "
    "PyDLL addressof register_forward_hook register_forward_pre_hook register_module_forward_hook "
    "_getCurrentRawStream share_memory_".split()
)
_LOADERS_ONLY = frozenset("os shutil subprocess tempfile hashlib".split())
_OS = frozenset(("os.environ", "os.path", "os.environ.get", "os.environ.setdefault"))
_STRINGS = ("/proc/", "/dev/shm", "cudaperf_", "CUDAPERF", "__subclasses__")


def screen_module(file: ModuleFile) -> Finding | None:
    """The first thing in a candidate that a translation has no use for, `None` if there is none."""
    tree = ast.parse(file.source)
    found = [*_Screen(tree).findings()]
    for part in file.cuda:
        inner = screen_cuda(part.text)
        if inner is not None:
            found.append(Finding(inner.message, part.line + (inner.line or 1) - 1))
    return min(found, key=lambda f: f.line or 0) if found else None


@lru_cache(maxsize=1)
def _loader_functions() -> frozenset[str]:
    return frozenset(ast.dump(node) for node in ast.parse(LOADER).body if isinstance(node, ast.FunctionDef))


class _Screen:
    def __init__(self, tree: ast.Module) -> None:
        # The loader's own functions, word for word, are known; a function of that name with another body is not.
        self._nodes = [
            node
            for top in tree.body
            if not (
                isinstance(top, ast.FunctionDef)
                and top.name in LOADER_FUNCTIONS
                and ast.dump(top) in _loader_functions()
            )
            for node in ast.walk(top)
        ]
        self._aliases = {"torch": "torch"}
        for node in self._nodes:
            if isinstance(node, ast.Import):
                self._aliases |= {
                    a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
                }
            elif isinstance(node, ast.ImportFrom) and node.module:
                self._aliases |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        for node in self._nodes:
            message = self._problem(node)
            if message:
                found.append(Finding(message, getattr(node, "lineno", None)))
        return found

    def _problem(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Import):
            return next((m for a in node.names if (m := _import_problem(a.name))), None)
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            return _import_problem(module) or next(
                (m for a in node.names if (m := _torch_problem(f"{module}.{a.name}"))), None
            )
        if isinstance(node, ast.Name) and node.id in _NAMES:
            return _useless(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute_problem(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = next((s for s in _STRINGS if s in node.value), None)
            return _useless(f"{text}…") if text and "__global__" not in node.value else None
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            return self._patch_problem(node)
        if isinstance(node, ast.ClassDef):
            return self._class_problem(node)
        return None

    def _attribute_problem(self, node: ast.Attribute) -> str | None:
        if node.attr in _ATTRIBUTES:
            return _useless(f".{node.attr}")
        path = self._path(node)
        if path is None:
            return None
        root = path.split(".")[0]
        if root in _LOADERS_ONLY and not any(path == o or path.startswith(o + ".") for o in _OS) and root != "hashlib":
            return _useless(path)
        return _torch_problem(path)

    def _patch_problem(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete) -> str | None:
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        for target in targets:
            path = self._path(target) if isinstance(target, ast.Attribute) else None
            if path is not None and path.split(".")[0] in ("torch", "ctypes", "math", "os", "sys"):
                return f"it changes `{path}`, which is not its own"
        return None

    def _class_problem(self, node: ast.ClassDef) -> str | None:
        for base in node.bases:
            path = self._path(base) if isinstance(base, ast.Attribute | ast.Name) else None
            if path in ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"):
                return f"the class {node.name} is a tensor of its own kind: results are to be plain tensors"
        return None

    def _path(self, node: ast.expr) -> str | None:
        """``torch.nn.functional`` for ``F`` and the like, `None` for what is no name of an import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._aliases:
            return None
        return ".".join([self._aliases[node.id], *reversed(parts)])


def _import_problem(module: str) -> str | None:
    root = module.split(".")[0]
    if root in _WHY:
        return f"it imports {root}: {_WHY[root]}"
    if root not in _IMPORTS:
        return f"it imports {module}, which a translation has no use for"
    return _torch_problem(module)


def _torch_problem(path: str) -> str | None:
    hit = next((t for t in _TORCH if path == t or path.startswith(t + ".")), None)
    return _useless(path) if hit else None


def _useless(name: str) -> str:
    return f"a translation has no use for `{name}`"
