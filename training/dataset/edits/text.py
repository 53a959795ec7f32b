"""Reads the parts of a generated source that edits need: kernels, their parameters, subscripts and launches.

Only for the one form that our generator writes (`codegen.emit`). What does not have it is not found, and an edit that
finds nothing gives `None`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

KERNEL = re.compile(
    r"^static __global__ void(?P<bounds> __launch_bounds__\(\d+\))? (?P<name>\w+)\((?P<params>[^\n]*)\)\n"
    r"\{\n(?P<body>.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
PLAIN_START = "blockIdx.x * blockDim.x + threadIdx.x"
_START = re.escape(PLAIN_START)
_FIRST_LOOP = (
    rf"    const int (?P<var>\w+) = {_START};\n    if \((?P=var) >= (?P<end>[^\n]*)\)\n        return;\n"
    rf"|    const long long (?P<at>\w+) = \(long long\){_START};\n"
    r"    if \((?P=at) >= (?P<count>\w+)\)\n        return;\n    const int (?P<shifted>\w+) = (?P<value>[^\n]*);\n"
)
LINE = re.compile(rf"\A(?:{_FIRST_LOOP})(?P<body>.*)\Z", re.DOTALL)
"""The body of a kernel with a thread per iteration of one loop: from 0 (``var``), or counted (``at``, ``shifted``)."""
PLANE = re.compile(
    rf"\A(?:{_FIRST_LOOP})"
    r"    for \(long long (?P<row_at>\w+) = \(long long\)blockIdx\.y \* blockDim\.y \+ threadIdx\.y;"
    r" (?P=row_at) < (?P<rows>\w+);\n[^\n]*\{\n"
    r"        const int (?P<row>\w+) = (?P<row_value>[^\n]*);\n(?P<body>.*?)^    \}\n\Z",
    re.MULTILINE | re.DOTALL,
)
"""The same of a launch over a plane, whose second loop runs over rows."""
GRID = re.compile(r"dim3\(blocks_for\((?P<x>\w+), \d+, \d+\), blocks_for\((?P<y>\w+), \d+, \d+\)\)")
"""The grid of a launch over a plane."""
_PARAMETER = re.compile(r"^(?P<const>const )?(?P<type>[\w ]+?) (?P<star>\*(?:__restrict__ )?)?(?P<name>\w+)$")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        name: As written.
        type: Of what it points to, or of the value; without ``const``.
        pointer: Whether it is one.
        const: Whether what it points to cannot be stored to.
    """

    name: str
    type: str
    pointer: bool
    const: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a source.

    Attributes:
        text: All of it, as it stands in the source.
        name, bounds, params, body: Its parts; `body` without the outer braces.
    """

    text: str
    name: str
    bounds: str
    params: str
    body: str

    @property
    def parameters(self) -> dict[str, Parameter]:
        """By name; empty where one is written in a form that is not known."""
        found = {}
        for part in self.params.split(", "):
            match = _PARAMETER.match(part)
            if match is None:
                return {}
            found[match["name"]] = Parameter(match["name"], match["type"], bool(match["star"]), bool(match["const"]))
        return found

    def written(self, *, body: str | None = None, name: str | None = None, more: str = "") -> Kernel:
        """Another kernel with a part replaced; `more` is added to its parameters."""
        new = replace(
            self,
            name=self.name if name is None else name,
            params=self.params + more,
            body=self.body if body is None else body,
        )
        return replace(new, text=f"static __global__ void{new.bounds} {new.name}({new.params})\n{{\n{new.body}}}\n")


@dataclass(frozen=True, slots=True)
class Access:
    """One subscript ``name[index]`` of a text, from `start` to `end`."""

    name: str
    index: str
    start: int
    end: int


def kernels(source: str) -> list[Kernel]:
    """All kernels of a source, in order."""
    return [Kernel(m.group(0), m["name"], m["bounds"] or "", m["params"], m["body"]) for m in KERNEL.finditer(source)]


def launches(source: str, name: str) -> list[re.Match[str]]:
    """The launches of a kernel: groups ``pad``, ``grid``, ``block``, ``args``."""
    return list(
        re.finditer(
            rf"^(?P<pad> +){name}<<<(?P<grid>.*), (?P<block>\d+|dim3\([^()]*\)), 0, stream>>>\((?P<args>.*)\);\n",
            source,
            re.MULTILINE,
        )
    )


def accesses(text: str, names: Iterable[str]) -> list[Access]:
    """Every subscript of the named pointers, innermost text of the brackets included."""
    found = []
    for match in re.finditer(rf"\b({'|'.join(map(re.escape, names)) or '-'})\[", text):
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
        found.append(Access(match[1], text[match.end() : at - 1], match.start(), at))
    return found


def identifiers(text: str) -> set[str]:
    """Names that occur in a text."""
    return set(re.findall(r"[A-Za-z_]\w*", text))


def statements(body: str, pad: str) -> list[str]:
    """The statements of a block whose lines are indented by `pad`: a compound one is a single item."""
    found: list[str] = []
    open_ = False
    for line in body.splitlines(keepends=True):
        top = line.startswith(pad) and not line.startswith(pad + " ")
        joins = line.startswith((pad + "}", pad + "{"))
        if top and not joins and not open_:
            found.append(line)
        elif found:
            found[-1] += line
        else:
            return []
        # A pragma, or the header of a loop or branch without braces, goes on with the next line.
        open_ = top and line.lstrip().startswith("#pragma")
    return found


def assigned_name(text: str, pointer: str) -> bool:
    """Whether a text stores to an element of `pointer` or takes the address of one."""
    for access in accesses(text, [pointer]):
        after, before = text[access.end :].lstrip(), text[: access.start].rstrip()
        if re.match(r"(=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)", after) or before.endswith(("++", "--", "&")):
            if before.endswith("&&"):
                continue
            return True
    return False
