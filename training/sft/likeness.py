"""Whether a C text is one of an evaluation set under other names: what must be kept out of training."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from training.dataset.families import all_programs
from training.sft.vocabulary import RESERVED
from training.splits import split_of

ALIKE = 0.85
"""Share of common token sequences from which two programs count as the same one."""

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|<<=|>>=|[-+*/%&|^<>=!]=|\+\+|--|&&|\|\||<<|>>|[^\s\w]")
_KEPT = (RESERVED - {"x", "y0", "y1", "index", "time", "entry", "setup", "odd"}) | {
    "sqrt", "sqrtf", "exp", "expf", "fabs", "fabsf", "tanh", "tanhf", "sinf", "cosf", "logf", "fmax", "fmin", "cbrt",
}  # fmt: skip
_TYPES = {"float": "T", "double": "T", "int": "T", "long": "T", "short": "T", "char": "T", "const": "", "restrict": "",
          "unsigned": "", "static": "", "inline": ""}  # fmt: skip
_RUN = 6


def exact_form(source: str) -> str:
    """The text without comments and layout, names by order of first use; types and numbers stay."""
    names: dict[str, str] = {}
    return " ".join(_renamed(token, names) for token in _tokens(source))


def shape_of(source: str) -> frozenset[tuple[str, ...]]:
    """All runs of six tokens, with names, types and numbers made alike."""
    tokens = []
    for token in _tokens(source):
        if token in _TYPES:
            token = _TYPES[token]
        elif token[0].isdigit():
            token = "0"
        elif (token[0].isalpha() or token[0] == "_") and token not in _KEPT:
            token = "v"
        if token:
            tokens.append(token)
    return frozenset(tuple(tokens[k : k + _RUN]) for k in range(max(1, len(tokens) - _RUN + 1)))


class Kept:
    """What is kept out: unseen families also where only shaped alike, other evaluation members where the same."""

    def __init__(self, exact: Iterable[str], shaped: Iterable[str]) -> None:
        self._exact = {exact_form(source) for source in exact}
        self._shapes = [shape_of(source) for source in shaped]

    def out(self, source: str) -> bool:
        """Whether the source must not be learned from."""
        if exact_form(source) in self._exact:
            return True
        mine = shape_of(source)
        return any(len(mine & other) >= ALIKE * len(mine | other) for other in self._shapes)


@lru_cache(maxsize=1)
def evaluation_sets() -> Kept:
    """All programs of unseen families, and the validation and held-out members of the others."""
    split = {"train": [], "validation": [], "held_out_member": [], "unseen_family": []}  # type: dict[str, list[str]]
    for program in all_programs():
        split[split_of(program.family, program.member)].append(program.source)
    return Kept(split["validation"] + split["held_out_member"] + split["unseen_family"], split["unseen_family"])


def _tokens(source: str) -> list[str]:
    return _TOKEN.findall(_COMMENT.sub(" ", source))


def _renamed(token: str, names: dict[str, str]) -> str:
    if not (token[0].isalpha() or token[0] == "_") or token in _KEPT or token in _TYPES:
        return token
    return names.setdefault(token, f"v{len(names)}")
