"""From the entry to the launches: which host code runs, which kernels it launches, with which blocks and constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cudaperf_agent.features.clang_cuda import Node, Unit
from cudaperf_agent.features.cursor_kinds import K
from cudaperf_agent.features.environment import Budget
from cudaperf_agent.features.functions import Definition, Definitions
from cudaperf_agent.features.libclang import library
from cudaperf_agent.features.recorder import LaunchSite, Recorder
from cudaperf_agent.features.statements import Walker
from cudaperf_agent.features.symbolic import Poly, Space
from cudaperf_agent.features.values import Other, Value

_STATIC = 3
_DEVICE_SUFFIX = "_device"
_BINDING_PREFIXES = ("pybind_init_", "torch_library_init_")
_FUNCTIONS = frozenset({K.FUNCTION, K.FUNCTION_TEMPLATE})


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions at file scope with a body, by what they are."""

    host: tuple[Node, ...]
    kernels: tuple[Node, ...]
    device: tuple[Node, ...]


def sort_functions(unit: Unit) -> Functions:
    """Sort the functions of a source into host functions, kernels and device functions."""
    host, kernels, device = [], [], []
    for node in unit.top:
        if node.kind not in _FUNCTIONS:
            continue
        tree = unit.tree(node)
        if not any(c.kind == K.COMPOUND for c in tree.children):
            continue
        attributes = {c.kind for c in tree.children}
        if K.GLOBAL_ATTR in attributes:
            kernels.append(tree)
        elif K.DEVICE_ATTR in attributes:
            device.append(tree)
        else:
            host.append(tree)
    return Functions(tuple(host), tuple(kernels), tuple(device))


def find_entries(functions: Functions, names: Iterable[str] = ()) -> tuple[Node, ...]:
    """The host functions that a caller can reach.

    In this order: those named (``NAME`` only where there is no ``NAME_device``, which is what a harness calls);
    ``NAME_device``; what a PyTorch binding names; ``main``; functions of external linkage that no other function of the
    source mentions; all of external linkage.
    """
    by_name = {f.spelling: f for f in functions.host}
    wanted = set(names)
    named = [by_name[n] for n in names if n in by_name and not {n + _DEVICE_SUFFIX} & wanted & by_name.keys()]
    if named:
        return tuple(named)
    device = [f for f in functions.host if f.spelling.endswith(_DEVICE_SUFFIX) and not _is_static(f)]
    if device:
        return tuple(device)
    bound = [f for f in functions.host if f.spelling.startswith(_BINDING_PREFIXES)]
    if bound:
        mentioned = {n.spelling for f in bound for n in f.walk() if n.kind == K.DECL_REF}
        return tuple(f for f in functions.host if f.spelling in mentioned and f not in bound)
    if "main" in by_name:
        return (by_name["main"],)
    external = [f for f in functions.host if not _is_static(f) and f.kind == K.FUNCTION]
    mentions = {f.key: {n.target_key for n in f.walk() if n.kind == K.DECL_REF} for f in functions.host}
    roots = [f for f in external if not any(f.key in seen for key, seen in mentions.items() if key != f.key)]
    return tuple(roots or external)


def _is_static(node: Node) -> bool:
    return bool(library().clang_Cursor_getStorageClass(node.cursor) == _STATIC)


def walk_host(entries: Iterable[Node], definitions: Definitions, budget: Budget) -> Recorder:
    """Walk host code from the entries and note copies and launches."""
    recorder = Recorder()
    for entry in entries:
        definition = definitions.of(entry)
        if definition is None:
            continue
        walker = Walker(Space(), recorder, definitions, budget)
        walker.frames.append(definition)
        walker.this.append(Other())
        walker.walk_body(definition)
    return recorder


@dataclass(frozen=True, slots=True)
class KernelUse:
    """One kernel with what all of its launches have in common.

    Attributes:
        definition: The kernel.
        block, grid: Extents that are the same at every launch, else `None`.
        arguments: Values of integer arguments that are the same number at every launch.
    """

    definition: Definition
    block: tuple[int | None, int | None, int | None]
    grid: tuple[int | None, int | None, int | None]
    arguments: tuple[Value | None, ...]


def merge_launches(sites: Iterable[LaunchSite], definitions: Definitions) -> tuple[KernelUse, ...]:
    """One use per kernel (per template instance), in order of first launch."""
    grouped: dict[int, list[LaunchSite]] = {}
    for site in sites:
        grouped.setdefault(site.kernel.key, []).append(site)
    uses = []
    for group in grouped.values():
        definition = definitions.of(group[0].kernel)
        if definition is None:
            continue
        arguments = []
        for position in range(len(definition.parameters)):
            given = [s.arguments[position] if position < len(s.arguments) else None for s in group]
            numbers = {g.constant if isinstance(g, Poly) else None for g in given}
            arguments.append(given[0] if len(numbers) == 1 and None not in numbers else None)
        uses.append(
            KernelUse(
                definition,
                _common([s.block for s in group]),
                _common([s.grid for s in group]),
                tuple(arguments),
            )
        )
    return tuple(uses)


def _common(extents: list[tuple[int | None, int | None, int | None]]) -> tuple[int | None, int | None, int | None]:
    x, y, z = (axis[0] if len(set(axis)) == 1 else None for axis in zip(*extents, strict=True))
    return x, y, z


def walk_kernel(use: KernelUse, recorder: Recorder, definitions: Definitions, budget: Budget) -> None:
    """Walk one kernel and note what it does."""
    space = Space(use.block, use.grid)
    walker = Walker(space, recorder, definitions, budget)
    for parameter, argument in zip(use.definition.parameters, use.arguments, strict=False):
        if argument is not None and parameter.type().sort == "int":
            walker.variables[parameter.key] = argument
    walker.kernel(use.definition)
