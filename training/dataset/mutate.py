"""Edits of generated sources that keep their results and change one thing about speed.

The generator's sources have one form (see `codegen.emit`), which these edits rely on; where a source does not have it,
an edit gives `None`. Each edit is a pair with its origin: only the edited thing differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cudaperf_agent.tasks.model import Role, Task

_INDEX = re.compile(
    r"^    const int (?P<name>\w+) = (?P<start>[^;]*?)blockIdx\.x \* blockDim\.x \+ threadIdx\.x;\n"
    r"    if \((?P<out>[^\n]*)\)\n        return;\n(?P<body>.*?)^\}$",
    re.MULTILINE | re.DOTALL,
)
_LAUNCH = re.compile(
    r"<<<blocks_for\((?P<count>[^;]*?), (?P<block>\d+), (?P<most>\d+)\), (?P<threads>\d+), 0, stream>>>"
)
_KERNEL = re.compile(r"^static __global__ void (?P<name>\w+)\([^\n]*\)\n\{\n", re.MULTILINE)
_PLANE_X = "(long long)blockIdx.x * blockDim.x + threadIdx.x"
_PLANE_Y = "(long long)blockIdx.y * blockDim.y + threadIdx.y"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit.

    Attributes:
        strategy: The label of what it makes.
        parameters: Its numbers.
        apply: From a task and a source to the edited source, `None` where the source has no place for it.
    """

    strategy: str
    parameters: dict[str, int | str]
    apply: Callable[[Task, str], str | None]


def chunked(per_thread: int) -> Edit:
    """Each thread takes `per_thread` neighbouring elements: neighbours in a warp are that far apart."""

    def apply(task: Task, source: str) -> str | None:
        return _coarsened(source, per_thread, neighbours=True)

    return Edit("chunked", {"items": per_thread}, apply)


def interleaved(per_thread: int) -> Edit:
    """Each thread takes `per_thread` elements a block apart: a warp's accesses stay together."""

    def apply(task: Task, source: str) -> str | None:
        return _coarsened(source, per_thread, neighbours=False)

    return Edit("interleaved", {"items": per_thread}, apply)


def _coarsened(source: str, items: int, *, neighbours: bool) -> str | None:
    found = list(_INDEX.finditer(source))
    launches = list(_LAUNCH.finditer(source))
    if not found or len(found) != len(launches):
        return None

    def body(match: re.Match[str]) -> str:
        name, out, inner = match["name"], match["out"], match["body"]
        inner = "".join(f"    {line}\n" if line else "\n" for line in inner.splitlines())
        if neighbours:
            start = f"{match['start']}(blockIdx.x * blockDim.x + threadIdx.x) * {items} + item"
        else:
            start = f"{match['start']}blockIdx.x * blockDim.x * {items} + item * blockDim.x + threadIdx.x"
        return (
            f"    for (int item = 0; item < {items}; item++) {{\n        const int {name} = {start};\n"
            f"        if ({out})\n            break;\n{inner}    }}\n}}"
        )

    if any(re.search(r"\breturn\b|\bitem\b|__sync", match["body"]) for match in found):
        return None
    edited = _INDEX.sub(body, source)
    return _LAUNCH.sub(
        lambda m: f"<<<blocks_for({m['count']}, {int(m['block']) * items}, {m['most']}), {m['threads']}, 0, stream>>>",
        edited,
    )


def scattered(groups: int) -> Edit:
    """Threads of a block take its elements in an order in which neighbours are `blockDim / groups` apart."""

    def apply(task: Task, source: str) -> str | None:
        if not _INDEX.search(source):
            return None
        return re.sub(
            r"(const int \w+ = [^;\n]*?)blockIdx\.x \* blockDim\.x \+ threadIdx\.x;",
            rf"\1blockIdx.x * blockDim.x + (threadIdx.x % {groups}) * (blockDim.x / {groups})"
            rf" + threadIdx.x / {groups};",
            source,
        )

    return Edit("scattered", {"groups": groups}, apply)


def crossed() -> Edit:
    """In launches over a plane, `threadIdx.x` runs over the outer loop: neighbours are a row apart."""

    def apply(task: Task, source: str) -> str | None:
        pattern = re.compile(
            r"    const long long (?P<x>\w+_at) = " + re.escape(_PLANE_X) + r";\n"
            r"    if \((?P=x) >= (?P<xc>\w+)\)\n        return;\n(?P<mid>(?:    const [^\n]*\n)*)"
            r"    for \(long long (?P<y>\w+_at) = " + re.escape(_PLANE_Y) + r"; (?P=y) < (?P<yc>\w+);\n"
            r"         (?P=y) \+= \(long long\)gridDim\.y \* blockDim\.y\)"
        )
        found = pattern.findall(source)
        launch = re.compile(
            r"<<<dim3\(blocks_for\((?P<xc>\w+), (?P<bx>\d+), (?P<xm>\d+)\),"
            r" blocks_for\((?P<yc>\w+), (?P<by>\d+), (?P<ym>\d+)\)\),"
            r" dim3\((?P<tx>\d+), (?P<ty>\d+)\), 0, stream>>>"
        )
        if not found or len(found) != len(launch.findall(source)):
            return None
        edited = pattern.sub(
            lambda m: (
                f"    const long long {m['x']} = {_PLANE_Y};\n"
                f"    if ({m['x']} >= {m['xc']})\n        return;\n{m['mid']}"
                f"    for (long long {m['y']} = {_PLANE_X}; {m['y']} < {m['yc']};\n"
                f"         {m['y']} += (long long)gridDim.x * blockDim.x)"
            ),
            source,
        )
        # The dimension that is now x keeps no cap in y: what y spans must fit 65535 blocks of by threads.
        return launch.sub(
            lambda m: (
                f"<<<dim3(blocks_for({m['yc']}, {m['bx']}, {m['xm']}), blocks_for({m['xc']}, {m['by']}, {m['ym']})),"
                f" dim3({m['tx']}, {m['ty']}), 0, stream>>>"
            ),
            edited,
        )

    return Edit("crossed", {}, apply)


def counted(every_thread: bool) -> Edit:
    """One atomic added per thread (or per block) of each kernel, on one address that nothing reads."""

    def apply(task: Task, source: str) -> str | None:
        if "static __global__" not in source or "visited_" in source:
            return None
        guard = "" if every_thread else "if (threadIdx.x == 0)\n        "
        edited = _KERNEL.sub(lambda m: m.group(0) + f"    {guard}atomicAdd(&visited_, 1u);\n", source)
        at = edited.index("static __global__")
        return edited[:at] + "static __device__ unsigned int visited_;\n\n" + edited[at:]

    return Edit("counted", {"per": "thread" if every_thread else "block"}, apply)


def halted(barriers: int) -> Edit:
    """So many barriers at the start of each kernel, before any thread can have left."""

    def apply(task: Task, source: str) -> str | None:
        if "static __global__" not in source:
            return None
        return _KERNEL.sub(lambda m: m.group(0) + "    __syncthreads();\n" * barriers, source)

    return Edit("halted", {"barriers": barriers}, apply)


def staged() -> Edit:
    """Every buffer that is only read is copied to temporary memory first, as if the data had to be moved."""

    def apply(task: Task, source: str) -> str | None:
        inputs = [p for p in task.buffers if p.role is Role.IN and p.extent is not None]
        head = re.search(rf"^extern \"C\" int {task.name}_device\([^\n]*\)\n\{{\n", source, re.MULTILINE)
        if not inputs or head is None or task.name + "_inner" in source:
            return None
        inner = (
            head.group(0).replace('extern "C" int', "static int").replace(f"{task.name}_device", f"{task.name}_inner")
        )
        lines, arguments, frees = [], [], []
        for p in task.parameters:
            arguments.append(p.name)
            if p in inputs:
                assert p.extent is not None
                kind, copy = p.type.spelling, f"{p.name}_copy"
                lines += [
                    f"    {kind} *{copy} = nullptr;",
                    f"    const size_t {p.name}_bytes = (size_t)({p.extent.expr}) * sizeof({kind});",
                    f"    cudaMallocAsync((void **)&{copy}, {p.name}_bytes + 16, stream);",
                    f"    cudaMemcpyAsync({copy}, {p.name}, {p.name}_bytes, cudaMemcpyDeviceToDevice, stream);",
                ]
                arguments[-1] = copy
                frees.append(f"    cudaFreeAsync({copy}, stream);")
        if task.returns:
            arguments.append("result")
        if task.tables:
            return None
        call = f"    const int status = {task.name}_inner({', '.join([*arguments, 'stream'])});"
        text = source.replace(head.group(0), inner)
        return (
            text.rstrip("\n")
            + "\n\n"
            + "\n".join([head.group(0).rstrip("\n"), *lines, call, *frees, "    return status;", "}", ""])
        )

    return Edit("staged", {}, apply)


def cleared() -> Edit:
    """Buffers that are only written are zeroed by a kernel of their own first."""

    def apply(task: Task, source: str) -> str | None:
        outputs = [p for p in task.buffers if p.role is Role.OUT and p.extent is not None]
        head = re.search(rf"^extern \"C\" int {task.name}_device\([^\n]*\)\n\{{\n", source, re.MULTILINE)
        if not outputs or head is None or "clear_" in source:
            return None
        kernel = (
            "template <typename T> static __global__ void clear_(T *data, long long count)\n{\n"
            "    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
            "    if (at < count)\n        data[at] = T();\n}\n\n"
        )
        launches = "".join(
            f"    if ((long long)({p.extent.expr}) > 0)\n"
            f"        clear_<{p.type.spelling}><<<(unsigned int)(((long long)({p.extent.expr}) + 255) / 256), 256, 0, "
            f"stream>>>({p.name}, (long long)({p.extent.expr}));\n"
            for p in outputs
            if p.extent is not None
        )
        return source.replace(head.group(0), kernel + head.group(0) + launches)

    return Edit("cleared", {}, apply)


EDITS: tuple[Edit, ...] = (
    *(chunked(items) for items in (2, 3, 4, 8)),
    *(interleaved(items) for items in (2, 4, 8)),
    scattered(8),
    crossed(),
    counted(True),
    counted(False),
    halted(2),
    staged(),
    cleared(),
)
"""Every edit, applied to the plain and to the ``restrict`` source of a task."""
