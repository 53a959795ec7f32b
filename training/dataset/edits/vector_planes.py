"""Vector loads and stores over a plane: a thread per vector of a row, where rows and buffers are aligned to it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.text import (
    PLAIN_START,
    PLANE,
    Kernel,
    accesses,
    assigned_name,
    identifiers,
    kernels,
    launches,
)
from training.dataset.edits.vector_types import VECTOR_BASES, common_width, moved, vector_type
from training.dataset.edits.vectors import each, inner, only_stored, split_index, strided
from training.dataset.mutate import Edit


@dataclass(frozen=True, slots=True)
class _Plane:
    """A kernel over a plane, one thread a column of elements that are a row apart.

    Attributes:
        kernel: It.
        var, row: Indices of an element.
        loop, body: The header of the loop over rows (its lines), and what is inside.
        offset: The first value of `var`.
        count: How many values `var` has, a parameter; empty where it has all of a row.
        end: The end of a row, a parameter; empty where `count` says it.
    """

    kernel: Kernel
    var: str
    row: str
    loop: str
    body: str
    offset: int
    count: str
    end: str


def _plane(kernel: Kernel) -> _Plane | None:
    match = PLANE.match(kernel.body)
    offset = re.fullmatch(r"\(int\)\(\(long long\)\((\d+)\) \+ \w+\)", match["value"] or "") if match else None
    if match is None or (match["at"] and offset is None):
        return None
    loop = re.search(r"^    for [^\n]*\n[^\n]*\n[^\n]*\n", kernel.body, re.MULTILINE)
    assert loop is not None
    return _Plane(
        kernel, match["var"] or match["shifted"], match["row"], loop.group(0), match["body"],
        int(offset[1]) if offset is not None else 0, match["count"] or "", match["end"] or "",
    )  # fmt: skip


_ROW = r"(?:\(long(?: long)?\))?(?:\w+|\([^()]*\)) \* (?P<pitch>\w+)"


def plane(bytes_: int) -> Edit:
    """A thread per vector of a row, neighbours to the left and right beside it; the host takes it where rows allow."""

    def apply(task: Task, source: str) -> str | None:
        new = source
        for kernel in kernels(source):
            form, found = _plane(kernel), launches(source, kernel.name)
            if form is None or len(found) != 1 or found[0]["grid"].count("blocks_for") != 2:
                continue
            made = _wide_plane(form, bytes_, source)
            if made is None:
                continue
            launch, pad = found[0], found[0]["pad"]
            grid = re.sub(
                r"blocks_for\(\w+, (\d+), (\d+)\)",
                rf"blocks_for({made.pitch} / {made.width}, \1, \2)",
                launch["grid"],
                count=1,
            )
            wide = f"{made.kernel.name}<<<{grid}, {launch['block']}, 0, stream>>>({launch['args']});"
            checks = " && ".join([f"{made.pitch} % {made.width} == 0", *made.aligned])
            plain = f"    {launch.group(0)}{pad}}}\n"
            lines = [f"{pad}if ({checks}) {{", f"{pad}    {wide}", f"{pad}}} else {{", plain]
            new = new.replace(kernel.text, made.kernel.text + "\n" + kernel.text)
            new = new.replace(launch.group(0), "\n".join(lines))
        return new if new != source else None

    return Edit("vector_plane", {"bytes": bytes_}, apply)


@dataclass(frozen=True, slots=True)
class _Wide:
    kernel: Kernel
    pitch: str
    width: int
    aligned: list[str]


def _wide_plane(form: _Plane, bytes_: int, source: str) -> _Wide | None:
    kernel, var, body = form.kernel, form.var, form.body
    parameters = {n: p for n, p in kernel.parameters.items() if p.pointer and p.type in VECTOR_BASES}
    if re.search(r"\breturn\b|__sync|__shfl|\bitem\b|_four|_item|\bcontinue\b", body) or not parameters:
        return None
    declared = set(re.findall(r"(?:^|[;{(])\s*(?:const )?(?:[a-z_]+ )+(\w+)(?: =|;)", body, re.MULTILINE))
    runs: dict[tuple[str, str], set[int]] = {}
    pitches: set[str] = set()
    whole = set(parameters)
    for access in accesses(body, list(parameters)):
        part = split_index(access.index, var)
        fits = part is not None and not identifiers(part.prefix) & declared and abs(part.offset) <= 1
        row = re.fullmatch(_ROW, part.prefix) if part is not None and part.prefix else None
        if part is None or not fits or (part.prefix and row is None):
            whole.discard(access.name)
            continue
        pitches |= {row["pitch"]} if row is not None else set()
        runs.setdefault((access.name, part.prefix), set()).add(part.offset)
    stored = {n for n in parameters if assigned_name(body, n)}
    for name in stored:
        mine = [k for k in runs if k[0] == name]
        if mine and (name not in whole or len(mine) != 1 or runs[mine[0]] != {0} or f"&{name}[" in body):
            return None
    runs = {k: v for k, v in runs.items() if k[0] not in stored or k[0] in whole}
    loaded = [k for k in runs if not (k[0] in stored and only_stored(body, k[0], k[1], var) and not form.count)]
    if len(pitches) != 1 or not [k for k in loaded if k[0] not in stored]:
        return None
    pitch = next(iter(pitches))
    if form.end and form.end != pitch:
        return None
    counted = rf"const long long {form.count} = \(long long\)\({pitch}(?: - \d+)?\) - \(long long\)\({form.offset}\);"
    if form.count and not re.search(counted, source):
        return None
    width = common_width([parameters[k[0]] for k in runs], bytes_)
    if width < 2:
        return None
    first, pad = f"{var}_first", " " * 8
    load, store, new = [], [], body
    seen: dict[str, int] = {}
    for name, prefix in runs:
        seen[name] = seen.get(name, 0) + 1
        tag = name if seen[name] == 1 else f"{name}{seen[name]}"
        kind = parameters[name].type
        at = f"{prefix + ' + ' if prefix else ''}{first}"
        near = bool(runs[name, prefix] - {0})
        move = moved(
            kind, width, tag, f"{name} + {at}", loads=(name, prefix) in loaded, stores=name in stored,
            before=f"{first} > 0 ? {name}[{at} - 1] : ({kind})0" if near else "",
            after=f"{first} + {width} < {pitch} ? {name}[{at} + {width}] : ({kind})0" if near else "",
        )  # fmt: skip
        load += [pad + line for line in move.load]
        store += [pad + move.store] if name in stored else []
        for by in (-1, 0, 1):
            sign = "" if by == 0 else f" {'+' if by > 0 else '-'} 1"
            index = f"{prefix} + {var}{sign}" if prefix else f"{var}{sign}"
            new = new.replace(f"{name}[{index}]", f"{tag}_item[item{f' + {by + 1}' if near and by > -1 else ''}]")
    inner = "".join(f"    {line}\n" if line else "\n" for line in new.splitlines()).rstrip("\n")
    guard = []
    if form.count:
        outside = f"{var} < {form.offset} || {var} - {form.offset} >= {form.count}"
        guard = [f"{pad}    if ({outside})", f"{pad}        continue;"]
    lines = [
        f"    const int {first} = ({PLAIN_START}) * {width};",
        f"    if ({first} >= {pitch})",
        "        return;",
        form.loop.rstrip("\n"),
        *load,
        f"{pad}#pragma unroll",
        f"{pad}for (int item = 0; item < {width}; item++) {{",
        f"{pad}    const int {var} = {first} + item;",
        *guard,
        inner,
        f"{pad}}}",
        *store,
        "    }",
        "",
    ]
    aligned = [
        f"(unsigned long long){name} % sizeof({vector_type(parameters[name].type, width)}) == 0"
        for name in dict.fromkeys(k[0] for k in runs)
    ]
    if first in kernel.text or pitch not in kernel.parameters:
        return None
    return _Wide(kernel.written(body="\n".join(lines), name=f"{kernel.name}_wide"), pitch, width, aligned)


VECTOR_EDITS: tuple[tuple[tuple[str, ...], Edit], ...] = (
    (("grid_stride",), strided(16, "vector_stride")),
    (("grid_stride",), strided(8, "vector_stride")),
    (("tree",), strided(16, "vector_tree")),
    (("warp_rows",), strided(16, "vector_rows")),
    (("privatised",), strided(16, "vector_bins")),
    (("restrict", "naive"), inner(16)),
    (("restrict", "naive"), each(16)),
    (("restrict", "naive"), each(8)),
    (("restrict", "naive"), plane(16)),
    (("restrict", "naive"), plane(8)),
)
"""Each edit with the strategies whose source it starts from, the first that the task has."""
