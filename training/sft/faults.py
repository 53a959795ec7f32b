"""Mistakes of the kinds that a model makes, put into correct device-form sources, to learn their mending from."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of mistake: its name, what is replaced, and by what (as `re.Match.expand` takes it)."""

    name: str
    pattern: str
    replacement: str


FAULTS = (
    Fault("guard left out", r"    if \((\w+) >= (\w+)\)\n        return;\n", ""),
    Fault("guard off by one", r"(if \(\w+) >= (\w+\)\n        return;)", r"\1 > \2"),
    Fault("index without block", r"blockIdx\.x \* blockDim\.x \+ threadIdx\.x", "threadIdx.x"),
    Fault("wrong name", r"(?<=[\[ (])([a-z]\w{2,})(?=\[)", r"\1s"),
    Fault("wrong name", r"(?<=[-+*/] )([a-z]\w*)(?=[ ;)])", r"\1_val"),
    Fault("name of the C", r"\b(\w+)_count(?=\)| <| ,|,)", r"\1_cnt"),
    Fault("semicolon left out", r"(\w\]? ?[-+*]?= [^;\n]+);", r"\1"),
    Fault("bracket left out", r"\](?= [-+*])", ""),
    Fault("argument left out", r"(stream>>>\()\w+, ", r"\1"),
    Fault("arguments swapped", r"(stream>>>\()(\w+), (\w+)", r"\1\3, \2"),
    Fault("stream left out", r", 0, stream>>>", ">>>"),
    Fault("wrong operator", r"(?<=[\w)\]] )\+(?= [\w(])", "-"),
    Fault("wrong operator", r"(?<=[\w)\]] )\*(?= [\w(])", "+"),
    Fault("wrong operator", r"(?<=[\w)\]] )-(?= [\w(])", "+"),
    Fault("shifted index", r"\[(\w+)\](?! ?=)", r"[\1 + 1]"),
    Fault("wrong stride", r"\[(\w+) \* (\w+) \+ (\w+)\]", r"[\1 + \3]"),
    Fault("swapped index", r"\[(\w+) \* (\w+) \+ (\w+)\]", r"[\3 * \2 + \1]"),
    Fault("plain for atomic", r"atomicAdd\(&([^,\n]+), ([^;\n]+)\);", r"\1 += \2;"),
    Fault("barrier left out", r"    +__syncthreads\(\);\n", ""),
    Fault("written though const", r"(?<=, )(\w+ \*)(?=\w+[,)])", r"const \1"),
    Fault("wrong start", r"(?<== )0(?=;)", "1"),
    Fault("statement left out", r"\n +(?:const )?(?:float|double|int|unsigned) \w+ = [^\n]*;(?=\n)", ""),
    Fault("too few blocks", r"(blocks_for\(\w+, )(\d+)(, \d+\), )(\d+)", r"\g<1>1024\3\4"),
    Fault("too wide a block", r"(, \d+\), )(\d{3})(, 0, stream)", r"\g<1>2048\3"),
    Fault("wrong kernel name", r"_kernel(\d*)<<<", r"_k\1<<<"),
    Fault("other type", r"\bdouble (?=\w+ = )", "float "),
)
"""Every kind; where a source has no place for one, it is not applied."""


@dataclass(frozen=True, slots=True)
class Faulty:
    """A source with a mistake in it, and the mistake's name."""

    source: str
    fault: str


def with_a_fault(source: str, rng: random.Random) -> Faulty | None:
    """One mistake somewhere in the code of `source`, of a kind drawn evenly; `None` where there is no place."""
    start = source.find("static __global__")
    head, code = source[:start], source[start:]
    kinds = sorted({fault.name for fault in FAULTS})
    rng.shuffle(kinds)
    for kind in kinds:
        places = [
            (found, fault) for fault in FAULTS if fault.name == kind for found in re.finditer(fault.pattern, code)
        ]
        if not places or start < 0:
            continue
        found, fault = rng.choice(places)
        return Faulty(head + code[: found.start()] + found.expand(fault.replacement) + code[found.end() :], kind)
    return None
