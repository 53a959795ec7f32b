"""Rows again with other names: C, prompt and answer are renamed together, so the pair stays a translation.

The generator makes names of its own from those of the C (``i`` gives ``i_count``, ``i_at``, ``i_2``); they follow.
Renaming costs a thousandth of generating, and what has to be learned is to copy whatever name there is.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from training.sft import vocabulary as words
from training.sft.rows import Row

_C = re.compile(r"```c\n(.*?)\n```", re.DOTALL)
_ENTRY = re.compile(r"^Entry: `(\w+)`", re.MULTILINE)
_DECLARED = re.compile(
    r"\b(?:int|long|float|double|char|short|unsigned|const|restrict)\s+(?:restrict\s+)?(\*?)\s*(?:restrict\s+)?"
    r"([A-Za-z_]\w*)\s*(\[?)"
)
_MORE = re.compile(r"\b(?:int|float|double|unsigned) (\w+) = [^;()]*?, (\w+) = ")
_COUNTED = re.compile(r"for \(int (\w+) =")
_PARTS = re.compile(r"(?<=```c\n).*?(?=\n```)|(?<=```cuda\n).*?(?=\n```)|^Entry: .*?(?=\n\n)", re.DOTALL | re.MULTILINE)
"""What is renamed of a prompt: its code, and the list of parameters."""
_PROSE = frozenset("entry parameters read only written and elements of from to at least most odd".split())
"""Words of the list of parameters."""
_OWN = frozenset("count block most blocks other offset lane item stream status threads value".split())
"""Names that the generator uses whatever the C says."""
_SENTENCE = re.compile(r"^(```cuda\n// )(\w+)(: [^\n]*\n)(.*)", re.DOTALL)
"""An answer: its first comment names the entry and says the strategy in words."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_SHARE = 0.8
"""Share of the names that are changed."""
_TYPES = frozenset("int long float double char short unsigned u32 uint32_t const restrict static inline void".split())


def renamed(row: Row, number: int) -> Row | None:
    """The twin of that number of a row, always the same; `None` where there is nothing to rename safely."""
    found, entry, answer = _C.search(row.user), _ENTRY.search(row.user), _SENTENCE.match(row.answer)
    if row.kind != "task" or found is None or entry is None or answer is None:
        return None
    rng = random.Random(f"twin {number} {row.user} {row.strategy}")
    c = found[1]
    present = set(_WORD.findall(row.user)) | set(_WORD.findall(row.answer))
    names = words.Names(rng, present)
    in_c = set(_WORD.findall(c))
    new: dict[str, str] = {}
    for old, pool in _pools(c, entry[1]).items():
        if (
            rng.random() > _SHARE
            or old in _PROSE | _OWN
            or any(word != old and word.startswith(old + "_") for word in in_c)
        ):
            continue
        fresh = names.pick(pool)
        if not any(word.startswith((fresh + "_", fresh + "2")) for word in present):
            new[old] = fresh
    if rng.random() < _SHARE and not any(word != entry[1] and word.startswith(entry[1] + "_") for word in in_c):
        new[entry[1]] = names.function()
    if not new:
        return None
    # A derived name goes with the longest name that it begins with.
    olds = sorted(new, key=len, reverse=True)
    pattern = re.compile(r"(?<![\w\"])(?<![^.]\.)(" + "|".join(map(re.escape, olds)) + r")(?=_(?!_)|\b)")

    def change(text: str) -> str:
        return pattern.sub(lambda match: new[match[1]], text)

    user = _PARTS.sub(lambda part: change(part[0]), row.user)
    return replace(row, user=user, answer=answer[1] + new.get(answer[2], answer[2]) + answer[3] + change(answer[4]))


def _pools(c: str, entry: str) -> dict[str, tuple[str, ...]]:
    counters = set(_COUNTED.findall(c))
    head = c.split("\n{", 1)[0]
    pools: dict[str, tuple[str, ...]] = {}
    for pointer, name, bracket in _DECLARED.findall(c):
        if name in words.RESERVED or name in _TYPES or name == entry or name in pools:
            continue
        if name in counters:
            pools[name] = words.COUNTERS + words.SECOND
        elif pointer or bracket:
            pools[name] = words.INPUTS + words.OUTPUTS
        elif f"int {name}" in head:
            pools[name] = words.SIZES
        else:
            pools[name] = words.LOCALS + words.TOTALS + words.SCALARS
    for pair in _MORE.findall(c):
        for name in pair:
            pools.setdefault(name, words.LOCALS)
    return {name: pool for name, pool in pools.items() if name not in words.RESERVED}
