"""Edits that load and store neighbouring elements as one vector (``float4``, ``int2``, …), with a tail and checks.

Every edit keeps the plain code for what does not fill a vector and for buffers or rows that are not aligned to it, so
that the result is right for every size. In a loop that becomes two, the first takes whole vectors and the second what
is left; where a thread takes one vector, it takes its elements singly at the end; over a plane the host chooses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.text import (
    PLAIN_START,
    Access,
    Kernel,
    accesses,
    assigned_name,
    identifiers,
    kernels,
    launches,
)
from training.dataset.edits.vector_types import VECTOR_BASES, common_width, moved, vector_type
from training.dataset.mutate import Edit

_STRIDED = re.compile(
    r"^(?P<pad> +)for \(long long (?P<at>\w+) = (?P<init>[^;\n]*); (?P=at) < (?P<count>[^;\n]*);\s+"
    r"(?P=at) \+= (?P<step>[^;{\n]*)\) \{\n"
    r"(?P=pad)    const int (?P<var>\w+) = \(int\)(?P=at);\n(?P<body>.*?)^(?P=pad)\}\n",
    re.MULTILINE | re.DOTALL,
)
_COUNTED = re.compile(
    r"^(?P<pad> +)(?P<unroll>#pragma unroll \d+\n +)?for \(int (?P<var>\w+) = (?P<first>[^;\n]*);"
    r" (?P=var) (?P<op><=?) (?P<last>[^;\n]*); (?P=var)\+\+\) \{\n(?P<body>.*?)^(?P=pad)\}\n",
    re.MULTILINE | re.DOTALL,
)
_EACH = re.compile(
    r"^    const int (?P<var>\w+) = " + re.escape(PLAIN_START) + r";\n"
    r"    if \((?P<out>[^\n]*)\)\n        return;\n(?P<body>.*)\Z",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Items:
    """A body over `width` neighbouring elements at once.

    Attributes:
        load: Lines before the loop over elements.
        body: Its body, elements of vectors taken from arrays.
        store: Lines after it.
        aligned: Conditions under which it may run, at the first element.
        width: Elements.
    """

    load: list[str]
    body: str
    store: list[str]
    aligned: list[str]
    width: int


class Run(NamedTuple):
    """The elements that an index names along a variable: what comes before it, and how far off the element is."""

    prefix: str
    offset: int


def split_index(index: str, var: str) -> Run | None:
    """``PREFIX + var ± c`` as a run along `var`; `None` for any other form."""
    match = re.match(rf"^(?:(?P<prefix>.*) \+ )?{var}(?: (?P<sign>[+-]) (?P<by>\d+))?$", index)
    if match is None:
        return None
    prefix = match["prefix"] or ""
    if var in identifiers(prefix) or prefix.count("(") != prefix.count(")") or "[" in prefix or "?" in prefix:
        return None
    return Run(prefix, int(match["sign"] + match["by"]) if match["sign"] else 0)


def _items(
    kernel: Kernel, body: str, var: str, bytes_: int, first: str, pad: str, turns: int | None = None
) -> _Items | None:
    """The body over a vector that starts at element `first`; `None` where nothing can be loaded so.

    Args:
        kernel: For its parameters.
        body: Of one element.
        var: Its index.
        bytes_: Of a vector of the widest type.
        first: An expression for the index of the first element; ``@`` in it becomes the number of elements.
        pad: Indentation of the lines.
        turns: How many elements there are, if that is known.
    """
    parameters = {n: p for n, p in kernel.parameters.items() if p.pointer and p.type in VECTOR_BASES}
    if not parameters or re.search(r"\breturn\b|__sync|__shfl|\bitem\b|_four\b|_item\b", body):
        return None
    changed = set(re.findall(r"(?:^|[;{(])\s*(?:const )?(?:[a-z_]+ )*(\w+) (?:=|\+=|-=|\*=)", body, re.MULTILINE))
    groups: dict[str, list[Access]] = {}
    for access in accesses(body, list(parameters)):
        groups.setdefault(access.name, []).append(access)
    chosen: dict[str, str] = {}
    for name, found in groups.items():
        parts = [split_index(a.index, var) for a in found]
        runs = {p for p in parts if p is not None and p.offset == 0 and not identifiers(p.prefix) & (changed - {name})}
        stored = assigned_name(body, name)
        if len(runs) != 1 or (stored and (None in parts or len(set(parts)) != 1)):
            continue
        if stored and re.search(rf"&{name}\[", body):
            continue
        chosen[name] = next(iter(runs)).prefix
    if not any(re.search(rf"\b{n}\[", body) and not only_stored(body, n, chosen[n], var) for n in chosen):
        return None
    width = common_width([parameters[n] for n in chosen], bytes_, turns)
    if width < 2:
        return None
    first = first.replace("@", str(width))
    load, store, aligned = [], [], []
    new = body
    for name, prefix in chosen.items():
        place = f"{name} + {prefix + ' + ' if prefix else ''}{first}"
        stored = assigned_name(body, name)
        loads = not only_stored(body, name, prefix, var)
        lines = moved(parameters[name].type, width, name, place, loads=loads, stores=stored)
        load += [pad + line for line in lines.load]
        store += [pad + lines.store] if stored else []
        aligned.append(f"(unsigned long long)({place}) % sizeof({vector_type(parameters[name].type, width)}) == 0")
        index = f"{prefix} + {var}" if prefix else var
        new = new.replace(f"{name}[{index}]", f"{name}_item[item]")
    return _Items(load, new, store, aligned, width)


def only_stored(body: str, name: str, prefix: str, var: str) -> bool:
    """Whether every element is stored to, once and for certain, and not read: nothing has to be loaded."""
    pad = " " * (len(body) - len(body.lstrip(" ")))
    index = re.escape(f"{prefix} + {var}" if prefix else var)
    whole = re.findall(rf"\b{name}\[", body)
    certain = re.findall(rf"^{pad}{name}\[{index}\] = ", body, re.MULTILINE)
    return len(whole) == 1 and len(certain) == 1


def _loop(items: _Items, var: str, first: str, pad: str) -> list[str]:
    """Lines that run `items` over the vector at `first`."""
    inner = "".join(f"    {line}\n" if line else "\n" for line in items.body.splitlines()).rstrip("\n")
    return [
        *items.load,
        f"{pad}#pragma unroll",
        f"{pad}for (int item = 0; item < {items.width}; item++) {{",
        f"{pad}    const int {var} = (int)({first} + item);",
        inner,
        f"{pad}}}",
        *items.store,
    ]


def strided(bytes_: int, name: str) -> Edit:
    """Loops whose threads, or the lanes of a warp, step over elements: over vectors first, then over the rest."""

    def edited(kernel: Kernel, match: re.Match[str]) -> str | None:
        pad, var, at = match["pad"], match["var"], match["at"]
        inner, four, whole = pad + "    ", f"{var}_four", f"{var}_whole"
        if four in kernel.text or whole in kernel.text:
            return None
        if re.fullmatch(r"\(long long\)\(-?\d+\)", match["count"]):
            return None  # a few, of a known number: never a vector for each lane
        items = _items(kernel, match["body"], var, bytes_, f"{four} * @", inner)
        if items is None:
            return None
        width = items.width
        start = [a.replace(f"{four} * {width}", "0") for a in items.aligned]
        start = [a.replace(" + 0)", ")") for a in start]
        lines = [
            f"{pad}const long long {whole} = {' && '.join(start)} ? ({match['count']}) / {width} : 0;",
            f"{pad}for (long long {four} = {match['init']}; {four} < {whole}; {four} += {match['step']}) {{",
            *_loop(items, var, f"{four} * {width}", inner),
            f"{pad}}}",
        ]
        rest = match.group(0).replace(f"{at} = {match['init']};", f"{at} = {whole} * {width} + {match['init']};", 1)
        return "\n".join(lines) + "\n" + rest

    def apply(task: Task, source: str) -> str | None:
        return _each_loop(source, _STRIDED, edited)

    return Edit(name, {"bytes": bytes_}, apply)


def _each_loop(
    source: str, pattern: re.Pattern[str], edit: Callable[[Kernel, re.Match[str]], str | None]
) -> str | None:
    """`source` with every loop of its kernels edited that can be; `None` if there is none."""
    new = source
    for kernel in kernels(source):
        body = pattern.sub(lambda m, k=kernel: edit(k, m) or m.group(0), kernel.body)  # type: ignore[misc]
        if body != kernel.body:
            new = new.replace(kernel.text, kernel.written(body=body).text)
    return new if new != source else None


def inner(bytes_: int) -> Edit:
    """Counted loops inside a thread: a vector a turn, then the rest one by one."""

    def edited(kernel: Kernel, match: re.Match[str]) -> str | None:
        pad, var = match["pad"], match["var"]
        deeper, start = pad + "    ", f"{var}_from"
        if "for (" in match["body"] or start in kernel.text or "[" in match["first"] or match["unroll"]:
            return None
        constant = all(re.fullmatch(r"-?\d+", match[end]) for end in ("first", "last"))
        turns = int(match["last"]) - int(match["first"]) + (match["op"] == "<=") if constant else None
        items = _items(kernel, match["body"], var, bytes_, start, deeper + "    ", turns)
        if items is None:
            return None
        width = items.width
        lines = [
            f"{pad}int {start} = {match['first']};",
            f"{pad}if ({' && '.join(items.aligned)}) {{",
            f"{deeper}for (; {start} + {width - 1} {match['op']} {match['last']}; {start} += {width}) {{",
            *_loop(_deeper(items), var, start, deeper + "    "),
            f"{deeper}}}",
            f"{pad}}}",
        ]
        rest = match.group(0).replace(f"int {var} = {match['first']};", f"int {var} = {start};", 1)
        return "\n".join(lines) + "\n" + rest

    def apply(task: Task, source: str) -> str | None:
        return _each_loop(source, _innermost(source), edited)

    return Edit("vector_inner", {"bytes": bytes_}, apply)


def _innermost(source: str) -> re.Pattern[str]:
    # A loop that holds another would swallow it: the body of the innermost has no `for`.
    return re.compile(_COUNTED.pattern.replace("(?P<body>.*?)", "(?P<body>(?:(?!for \\().)*?)"), _COUNTED.flags)


def _deeper(items: _Items) -> _Items:
    body = "".join(f"    {line}\n" if line else "\n" for line in items.body.splitlines())
    return replace(items, body=body)


def each(bytes_: int) -> Edit:
    """A thread per vector; the one at the end, and all where a buffer is not aligned, take elements singly."""

    def apply(task: Task, source: str) -> str | None:
        new = source
        for kernel in kernels(source):
            match, found = _EACH.match(kernel.body), launches(source, kernel.name)
            if match is None or len(found) != 1 or "blockIdx.y" in kernel.body:
                return None
            var, out, body = match["var"], match["out"], match["body"]
            first = f"{var}_first"
            grid = re.fullmatch(r"blocks_for\((\w+), (\d+), (\d+)\)", found[0]["grid"])
            items = _items(kernel, body, var, bytes_, first, "    ")
            if items is None or grid is None or first in kernel.text:
                return None
            width = items.width
            inside = re.sub(rf"\b{var}\b", f"{first} + {width - 1}", out)
            indented = "".join(f"        {line}\n" if line else "\n" for line in body.splitlines())
            vector = replace(
                _deeper(items),
                load=["    " + x for x in items.load],
                store=["    " + x for x in items.store],
            )
            text = "\n".join(
                [
                    f"    const int {first} = ({PLAIN_START}) * {width};",
                    f"    if (!({inside}) && {' && '.join(items.aligned)}) {{",
                    *_loop(vector, var, first, "        "),
                    "    } else {",
                    f"        for (int item = 0; item < {width}; item++) {{",
                    f"            const int {var} = {first} + item;",
                    f"            if ({out})",
                    "                break;",
                    indented.rstrip("\n"),
                    "        }",
                    "    }",
                    "",
                ]
            )
            launch = (
                found[0].group(0).replace(found[0]["grid"], f"blocks_for({grid[1]}, {int(grid[2]) * width}, {grid[3]})")
            )
            new = new.replace(kernel.text, kernel.written(body=text).text).replace(found[0].group(0), launch)
        return new if new != source else None

    return Edit("vector_each", {"bytes": bytes_}, apply)
