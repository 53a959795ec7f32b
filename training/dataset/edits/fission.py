"""Edits that split a kernel into several with their values kept in memory between them, or join two into one.

Iterations of a launch are independent, so its statements may run as kernels of their own, one after the other, if what
a thread keeps in local variables goes through a buffer with a place for each iteration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.text import (
    LINE,
    PLANE,
    Kernel,
    accesses,
    assigned_name,
    identifiers,
    kernels,
    launches,
    statements,
)
from training.dataset.mutate import Edit

_COUNTS = re.compile(r"blocks_for\((\w+), \d+, \d+\)")
_DECLARED = re.compile(r"^ *(?:const )?((?:unsigned |signed |long )*[a-z]\w*) (\w+)(?: = [^\n]*)?;$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Form:
    """A kernel whose body may be split.

    Attributes:
        kernel: It.
        head, body, foot: The lines before the statements, they, and the lines after.
        pad: Indentation of the statements.
        slot: The number of an iteration, from 0.
        more: A parameter that `slot` needs, as declared; empty for none.
        count: Of iterations, on the host.
        passed: What the host passes for `more`.
        launch: The only one.
    """

    kernel: Kernel
    head: str
    body: str
    foot: str
    pad: str
    slot: str
    more: str
    count: str
    passed: str
    launch: re.Match[str]


def _form(source: str, kernel: Kernel) -> _Form | None:
    found = launches(source, kernel.name)
    counts = _COUNTS.findall(found[0]["grid"]) if len(found) == 1 else []
    line, plane = LINE.match(kernel.body), PLANE.match(kernel.body)
    if plane is not None and len(counts) == 2:
        slot = f"{plane['row_at']} * kept_width + {plane['var'] or plane['at']}"
        head = kernel.body[: plane.start("body")]
        return _Form(kernel, head, plane["body"], "    }\n", " " * 8, slot, ", long long kept_width",
                     f"{counts[0]} * {counts[1]}", f", {counts[0]}", found[0])  # fmt: skip
    if line is not None and len(counts) == 1 and "blockIdx.y" not in kernel.body:
        head, slot = kernel.body[: line.start("body")], line["var"] or line["at"]
        return _Form(kernel, head, line["body"], "", " " * 4, slot, "", counts[0], "", found[0])
    return None


def _cuts(kernel: Kernel, parts: Sequence[str]) -> list[int]:
    """Where the statements may be cut: something is loaded before, and something stored after."""
    pointers = [n for n, p in kernel.parameters.items() if p.pointer]
    found = []
    for cut in range(1, len(parts)):
        before, after = "".join(parts[:cut]), "".join(parts[cut:])
        stores = any(assigned_name(after, p) for p in pointers)
        if accesses(before, pointers) and stores:
            found.append(cut)
    return found


def _useful(kernel: Kernel, parts: Sequence[str], cuts: Sequence[int]) -> list[int]:
    """Those of the cuts between which something is loaded or stored."""
    pointers = [n for n, p in kernel.parameters.items() if p.pointer]
    chosen: list[int] = []
    for cut in cuts:
        if accesses("".join(parts[chosen[-1] if chosen else 0 : cut]), pointers):
            chosen.append(cut)
    return chosen


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Lines of each kernel's statements, and the types of the variables that are kept, by name."""

    lines: list[list[str]]
    kept: dict[str, str]


def _pieces(form: _Form, parts: Sequence[str], cuts: Sequence[int]) -> _Pieces | None:
    """The statements cut; `None` where a value cannot be kept."""
    texts = ["".join(parts[a:b]) for a, b in pairwise([0, *cuts, len(parts)])]
    owner: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for number, text in enumerate(texts):
        for line in text.splitlines():
            if line.startswith(form.pad) and not line.startswith(form.pad + " "):
                match = _DECLARED.match(line)
                if match is not None:
                    owner[match[2]], kinds[match[2]] = number, match[1]
                elif re.match(r" *(?:const )?[a-z][\w ]* \w+\[", line):
                    return None  # a local array
    kept: dict[str, str] = {}
    made = []
    for number, text in enumerate(texts):
        later = identifiers("".join(texts[number + 1 :]))
        load = [n for n, at in owner.items() if at < number and n in identifiers(text)]
        own = [n for n, at in owner.items() if at == number]
        store = [n for n in [*own, *(n for n in load if _changed(n, text))] if n in later]
        kept |= {n: kinds[n] for n in store}
        lines = [f"{form.pad}{kinds[n]} {n} = {n}_kept[{form.slot}];\n" for n in load]
        made.append([*lines, text, *(f"{form.pad}{n}_kept[{form.slot}] = {n};\n" for n in store)])
    return _Pieces(made, kept)


def _changed(name: str, text: str) -> bool:
    stores = rf"\b{name} (?:=(?!=)|[-+*/%&|^]=|<<=|>>=)|\b{name}(?:\+\+|--)|(?:\+\+|--){name}\b"
    return re.search(stores, text) is not None


def _unfused(source: str, form: _Form, parts: Sequence[str], cuts: Sequence[int]) -> str | None:
    made = _pieces(form, parts, cuts)
    if made is None or "_kept" in source:
        return None
    more = form.more + "".join(f", {kind} *{name}_kept" for name, kind in made.kept.items())
    pad, launch = form.launch["pad"], form.launch.group(0)
    texts, calls = [], []
    for number, lines in enumerate(made.lines, 1):
        name = f"{form.kernel.name}_part{number}"
        body = form.head + "".join(lines) + form.foot
        texts.append(form.kernel.written(body=body, name=name, more=more).text)
        call = launch.replace(f"{form.kernel.name}<<<", f"{name}<<<", 1)
        passed = form.passed + "".join(f", {name}_kept" for name in made.kept)
        calls.append(call[: call.rindex(");")] + passed + ");\n")
    host = []
    for name, kind in made.kept.items():
        host += [
            f"{pad}{kind} *{name}_kept = nullptr;\n",
            f"{pad}cudaMallocAsync((void **)&{name}_kept, (size_t)({form.count}) * sizeof({kind}), stream);\n",
            f"{pad}if ({name}_kept == nullptr)\n{pad}    return cudaErrorMemoryAllocation;\n",
        ]
    frees = [f"{pad}cudaFreeAsync({name}_kept, stream);\n" for name in made.kept]
    return source.replace(form.kernel.text, "\n".join(texts)).replace(launch, "".join([*host, *calls, *frees]))


def unfused(where: str) -> Edit:
    """A kernel cut at the first place (``first``) or the last (``last``) that makes sense, or at several (``all``)."""

    def apply(task: Task, source: str) -> str | None:
        new = source
        for kernel in kernels(source):
            form = _form(source, kernel)
            if form is None or re.search(r"__sync|__shfl|__shared__", kernel.body):
                continue
            parts = statements(form.body, form.pad)
            cuts = _cuts(kernel, parts)
            every = _useful(kernel, parts, cuts)
            chosen = {"first": cuts[:1], "last": cuts[-1:], "all": every[:3]}[where]
            if not chosen or (where == "last" and len(cuts) < 2) or (where == "all" and len(every) < 2):
                continue
            new = _unfused(new, form, parts, chosen) or new
            break
        return new if new != source else None

    return Edit("unfused", {"cut": where}, apply)


def stored_apart() -> Edit:
    """What a kernel's last statement stores goes to a buffer first, and from there to its place by a second kernel."""

    def apply(task: Task, source: str) -> str | None:
        for kernel in reversed(kernels(source)):
            form = _form(source, kernel)
            if form is None or re.search(r"__sync|__shfl|__shared__|\bkept\b", kernel.body):
                continue
            parts = statements(form.body, form.pad)
            match = re.fullmatch(rf"{form.pad}(\w+)\[(.*)\] = (.*);\n", parts[-1]) if parts else None
            parameter = kernel.parameters.get(match[1]) if match is not None else None
            if match is None or parameter is None or not parameter.pointer:
                continue
            first = f"{form.pad}{parameter.type} kept = {match[3]};\n"
            second = f"{form.pad}{match[1]}[{match[2]}] = kept;\n"
            return _unfused(source, form, [*parts[:-1], first, second], [len(parts)])
        return None

    return Edit("unfused", {"cut": "result"}, apply)


_PARTIALS = re.compile(
    r"        if \(\w+ > 0\) \{\n"
    r"            const dim3 grid_shape\(blocks_for\((?P<count>\w+), (?P<each>\d+), (?P<most>\d+)\)\);\n"
    r"            partial_count = (?P<partials>[^\n]*);\n"
    r"            (?P<first>\w+)<<<grid_shape, (?P<block>\d+), 0, stream>>>\((?P<args>[^\n]*)\);\n        \}\n    \}\n"
    r"    (?P<last>\w+)<<<1, (?P<threads>\d+), 0, stream>>>\((?P<more>[^\n]*)\);\n"
)


def joined() -> Edit:
    """The two kernels of a reduction as one: the block that ends last combines what all have left."""

    def apply(task: Task, source: str) -> str | None:
        found, match = kernels(source), _PARTIALS.search(source)
        if match is None or [k.name for k in found] != [match["first"], match["last"]] or "ended_" in source:
            return None
        first, last = found
        # The second is written for as many threads as it has.
        if match["threads"] != match["block"] or re.search(r"\breturn\b", first.body):
            return None
        given = dict(zip(first.parameters, match["args"].split(", "), strict=True))
        also = dict(zip(last.parameters, match["more"].split(", "), strict=True))
        added = [n for n in also if n not in given]
        declared = dict(zip(last.parameters, last.params.split(", "), strict=True))
        indented = "".join(f"    {line}\n" if line else "\n" for line in last.body.splitlines())
        body = (
            f"{first.body}    __shared__ bool ended_last;\n    __threadfence();\n    __syncthreads();\n"
            "    if (threadIdx.x == 0)\n"
            "        ended_last = atomicAdd(&ended_, 1u) == gridDim.x * gridDim.y - 1;\n    __syncthreads();\n"
            "    if (!ended_last)\n        return;\n    if (threadIdx.x == 0)\n        ended_ = 0;\n"
            f"    {{\n{indented}    }}\n"
        )
        one = first.written(body=body, name=f"{task.name}_joined", more="".join(f", {declared[n]}" for n in added))
        args = ", ".join([match["args"], *(also[n] for n in added)])
        host = (
            f"        const dim3 grid_shape(blocks_for({match['count']} > 0 ? {match['count']} : 1, {match['each']},"
            f" {match['most']}));\n"
            f"        partial_count = {match['count']} > 0 ? {match['partials']} : 0;\n"
            f"        {one.name}<<<grid_shape, {match['block']}, 0, stream>>>({args});\n    }}\n"
        )
        text = source.replace(match.group(0), host).replace(last.text, one.text).replace(first.text + "\n", "")
        at = text.index("static __global__")
        return text[:at] + "static __device__ unsigned int ended_;\n\n" + text[at:]

    return Edit("joined", {}, apply)


FISSION_EDITS: tuple[tuple[tuple[str, ...], Edit], ...] = (
    (("naive",), unfused("first")),
    (("restrict", "naive"), unfused("last")),
    (("restrict", "naive"), unfused("all")),
    (("naive",), stored_apart()),
    (("tree",), joined()),
    (("naive",), joined()),
)
"""Each edit with the strategies whose source it starts from, the first that the task has."""
