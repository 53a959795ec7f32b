"""Edits of how a launch over a plane is laid out, and of how a row is reduced: forms that people write by hand."""

from __future__ import annotations

import re
from typing import NamedTuple

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.text import GRID, PLANE, Kernel, kernels, launches
from training.dataset.mutate import Edit


def _over_planes(source: str, layout: str) -> str | None:
    new = source
    for kernel in kernels(source):
        match, found = PLANE.match(kernel.body), launches(source, kernel.name)
        grid = GRID.fullmatch(found[0]["grid"]) if len(found) == 1 else None
        if match is None or grid is None or re.search(r"\breturn\b|\bcontinue\b|__sync", match["body"]):
            return None
        if grid["x"] in kernel.parameters and match["end"] is not None:
            return None
        body, launch, more, passed = _laid_out(kernel, match, grid, layout)
        call = found[0].group(0).replace(f"{found[0]['grid']}, {found[0]['block']},", launch, 1)
        call = call[: call.rindex(");")] + passed + ");\n"
        new = new.replace(kernel.text, kernel.written(body=body, more=more).text).replace(found[0].group(0), call)
    return new if new != source else None


class _Layout(NamedTuple):
    """The kernel's body, the launch's grid and block, a further parameter and what is passed for it."""

    body: str
    launch: str
    more: str
    passed: str


def _laid_out(kernel: Kernel, match: re.Match[str], grid: re.Match[str], layout: str) -> _Layout:
    var, row, row_at = match["var"] or match["shifted"], match["row"], match["row_at"]
    at = match["at"] or f"{var}_at"
    value = match["value"] or f"(int){at}"
    many = match["count"] or grid["x"]
    more, passed = ("", "") if match["count"] else (f", long long {many}", f", {many}")
    element = f"        const int {var} = {value};\n"
    inner = "".join(f"    {line}\n" if line else "\n" for line in match["body"].splitlines())
    row_line = f"        const int {row} = {match['row_value']};\n"
    if layout == "row_blocks":
        body = (
            f"    for (long long {row_at} = blockIdx.x; {row_at} < {match['rows']}; {row_at} += gridDim.x) {{\n"
            f"{row_line}"
            f"        for (long long {at} = threadIdx.x; {at} < {many}; {at} += blockDim.x) {{\n    {element}{inner}"
            "        }\n    }\n"
        )
        return _Layout(body, f"blocks_for({grid['y']}, 1, 2147483647), 256,", more, passed)
    if layout == "row_threads":
        body = (
            f"    const long long {row_at} = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    if ({row_at} >= {match['rows']})\n        return;\n{row_line[4:]}"
            f"    for (long long {at} = 0; {at} < {many}; {at}++) {{\n{element}{match['body']}    }}\n"
        )
        return _Layout(body, f"blocks_for({grid['y']}, 128, 2147483647), 128,", more, passed)
    flat = f"{at}_flat"
    outer = "".join(line[4:] if line.startswith("    ") else line for line in match["body"].splitlines(keepends=True))
    body = (
        f"    const long long {flat} = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"    if ({flat} >= {many} * {match['rows']})\n        return;\n"
        f"    const long long {row_at} = {flat} / {many};\n    const long long {at} = {flat} % {many};\n"
        f"{row_line[4:]}{element[4:]}{outer}"
    )
    return _Layout(body, f"blocks_for({grid['x']} * {grid['y']}, 256, 2147483647), 256,", more, passed)


def laid_out(layout: str) -> Edit:
    """A plane as ``row_blocks`` (a block a row), ``row_threads`` (a thread a row) or ``flat`` (divided indices)."""

    def apply(task: Task, source: str) -> str | None:
        return _over_planes(source, layout)

    return Edit(layout, {}, apply)


def marched() -> Edit:
    """A thread per column of a plane goes down all its rows."""

    def apply(task: Task, source: str) -> str | None:
        new = source
        for kernel in kernels(source):
            found = launches(source, kernel.name)
            grid = GRID.fullmatch(found[0]["grid"]) if len(found) == 1 else None
            if grid is None or PLANE.match(kernel.body) is None:
                return None
            launch = f"dim3(blocks_for({grid['x']}, 128, 2147483647), 1), dim3(128, 1),"
            call = found[0].group(0).replace(f"{found[0]['grid']}, {found[0]['block']},", launch)
            new = new.replace(found[0].group(0), call)
        return new if new != source else None

    return Edit("marched", {}, apply)


_SHUFFLE = re.compile(
    r"^    for \(int offset = 16; offset > 0; offset /= 2\) \{\n(?P<lines>.*?)^    \}\n", re.MULTILINE | re.DOTALL
)
_OTHER = re.compile(
    r"^        const (\w[\w ]*) (\w+) = \(\1\)__shfl_xor_sync\(0xffffffffu, (\w+), offset\);\n", re.MULTILINE
)
_ROW_HEAD = re.compile(
    r"    const long long (?P<at>\w+) = \(\(long long\)blockIdx\.x \* blockDim\.x \+ threadIdx\.x\) / 32;\n"
    r"    const int lane = threadIdx\.x % 32;\n"
)


def _shared_tree(match: re.Match[str], block: int, number: int) -> str:
    """A tree in shared memory over a block in place of the shuffles of a warp; `match` as it was where it differs."""
    others = _OTHER.findall(match["lines"])
    combining = _OTHER.sub("", match["lines"])
    if not others or "__shfl" in combining:
        return match.group(0)
    arrays = [(kind, other, value, f"parts_{number}_{value}") for kind, other, value in others]
    inner = "".join(f"    {line}\n" for line in combining.splitlines())
    lines = [f"    __shared__ {kind} {array}[{block}];\n" for kind, _, _, array in arrays]
    lines += [f"    {array}[threadIdx.x] = {value};\n" for _, _, value, array in arrays]
    lines += ["    __syncthreads();\n", f"    for (int offset = {block // 2}; offset > 0; offset /= 2) {{\n"]
    lines += ["        if ((int)threadIdx.x < offset) {\n"]
    lines += [f"            const {kind} {o} = {array}[threadIdx.x + offset];\n" for kind, o, _, array in arrays]
    lines += [inner]
    lines += [f"            {array}[threadIdx.x] = {value};\n" for _, _, value, array in arrays]
    lines += ["        }\n        __syncthreads();\n    }\n"]
    lines += [f"    {value} = {array}[0];\n" for _, _, value, array in arrays]
    return "".join([*lines, "    __syncthreads();\n"])


def block_rows(block: int) -> Edit:
    """A block per row instead of a warp, its threads' results combined in shared memory."""

    def apply(task: Task, source: str) -> str | None:
        new = source
        for kernel in kernels(source):
            head, found = _ROW_HEAD.search(kernel.body), launches(source, kernel.name)
            grid = re.fullmatch(r"blocks_for\((\w+), \d+, (\d+)\)", found[0]["grid"]) if len(found) == 1 else None
            if head is None or grid is None or "__shfl" not in kernel.body or "parts_" in kernel.body:
                return None
            body = kernel.body.replace(
                head.group(0), f"    const long long {head['at']} = blockIdx.x;\n    const int lane = threadIdx.x;\n"
            )
            numbers = iter(range(1, 100))
            body = _SHUFFLE.sub(lambda m, n=numbers: _shared_tree(m, block, next(n)), body)  # type: ignore[misc]
            body = body.replace("+= 32)", f"+= {block})").replace("__syncwarp();", "__syncthreads();")
            if "__shfl" in body or re.search(r"[/%] 32\b", body):
                return None
            call = (
                found[0]
                .group(0)
                .replace(f"{found[0]['grid']}, {found[0]['block']},", f"blocks_for({grid[1]}, 1, {grid[2]}), {block},")
            )
            new = new.replace(kernel.text, kernel.written(body=body).text).replace(found[0].group(0), call)
        return new if new != source else None

    return Edit("block_rows", {"block": block}, apply)


SHAPE_EDITS: tuple[tuple[tuple[str, ...], Edit], ...] = (
    (("naive",), laid_out("row_blocks")),
    (("naive",), laid_out("row_threads")),
    (("restrict", "naive"), laid_out("flat")),
    (("restrict", "naive"), marched()),
    (("warp_rows",), block_rows(256)),
    (("warp_rows",), block_rows(64)),
)
"""Each edit with the strategies whose source it starts from, the first that the task has."""
