"""How many honest translations the error budget rejects at the timed size, without a GPU.

    python -m benchmarks.timed_tolerance --members 1 --mib 16 --out tolerance.jsonl

For each C file of the tests, members of the data set's families and the transfer set, contents are made as for timing.
In place of a kernel runs the C itself, built in ways that a GPU may differ in and that the budget is not made from:
contracted and vectorised as gcc likes, with random errors of mathematical functions within what CUDA documents (uniform
or greatest), sums reordered over other widths, `float` accumulators turned `double`. Each is compared twice:
with the budget as it is, and as it was at first, when it knew nothing of the errors of mathematical functions and left
each element to its own luck. A line of the output is a task; tasks that are in the file are left out. Ends with 1 if
anything is rejected by the budget as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.handed import CASES, prepared
from cudaperf_agent.cuda.baselines import timed_case
from cudaperf_agent.cuda.c_baselines import native_baseline
from cudaperf_agent.cuda.timing import TIMING
from cudaperf_agent.errors import CudaPerfError
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.execution.native import call_native
from cudaperf_agent.tasks.budget import BudgetConfig, Expected, leaves
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.compare import compare, compare_part
from cudaperf_agent.tasks.device_math import device_functions, device_math_flags, device_math_text
from cudaperf_agent.tasks.model import Case, Task, Value
from cudaperf_agent.tasks.oracle import ORACLE_LIMITS, Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.reference_build import compiler
from cudaperf_agent.tasks.sizes import integers
from cudaperf_agent.tasks.stub import call_stub, native_arguments, outputs_by_name
from cudaperf_agent.tasks.widen import has_floats
from training.dataset.families import all_programs
from training.dataset.transfer import hand_written, transfer_names

_EXACT = ("-O1", "-ffp-contract=off")
_FUSED = ("-O3", "-march=native", "-ffp-contract=fast")
_REORDERED = (*_FUSED, "-funroll-loops", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
# In place of the patterns that the budget is made from.
_DIRECTION = """
static unsigned long cudaperf_turn, cudaperf_number;
static double cudaperf_direction(void)
{
    unsigned long mixed = ++cudaperf_number * 0xD1342543DE82EF95ul + 0x2545F4914F6CDD1Dul;
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9ul;
    mixed ^= mixed >> 32;
    return CHOICE;
}
"""
_CHOICES = {"uniform": "(double)(mixed >> 11) * 0x1p-52 - 1", "greatest": "mixed >> 63 ? 1 : -1"}
_ACCUMULATOR = re.compile(r"\bfloat(?=\s+\w+\s*(?:=|;))")


@dataclass(frozen=True, slots=True)
class Honest:
    """One way to compute what the C does. `errors`: of mathematical functions, a key of `_CHOICES`, or none."""

    name: str
    flags: tuple[str, ...]
    errors: str = ""
    doubled: bool = False

    def text(self, task: Task) -> str | None:
        """Its C text with a call stub; `None` where it would be that of the plain C."""
        source = task.source
        if self.doubled:
            head, brace, body = source.partition("{")
            source = head + brace + _ACCUMULATOR.sub("double", body)
            if source == task.source:
                return None
        if not self.errors:
            return source + call_stub(task)
        functions = device_functions(task)
        direction = _DIRECTION.replace("CHOICE", _CHOICES[self.errors])
        return source + device_math_text(functions, call_stub(task), direction) if functions else None


HONEST = (
    Honest("contracted", _FUSED),
    Honest("reordered", _REORDERED),
    Honest("double accumulators", _EXACT, doubled=True),
    Honest("functions, uniform errors", _EXACT, "uniform"),
    Honest("functions, uniform errors, contracted", _FUSED, "uniform"),
    Honest("functions, greatest errors", _EXACT, "greatest"),
)


class Watched(Oracle):
    """An oracle that also gives the budget as it was, from the host's functions and each element's own builds alone."""

    without: Expected

    def _expected(
        self, case: Case, plain: dict[str, Value], other: dict[str, dict[str, Value]], budget: BudgetConfig
    ) -> Expected:
        host = {build: outputs for build, outputs in other.items() if not build.startswith("device math")}
        self.without = super()._expected(case, plain, host, replace(budget, crowd=sys.maxsize))
        return super()._expected(case, plain, other, budget)


@dataclass(frozen=True, slots=True)
class Named:
    """A task under the name that the output has it by."""

    name: str
    task: Task


async def tasks(members: int, only: frozenset[str], functions: bool = False) -> list[Named]:
    """The handed files, the first members of each family and the transfer set, as far as they compute with floats.

    With `functions`, only those that call mathematical functions with errors.
    """
    found = []
    for path in sorted(CASES.glob("*.c")):
        if not only or path.stem in only:
            found.append(Named(path.stem, await prepared(path)))
    for member in all_programs():
        if member.member < members and (not only or member.name in only):
            found.append(Named(member.name, load_task(source=member.source, entry=member.entry)))
    for name in transfer_names():
        if not only or name in only:
            program = hand_written(name)
            found.append(Named(name, load_task(source=program.source, entry=program.entry)))
    found = [named for named in found if named.task.mode == "function" and has_floats(named.task)]
    return [named for named in found if not functions or device_functions(named.task)]


async def judged(task: Task, mib: int, sets: int) -> dict[str, Any]:
    """By honest way, elements that each budget rejects on so many contents, and the worst error ÷ allowance."""
    config = replace(TIMING, size_bytes=mib << 20)
    case = await timed_case(task, await native_baseline(task), config, None)
    sizes = {name: int(case.values[name]) for name in integers(task).sizes}
    line: dict[str, Any] = {"sizes": sizes, "sets": sets, "functions": list(device_functions(task)), "ways": {}}
    with tempfile.TemporaryDirectory(prefix="cudaperf-tolerance-") as scratch:
        libraries = [(way, await _built(task, way, Path(scratch))) for way in HONEST]
        for seed in range(1, sets + 1):
            content = sized_case(task, sizes, seed)
            oracle = Watched(task)
            expected = (await oracle.expected([content]))[0]
            for way, library in libraries:
                if library is None:
                    continue
                run = await call_native(library, [native_arguments(task, content)], limits=ORACLE_LIMITS)
                if not run.outcomes:
                    continue
                got = outputs_by_name(task, run.outcomes[0].outputs)
                seen = line["ways"].setdefault(way.name, {"before": 0, "after": 0, "worst": 0.0, "elements": 0})
                seen["before"] += _wrong(task, content, oracle.without, got)
                seen["after"] += _wrong(task, content, expected, got)
                seen["worst"] = max(seen["worst"], compare(task, content, expected, got).worst_error)
                seen["elements"] += sum(o.value.size for o in expected.outputs)
    return line


def _wrong(task: Task, case: Case, expected: Expected, got: dict[str, Value]) -> int:
    if compare(task, case, expected, got).ok:
        return 0
    count = 0
    for output in expected.outputs:
        for part, leaf in zip(output.parts, leaves(got[output.name]), strict=True):
            count += int(np.count_nonzero(compare_part(part, leaf.values).wrong))
    return max(1, count)


async def _built(task: Task, way: Honest, folder: Path) -> Path | None:
    text = way.text(task)
    if text is None:
        return None
    source, made = folder / f"{way.name}.c", folder / f"{way.name}.so"
    source.write_text(text)
    flags = device_math_flags(device_functions(task)) if way.errors else ()
    options = [*way.flags, *flags, "-shared", "-fPIC", "-fno-strict-aliasing", "-w"]
    argv = [compiler(), *options, *(f"-D{d}" for d in task.defines), "-o", str(made), str(source), "-lm"]
    child = await run_child(argv, limits=Limits(seconds=60.0), cwd=folder)
    return made if child.ok and made.exists() else None


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Tasks with a rejection, and the sum over all, as Markdown."""
    yield "| task | way | elements | rejected before | rejected now | worst error ÷ allowance |"
    yield "|---|---|--:|--:|--:|--:|"
    before, after, pairs = 0, 0, 0
    for line in lines:
        for way, seen in line["ways"].items():
            pairs += 1
            before += seen["before"] > 0
            after += seen["after"] > 0
            if seen["before"] or seen["after"]:
                yield (
                    f"| `{line['task']}` | {way} | {seen['elements']:,} | {seen['before']:,} | {seen['after']:,} "
                    f"| {seen['worst']:.2g} |"
                )
    yield f"| {len(lines)} tasks | {pairs} in all | | {before} of {pairs} | {after} of {pairs} | |"


async def sweep(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every task that the file does not have yet; gives all lines of the file."""
    known = options.out.read_text().splitlines() if options.out.exists() else []
    lines: list[dict[str, Any]] = [json.loads(line) for line in known]
    done = {line["task"] for line in lines}
    for named in await tasks(options.members, frozenset(options.only), options.functions):
        if named.name in done:
            continue
        try:
            line = {"task": named.name, **await judged(named.task, options.mib, options.sets)}
        except CudaPerfError as error:
            print(f"{named.name}: {error}", file=sys.stderr, flush=True)
            continue
        lines.append(line)
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        worst = max((seen["worst"] for seen in line["ways"].values()), default=0.0)
        print(f"{named.name}: worst error ÷ allowance {worst:.2g}", file=sys.stderr, flush=True)
    return lines


def main() -> int:
    """Parse the arguments, judge, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--members", type=int, default=1, help="of each family")
    parser.add_argument("--mib", type=int, default=64, help="bytes of a content set, in MiB, at most")
    parser.add_argument("--sets", type=int, default=1, help="content sets of a task")
    parser.add_argument("--functions", action="store_true", help="only tasks that call mathematical functions")
    parser.add_argument("--only", action="append", default=[], help="names of tasks")
    parser.add_argument("--out", type=Path, default=Path("timed_tolerance.jsonl"))
    lines = asyncio.run(sweep(parser.parse_args()))
    print("\n".join(table(lines)))
    return int(any(seen["after"] for line in lines for seen in line["ways"].values()))


if __name__ == "__main__":
    sys.exit(main())
