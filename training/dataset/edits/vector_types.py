"""The vector types of CUDA, and the lines that load one into an array of its elements and store it from there."""

from __future__ import annotations

from dataclasses import dataclass

from training.dataset.edits.text import Parameter

VECTOR_BASES = {
    "float": "float", "int": "int", "unsigned int": "uint", "unsigned char": "uchar", "char": "char",
    "signed char": "char", "short": "short", "unsigned short": "ushort", "double": "double", "long long": "longlong",
    "unsigned long long": "ulonglong", "long": "longlong", "unsigned long": "ulonglong",
}  # fmt: skip
"""What the vectors of a type are named after."""
_BYTES = {"float": 4, "int": 4, "uint": 4, "uchar": 1, "char": 1, "short": 2, "ushort": 2,
          "double": 8, "longlong": 8, "ulonglong": 8}  # fmt: skip
FIELDS = "xyzw"
"""Of a vector, in order."""
LEAST_BYTES = 8
"""Of the widest vector: less is no vector for `features` either."""


def vector_type(kind: str, width: int) -> str:
    """The name of the vector of `width` elements of a type; of more than four, of words of the same size."""
    return f"{VECTOR_BASES[kind]}{width}" if width <= len(FIELDS) else f"uint{width * _BYTES[VECTOR_BASES[kind]] // 4}"


def common_width(parameters: list[Parameter], bytes_: int, turns: int | None = None) -> int:
    """Elements of a vector for which no type needs more than `bytes_`, and that divide `turns`; below 2: none."""
    sizes = [_BYTES[VECTOR_BASES[p.type]] for p in parameters]
    width = min(bytes_ // size for size in sizes)
    if max(sizes) > 1:
        width = min(width, len(FIELDS))  # only bytes may be taken for elements of another type
    while width > 1 and turns is not None and turns % width:
        width //= 2
    return width if width * max(sizes) >= LEAST_BYTES else 0


@dataclass(frozen=True, slots=True)
class Moved:
    """How a vector of one buffer is loaded and stored.

    Attributes:
        load: Lines that make an array of its elements, with `before` and `after` around them if given.
        store: The line that stores it.
    """

    load: list[str]
    store: str


def moved(
    kind: str, width: int, tag: str, place: str, *, loads: bool, stores: bool, before: str = "", after: str = ""
) -> Moved:
    """Lines for the vector at `place`, its elements in the array ``TAG_item``.

    Args:
        kind: Type of an element.
        width: How many.
        tag: What names are made of.
        place: Pointer to the first.
        loads: Whether the old values are needed.
        stores: Whether they change.
        before, after: Values of the neighbours, as first and last of the array; empty for none.
    """
    vector, array = vector_type(kind, width), f"{tag}_item"
    near = [x for x in (before, after) if x]
    if width > len(FIELDS):
        lines = [
            f"__align__({width * _BYTES[VECTOR_BASES[kind]]}) {kind} {array if not near else tag + '_four'}[{width}];"
        ]
        if loads:
            lines.append(f"*({vector} *){array if not near else tag + '_four'} = *(const {vector} *)({place});")
        if near:
            values = [before, *(f"{tag}_four[{i}]" for i in range(width)), after]
            lines.append(f"const {kind} {array}[{width + 2}] = {{{', '.join(values)}}};")
        return Moved(lines, f"*({vector} *)({place}) = *(const {vector} *){array};")
    lines = [f"{kind} {array}[{width}];"]
    if loads:
        values = [
            *([before] if before else []),
            *(f"{tag}_four.{f}" for f in FIELDS[:width]),
            *([after] if after else []),
        ]
        lines = [f"const {vector} {tag}_four = *(const {vector} *)({place});",
                 f"{'' if stores else 'const '}{kind} {array}[{len(values)}] = {{{', '.join(values)}}};"]  # fmt: skip
    made = ", ".join(f"{array}[{i}]" for i in range(width))
    return Moved(lines, f"*({vector} *)({place}) = make_{vector}({made});")
