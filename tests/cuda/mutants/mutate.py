"""Small faults put into correct kernels, deterministically: the sort that a translation is likely to have."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to be wrong.

    Attributes:
        name: As the report calls it.
        pattern: What is replaced, each place giving one mutant.
        replacement: As `re.Match.expand` takes it.
    """

    name: str
    pattern: str
    replacement: str


OPERATORS = (
    Operator("off-by-one bound", r"(?<=[\w)\]] )<(?= [\w(])", "<="),
    Operator("off-by-one bound", r"(?<=[\w)\]] )<=(?= [\w(])", "<"),
    Operator("off-by-one bound", r"(?<=[\w)\]] )>=(?= [\w(])", ">"),
    Operator("off-by-one bound", r"(?<=[\w)\]] )>(?= [\w(])", ">="),
    Operator("dropped barrier", r"__syncthreads\(\);", ";"),
    Operator("wrong operator", r"(?<=[\w)\]] )\+(?= [\w(])", "-"),
    Operator("wrong operator", r"(?<=[\w)\]] )-(?= [\w(])", "+"),
    Operator("wrong operator", r"(?<=[\w)\]] )\*(?= [\w(])", "+"),
    Operator("wrong operator", r"(?<=[\w)\]] )\+=(?= )", "-="),
    Operator("wrong operator", r"(?<= )&&(?= )", "||"),
    Operator("float for double", r"\bdouble (?=\w+ =|\w+\[)", "float "),
    Operator(
        "half for float", r"\bfloat (\w+) = ([^;,\n]*[\[*/(][^;,\n]*);", r"float \1 = __half2float(__float2half(\2));"
    ),
    Operator("missing tail", r"\((\w+) \+ (?:\d+|\w+ - 1)\) / (\w+)", r"(\1) / \2"),
    Operator("swapped index", r"\bthreadIdx\.x\b", "threadIdx.y"),
    Operator("swapped index", r"\bblockIdx\.x\b", "blockIdx.y"),
    Operator("swapped index", r"\[(\w+) \* (\w+) \+ (\w+)\]", r"[\3 * \2 + \1]"),
    Operator("swapped index", r"\[([\w.]+)\]\[([\w.]+)\]", r"[\2][\1]"),
    Operator("shifted index", r"\[(\w+)\](?! ?=)", r"[\1 > 0 ? \1 - 1 : 0]"),
    Operator("dropped atomic", r"atomicAdd\((?=&)&([^,\n]+), ([^;\n]+)\);", r"\1 += \2;"),
    Operator("wrong start", r"(?<== )0(?=;|\.0;|\.0f;)", "1"),
    Operator("wrong stride", r"(?<=\+= )(\w+)(?=\) *(?:\{|\n))", r"\1 + 1"),
    Operator("wrong constant", r"(?<=[-+*/%] )(\d+)(?=[;)\]])", r"\1 + 1"),
)
_LOADS = "stale halo"
_SHARED = re.compile(r"__shared__ [\w ]+?(\w+)\[[^;]*;")
_HALF = "#include <cuda_fp16.h>\n"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One faulty kernel.

    Attributes:
        kernel: Of which kernel.
        operator: What was done to it.
        line: 1-based line of the fault in the original.
        source: The whole text.
    """

    kernel: str
    operator: str
    line: int
    source: str


def mutants_of(kernel: str, source: str) -> list[Mutant]:
    """All mutants of one kernel, those of an operator in the order of their places."""
    start = source.index("__global__")
    found: list[Mutant] = []
    for operator in OPERATORS:
        for match in re.finditer(operator.pattern, source):
            if match.start() >= start and not _in_noise(source, match.start()):
                changed = match.expand(operator.replacement)
                found.append(_mutant(kernel, operator.name, source, match.start(), match.end(), changed))
    for name in dict.fromkeys(_SHARED.findall(source)):
        for match in re.finditer(rf"^ +(?:if [^\n]*\n +)?{name}\[[^;\n]*\] = [^;\n]*\w+\[[^;\n]*;", source, re.M):
            found.append(_mutant(kernel, _LOADS, source, match.start(), match.end(), "    ;"))
    return [mutant for mutant in found if mutant.source != source]


def _mutant(kernel: str, operator: str, source: str, start: int, end: int, changed: str) -> Mutant:
    text = source[:start] + changed + source[end:]
    line = source.count("\n", 0, start) + 1
    return Mutant(kernel, operator, line, _HALF + text if "__float2half" in changed else text)


def _in_noise(source: str, at: int) -> bool:
    line = source[source.rfind("\n", 0, at) + 1 : at]
    return line.lstrip().startswith(("#", "//"))


def chosen(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """All mutants, no text twice, in an order that takes operators in turn and, within each, kernels as they fall."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in {m.source: m for m in mutants}.values():
        by_operator.setdefault(mutant.operator, []).append(mutant)
    rows = [sorted(group, key=_shuffled) for _, group in sorted(by_operator.items())]
    for turn in zip_longest(*rows):
        yield from (mutant for mutant in turn if mutant is not None)


def _shuffled(mutant: Mutant) -> str:
    return hashlib.sha256(f"{mutant.kernel} {mutant.operator} {mutant.source}".encode()).hexdigest()
