"""How people write: the same C with other names, loop headers, braces and comments.

Only the text changes, never what it computes. Names that a template wants to keep are not in `SYNONYMS`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SYNONYMS: dict[str, tuple[str, ...]] = {
    "n": ("n", "count", "len", "size", "N", "num", "total", "npoints"),
    "rows": ("rows", "height", "nrows", "h", "R", "ny", "num_rows", "lines"),
    "cols": ("cols", "width", "ncols", "w", "C", "nx", "num_cols", "pitch"),
    "i": ("i", "idx", "i", "r", "ii", "y0", "i", "at"),
    "j": ("j", "jdx", "c", "col_at", "jj", "x0", "j", "pos"),
    "k": ("k", "t", "q", "kk", "inner", "s", "m", "e"),
    "x": ("x", "src", "input", "a", "values", "data", "vec", "in_buf"),
    "y": ("y", "dst", "other", "b", "aim", "state", "acc_buf", "field"),
    "res": ("res", "result_buf", "output", "dest", "outcome", "z", "o", "out_data"),
    "acc": ("acc", "sum", "s0", "tally", "v", "running", "tot", "partial"),
    "img": ("img", "image", "pixels", "frame", "picture", "plane", "im", "raster"),
    "wgt": ("wgt", "weights", "coef", "taps", "filt", "mask", "kern", "stencil_w"),
}
_COMMENTS = (
    "",
    "/* {name} */\n",
    "// {name}: see the tests for the expected values\n",
    "/*\n * {name}\n * Works on plain arrays; nothing is allocated.\n */\n",
    "",
    "// computes {name}\n",
    "/** {name}, straightforward version. */\n",
    "/* TODO: make this faster */\n",
)
_LOOP = re.compile(r"for \(int (\w+) = ([^;]+); (\w+) < ([^;]+); \w+\+\+\)")


class Styled(NamedTuple):
    """The text and how names were changed: old → new."""

    source: str
    renamed: dict[str, str]


def restyle(text: str, *, seed: int, member: int) -> Styled:
    """Write `text` as another person would; deterministic in `seed` and `member`."""
    choice = seed + member
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    renamed: dict[str, str] = {}
    for position, (name, synonyms) in enumerate(SYNONYMS.items()):
        new = synonyms[(choice + 3 * position) % len(synonyms)]
        if name in words and new != name and new not in words and new not in renamed.values():
            renamed[name] = new
    for old, new in renamed.items():
        text = re.sub(rf"\b{old}\b", new, text)
    text = _loops(text, choice)
    if choice % 3 == 1:  # braces on lines of their own
        text = re.sub(r"^(\s*)((?:for|if|else|while).*\)|else) \{$", r"\1\2\n\1{", text, flags=re.MULTILINE)
    if choice % 4 == 2:
        text = text.replace("    ", "  ")
    elif choice % 4 == 3:
        text = text.replace("    ", "\t")
    comment = _COMMENTS[(choice // 2) % len(_COMMENTS)]
    return Styled(comment.format(name=_title(text)) + text, renamed)


def _loops(text: str, choice: int) -> str:
    step = ("{v}++", "++{v}", "{v} += 1", "{v}++")[choice % 4]

    def header(found: re.Match[str]) -> str:
        variable, start, tested, end = found.groups()
        if variable != tested:
            return found.group(0)
        test = f"{end} > {variable}" if choice % 7 == 3 and "&&" not in end else f"{variable} < {end}"
        return f"for (int {variable} = {start}; {test}; {step.format(v=variable)})"

    return _LOOP.sub(header, text)


def _title(text: str) -> str:
    names = re.findall(r"^(?:void|int|float|double|long|unsigned|static .*?) \*?(\w+)\(", text, re.MULTILINE)
    return names[-1].replace("_", " ") if names else "kernel"
