"""A stencil whose blocks first copy what their threads share, a tile with its rim, to shared memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.text import PLANE, Kernel, accesses, assigned_name, kernels, launches
from training.dataset.mutate import Edit

_OFFSET = re.compile(r"\(int\)\(\(long long\)\((\d+)\) \+ \w+\)|\(int\)\w+")
_BLOCK = re.compile(r"dim3\((\d+), (\d+)\)")


@dataclass
class _Reach:
    """How far the accesses of a buffer go from an element, along rows and columns; 0 or more each."""

    up: int = 0
    down: int = 0
    left: int = 0
    right: int = 0

    @property
    def any(self) -> bool:
        """Whether neighbours share anything."""
        return bool(self.up + self.down + self.left + self.right)


def shared_tile() -> Edit:
    """The first buffer that a plane's elements read around themselves goes through shared memory."""

    def apply(task: Task, source: str) -> str | None:
        for kernel in kernels(source):
            found = launches(source, kernel.name)
            block = _BLOCK.fullmatch(found[0]["block"]) if len(found) == 1 else None
            match = PLANE.match(kernel.body)
            if block is None or match is None or re.search(r"\breturn\b|__sync|_tile\b|\bt[xy]\b", match["body"]):
                continue
            body = _tiled(kernel, match, int(block[1]), int(block[2]), found[0]["grid"])
            if body is not None:
                many = re.findall(r"blocks_for\((\w+),", found[0]["grid"])[0]
                more = "" if match["count"] else f", long long {many}"
                call = found[0].group(0)
                call = call if match["count"] else call[: call.rindex(");")] + f", {many});\n"
                return source.replace(kernel.text, kernel.written(body=body, more=more).text).replace(
                    found[0].group(0), call
                )
        return None

    return Edit("shared_tile", {}, apply)


def _tiled(kernel: Kernel, match: re.Match[str], wide: int, high: int, grid: str) -> str | None:
    var, row = match["var"] or match["shifted"], match["row"]
    at = match["at"] or f"{var}_at"
    many = match["count"] or re.findall(r"blocks_for\((\w+),", grid)[0]
    value = match["value"] or f"(int){at}"
    first, top = _OFFSET.fullmatch(value), _OFFSET.fullmatch(match["row_value"])
    if first is None or top is None or (many in kernel.parameters and not match["count"]):
        return None
    x0, y0 = int(first[1] or 0), int(top[1] or 0)
    for name, parameter in kernel.parameters.items():
        if not parameter.pointer or not parameter.const or assigned_name(match["body"], name):
            continue
        read = _read(name, match["body"], var, row)
        if read is None:
            continue
        reach = read.reach
        rows, columns = high + reach.up + reach.down, wide + reach.left + reach.right
        tile = f"{name}_tile"
        taken = re.search(r"\b[xy]\b", kernel.text) is not None
        x, y = ("tile_x", "tile_y") if taken else ("x", "y")
        inner = "".join(f"    {line}\n" if line else "\n" for line in read.text.splitlines())
        return (
            f"    __shared__ {parameter.type} {tile}[{rows}][{columns}];\n"
            f"    const long long {at} = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    const int {var} = {value};\n"
            f"    for (long long base = (long long)blockIdx.y * blockDim.y; base < {match['rows']};\n"
            "         base += (long long)gridDim.y * blockDim.y) {\n"
            f"        const long long {match['row_at']} = base + threadIdx.y;\n"
            f"        const int {row} = {match['row_value']};\n        __syncthreads();\n"
            f"        for (int ty = threadIdx.y; ty < {rows}; ty += {high})\n"
            f"            for (int tx = threadIdx.x; tx < {columns}; tx += {wide}) {{\n"
            f"                const long long {y} = base + ty + {y0 - reach.up};\n"
            f"                const long long {x} = (long long)blockIdx.x * {wide} + tx + {x0 - reach.left};\n"
            f"                const bool inside = {y} < {match['rows']} + {y0 + reach.down}"
            f" && {x} < {many} + {x0 + reach.right};\n"
            f"                {tile}[ty][tx] = inside ? {name}[{y} * {read.pitch} + {x}] : ({parameter.type})0;\n"
            "            }\n        __syncthreads();\n"
            f"        if ({at} < {many} && {match['row_at']} < {match['rows']}) {{\n{inner}        }}\n    }}\n"
        )
    return None


@dataclass(frozen=True, slots=True)
class _Read:
    """A body that takes a buffer's elements from the tile, how far they are, and the length of a row."""

    text: str
    reach: _Reach
    pitch: str


def _read(name: str, body: str, var: str, row: str) -> _Read | None:
    """`None` where an access has another form, or none goes beyond its own element."""
    pattern = re.compile(
        rf"(?:\(long(?: long)?\))?(?:{row}|\({row} (?P<sy>[+-]) (?P<dy>\w+)\)) \* (?P<pitch>\w+) \+ {var}"
        r"(?: (?P<sx>[+-]) (?P<dx>\w+))?"
    )
    reach, pitches, text = _Reach(), set(), body
    for access in accesses(body, [name]):
        match = pattern.fullmatch(access.index)
        if match is None:
            return None
        pitches.add(match["pitch"])
        ends_y, ends_x = _ends(match["sy"], match["dy"], body), _ends(match["sx"], match["dx"], body)
        if ends_y is None or ends_x is None:
            return None
        reach.up, reach.down = max(reach.up, -ends_y[0]), max(reach.down, ends_y[1])
        reach.left, reach.right = max(reach.left, -ends_x[0]), max(reach.right, ends_x[1])
    if len(pitches) != 1 or not reach.any:
        return None
    for access in accesses(body, [name]):
        match = pattern.fullmatch(access.index)
        assert match is not None
        y = f" {match['sy']} {match['dy']}" if match["sy"] else ""
        x = f" {match['sx']} {match['dx']}" if match["sx"] else ""
        place = f"{name}_tile[threadIdx.y + {reach.up}{y}][threadIdx.x + {reach.left}{x}]"
        text = text.replace(f"{name}[{access.index}]", place)
    return _Read(text, reach, pitches.pop())


def _ends(sign: str | None, by: str | None, body: str) -> list[int] | None:
    """The least and the largest value of an offset: a number, or a loop's variable with numbers as bounds."""
    if sign is None or by is None:
        return [0, 0]
    if by.isdigit():
        value = int(sign + by)
        return [min(value, 0), max(value, 0)]
    loops = re.findall(rf"for \(int {by} = (-?\d+); {by} (<=?) (-?\d+); {by}\+\+\)", body)
    if sign != "+" or len(loops) != 1:
        return None
    first, op, last = loops[0]
    return [min(int(first), 0), max(int(last) - (op == "<"), 0)]


TILE_EDITS: tuple[tuple[tuple[str, ...], Edit], ...] = ((("restrict",), shared_tile()),)
"""Each edit with the strategies whose source it starts from."""
