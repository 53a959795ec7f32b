"""Seconds that one candidate costs: compile, emulator build, visible and hidden tests, first and already built.

Run ``python benchmarks/candidate.py [FILE.c ...]``; without files, four of the handed cases and a 60-line file. The
aim: an already compiled candidate of 60 lines goes through the visible tests on the emulator in under a second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parents[1] / "tests" / "cases" / "c"
DEFAULT = ("saxpy", "gemm", "softmax_rows", "conv2d_same", "dot")


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of one candidate."""

    name: str
    lines: int
    prepare: float
    compile: float
    visible_first: float
    visible_again: float
    hidden: float


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds of one piece of work."""
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def measure(path: Path) -> Row:
    """All phases of the likely fastest variant of one C file. A fresh verifier forgets results, not builds."""
    from cudaperf_agent.codegen.variants import generate
    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.tasks.parse import load_task
    from cudaperf_agent.tasks.prepare import prepare

    started = time.perf_counter()
    task = await prepare(load_task(path))
    prepared = time.perf_counter() - started
    source = generate(task).variants[0].source
    first, again = Verifier(gpu=None), Verifier(gpu=None)
    compiled = await timed(lambda: first.compile(task, source))
    await first.test(task, source)
    repeats = []
    for _ in range(5):
        fresh = Verifier(gpu=None)
        fresh._suites = first._suites  # the task's expected outputs are made once per task, not per candidate
        repeats.append(await timed(lambda fresh=fresh: fresh.test(task, source)))  # type: ignore[misc]
    visible_first = await timed(lambda: again.test(task, source))
    hidden = await timed(lambda: first.test(task, source, hidden=True))
    return Row(path.stem, source.count("\n"), prepared, compiled, visible_first, statistics.median(repeats), hidden)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    chosen = parser.parse_args().files or [CASES / f"{name}.c" for name in DEFAULT]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CUDAPERF_CACHE_DIR"] = cache
        started = time.perf_counter()
        from cudaperf_agent.cuda.emulator import compiler, runtime_library

        runtime_library()
        compiler.precompiled_headers("check")
        print(f"once per machine: emulator runtime and headers {time.perf_counter() - started:.1f} s")
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seconds:")
        head = ("file", "lines", "prepare", "compile", "visible", "again", "hidden")
        print(f"{head[0]:16}" + "".join(f"{h:>9}" for h in head[1:]))
        for path in chosen:
            row = asyncio.run(measure(path))
            values = (row.prepare, row.compile, row.visible_first, row.visible_again, row.hidden)
            print(f"{row.name:16}{row.lines:>9}" + "".join(f"{v:>9.2f}" for v in values), flush=True)
    print(
        "prepare: the C under sanitizers; compile: nvcc and the emulator's build; visible: with expected outputs made;"
    )
    print("again: the same candidate already built, expected outputs known, all visible cases run (median of 5).")


if __name__ == "__main__":
    main()
