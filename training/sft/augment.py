"""The families' training members as other people would have written them: names, styles, constants, types.

Whatever is changed, the variants are generated anew from the changed C, so that the pair stays a translation.
"""

from __future__ import annotations

import random
import re
from string import Template

from training.dataset.families import FAMILIES
from training.dataset.families.model import Family
from training.dataset.families.style import restyle
from training.sft import vocabulary as words
from training.sft.programs import Written
from training.splits import UNSEEN_FAMILIES, VALIDATION_MEMBER

SEEN = tuple(family for family in FAMILIES if family.name not in UNSEEN_FAMILIES)
"""Families that are learned from."""

_RENAMED = 0.7
_NEW_ENTRY = 0.5
_NEW_CONSTANTS = 0.5
_NEW_TYPE = 0.25
_SEEDS = 1 << 20
_DECLARED = re.compile(
    r"\b(?:int|long|float|double|char|short|unsigned|u32|const|restrict)\s+(?:restrict\s+)?(\*?)\s*(?:restrict\s+)?"
    r"([A-Za-z_]\w*)\s*(\[?)"
)
_COUNTED = re.compile(r"for \(int (\w+) =")
_REAL = re.compile(r"(?<![\w.])(\d+\.\d+(?:e-?\d+)?)(f?)\b")


def written_anew(family: Family, seed: int) -> Written:
    """A training member of a family in another style: the same text for the same seed."""
    rng = random.Random(f"{family.name} {seed}")
    member = rng.randrange(VALIDATION_MEMBER)
    text = Template(family.template).substitute({k: str(v) for k, v in family.fill(member).items()})
    source = restyle(text.strip() + "\n", seed=rng.randrange(_SEEDS), member=rng.randrange(_SEEDS)).source
    entry = family.name
    if rng.random() < _NEW_CONSTANTS:
        source = _REAL.sub(lambda found: _constant(found, rng), source)
    if rng.random() < _NEW_TYPE:
        source = _retyped(source, rng)
    if rng.random() < _RENAMED:
        source, entry = _renamed(source, entry, rng)
    return Written(source, entry, f"family:{family.name}")


def _constant(found: re.Match[str], rng: random.Random) -> str:
    if rng.random() < 0.4 or "e" in found[1]:
        return found[0]
    return (
        f"{rng.randint(0, 3)}.{rng.choice(('5', '25', '1', '75', '125', '2', '05', str(rng.randint(1, 99))))}{found[2]}"
    )


def _retyped(source: str, rng: random.Random) -> str:
    """Single precision becomes double, or the other way round; ranges in the comment stay."""
    if re.search(r"\bfloat\b", source) and not re.search(r"\bdouble\b", source):
        source = re.sub(r"\bfloat\b", "double", source)
        source = re.sub(r"\b(sqrt|exp|tanh|log|fabs|sin|cos|pow|cbrt)f\b", r"\1", source)
        return re.sub(r"(\d\.\d*(?:e-?\d+)?)f\b", r"\1", source)
    if re.search(r"\bdouble\b", source) and not re.search(r"\bfloat\b", source):
        source = re.sub(r"\bdouble\b", "float", source)
        if rng.random() < 0.6:
            source = re.sub(r"\b(sqrt|exp|tanh|log|fabs|sin|cos|pow|cbrt)\(", r"\1f(", source)
    return source


def _renamed(source: str, entry: str, rng: random.Random) -> tuple[str, str]:
    present = set(re.findall(r"[A-Za-z_]\w*", source))
    names = words.Names(rng, present)
    counters = set(_COUNTED.findall(source))
    pools: dict[str, tuple[str, ...]] = {}
    for pointer, name, bracket in _DECLARED.findall(source):
        if name in words.RESERVED or name in pools or name == entry or name in _TYPES:
            continue
        if name in counters:
            pools[name] = words.COUNTERS + words.SECOND
        elif pointer or bracket:
            pools[name] = words.INPUTS + words.OUTPUTS
        else:
            pools[name] = words.SIZES if f"int {name}" in source.split("{", 1)[0] else words.LOCALS + words.TOTALS
    new = {old: names.pick(pool) for old, pool in pools.items() if rng.random() < 0.75 and old.isidentifier()}
    if rng.random() < _NEW_ENTRY:
        new[entry] = names.function()
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, new)) + r")\b") if new else None
    if pattern is not None:
        source = pattern.sub(lambda found: new[found[1]], source)
    return source, new.get(entry, entry)


_TYPES = frozenset("int long float double char short unsigned u32 uint32_t const restrict static inline void".split())
