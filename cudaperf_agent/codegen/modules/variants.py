"""Variants of a PyTorch module: from a traced graph to files with ``ModelNew``, or a decline naming the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudaperf_agent.codegen.modules.emit import emitted
from cudaperf_agent.codegen.modules.glue import CODES, Built, module_file
from cudaperf_agent.codegen.modules.graph import Unsupported, lowered
from cudaperf_agent.codegen.modules.kernels import THRESHOLDS, TILES, Style, Thresholds
from cudaperf_agent.codegen.modules.schedule import scheduled
from cudaperf_agent.codegen.modules.source_text import Skeleton, skeleton
from cudaperf_agent.codegen.modules.tensors import Program
from cudaperf_agent.codegen.variants import Decline, Generation, Variant

STYLES = (
    Style("fused", "Reductions share a kernel with what follows; a thread, warp or block per row by its length."),
    Style("wide", "The same with larger blocks and deeper tiles.", block=512, tile=TILES[1], depth=16),
    Style("warp_rows", "A warp per row.", worker="warp", tile=TILES[3], split="needed"),
    Style("block_rows", "A block per row.", worker="block", tile=TILES[2], depth=16, split="needed"),
    Style("chunks", "Long rows in chunks, a block each.", items=2, split="eager"),
    Style("items4", "Four elements a thread in elementwise kernels.", items=4),
    Style("thread_rows", "A thread per row, with fusion.", worker="thread"),
)
"""What is tried on every module, the likely fastest first."""
NAIVE = Style(
    "naive",
    "A thread per element; every reduction is a kernel of its own.",
    fuse=False,
    worker="thread",
    tile=None,
    split="eager",
)


def generate_module(graph: Mapping[str, Any], *, class_source: str, limits: Thresholds = THRESHOLDS) -> Generation:
    """All variants of a traced module.

    Args:
        graph: What `trace.py` writes.
        class_source: The text of the user's file.
        limits: Numbers behind the choices.

    Returns:
        Variants whose source is a whole Python file, or why there are none: the operator, and its line in the file.
    """
    if "declined" in graph:
        return Generation(declined=_decline(graph["declined"]["what"], graph["declined"]["where"]))
    try:
        base = skeleton(class_source, graph["class"])
        programs = _programs(graph)
        naive = _variant(NAIVE, programs, base, graph, limits)
        seen, found = {_body(naive)}, []
        for style in STYLES:
            made = _variant(style, programs, base, graph, limits)
            if _body(made) not in seen:
                seen.add(_body(made))
                found.append(made)
    except Unsupported as stop:
        return Generation(declined=_decline(stop.what, stop.where))
    except ValueError as stop:
        return Generation(declined=_decline(str(stop), ""))
    return Generation((*found, naive))


def _programs(graph: Mapping[str, Any]) -> list[Program]:
    """A program for each float type that the module was traced in; one where no float goes in."""
    found = [lowered(graph["graphs"][name], name) for name in CODES if name in graph["graphs"]]
    first = found[0]
    typed = any(b.dtype == first.main for b in (*first.inputs, *(b for b, _ in first.state)))
    return found if typed else found[:1]


def _variant(
    style: Style, programs: list[Program], base: Skeleton, graph: Mapping[str, Any], limits: Thresholds
) -> Variant:
    builts: list[Built] = []
    for program in programs:
        # Kernels of a type whose text differs get the name of the first type that has this text.
        names = ["", *(f"{b.program.main}_" for b in builts), f"{program.main}_"]
        tries = (_built(program, style, name, limits) for name in names)
        builts.append(next((t for t in tries if not builts or any(b.same_text(t) for b in builts)), None)
                      or _built(program, style, names[-1], limits))  # fmt: skip
    title = f"CUDA kernels for {graph['class']}, style {style.name}. Needs torch and nvcc."
    text = module_file(builts, base, graph, title)
    return Variant(style.name, text, style.description, style.parameters, style is NAIVE)


def _built(program: Program, style: Style, prefix: str, limits: Thresholds) -> Built:
    schedule = scheduled(program, style, limits)
    return Built(schedule.program, schedule, emitted(schedule, style, program.main, schedule.written, prefix))


def _body(variant: Variant) -> str:
    """The text without its docstring, which names the style."""
    return variant.source.split("\n", 1)[1]


def _decline(reason: str, where: str) -> Decline:
    line = where.rpartition(":")[2]
    return Decline(f"{reason} ({where})" if where else reason, int(line) if line.isdigit() else 0)
