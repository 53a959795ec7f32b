"""Many verdicts in a row on the emulator, and what they leave behind: handles, temporary files, processes, memory.

    python -m benchmarks.soak --verdicts 10000 --minutes 8

Candidates of every ending take turns: right, wrong, out of bounds, a race, one that ends its process, one that dies.
They are compiled before the count begins. Only one verdict is remembered at a time, so each is made anew. Ends with 1
if anything but memory has grown, or if memory has grown by more than `RSS_GROWTH`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

RSS_GROWTH = 0.10
WARM_UP = 200
SAXPY = "void saxpy(int n, float a, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i]; }\n"
BODIES = {
    "right": "if (i < n) y[i] = a * x[i] + y[i];",
    "wrong": "if (i < n) y[i] = a * x[i] - y[i];",
    "out of bounds": "if (i <= n) y[i] = a * x[i] + y[i];",
    "race": "if (i < n) { y[i] = a * x[i] + y[i]; y[0] = y[0]; }",
}
ENDINGS = {"exits": "if (n == 7) exit(0);", "dies": "if (n == 7) abort();", "right again": ""}
KERNEL = """#include <cstdlib>
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    ENDING
    if (n > 0)
        kernel<<<(n + 127) / 128, 128, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
"""


@dataclass(frozen=True, slots=True)
class Left:
    """What this process holds at one moment."""

    handles: int
    files: int
    processes: int
    threads: int
    kibibytes: int


def left(temporary: Path) -> Left:
    """Counted from /proc and the temporary folder."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    children = sum(len((t / "children").read_text().split()) for t in Path("/proc/self/task").iterdir())
    return Left(
        handles=len(os.listdir("/proc/self/fd")),
        files=sum(1 for _ in temporary.rglob("*")),
        processes=children,
        threads=int(status["Threads"]),
        kibibytes=int(status["VmRSS"].split()[0]),
    )


def sources() -> list[str]:
    """One candidate per ending."""
    bodies = [KERNEL.replace("BODY", body).replace("ENDING", "") for body in BODIES.values()]
    right = BODIES["right"].replace("a * x[i] + y[i]", "y[i] + a * x[i]")
    return [*bodies, *(KERNEL.replace("BODY", right).replace("ENDING", ending) for ending in ENDINGS.values())]


async def soak(verdicts: int, minutes: float, temporary: Path) -> bool:
    """Make verdicts until the number or the time is reached; whether nothing was left behind."""
    task = await prepare(load_task(source=SAXPY))
    verifier = Verifier(VerifierConfig(remembered=1), gpu=None)
    candidates = sources()
    counts: Counter[str] = Counter()
    start = end = left(temporary)
    began = time.monotonic()
    made = 0
    for number in range(-WARM_UP, verdicts):
        if number == 0:
            counts.clear()
            start, began = left(temporary), time.monotonic()
            print("verdicts  handles  files  processes  threads      KiB  seconds")
        if number >= 0 and number % 500 == 0:
            shown(number, left(temporary), time.monotonic() - began)
        verdict = await verifier.test(task, candidates[number % len(candidates)], hidden=number % 2 == 0)
        counts[verdict.status] += 1
        made = number + 1
        if number >= 0 and time.monotonic() - began > 60 * minutes:
            break
    await verifier.aclose()
    end = left(temporary)
    shown(made, end, time.monotonic() - began)
    print("statuses:", dict(counts))
    same = (end.handles, end.files, end.processes) == (start.handles, start.files, start.processes)
    return same and end.kibibytes <= start.kibibytes * (1 + RSS_GROWTH)


def shown(number: int, now: Left, seconds: float) -> None:
    """One row."""
    print(
        f"{number:8}  {now.handles:7}  {now.files:5}  {now.processes:9}  "
        f"{now.threads:7}  {now.kibibytes:7}  {seconds:7.0f}",
        flush=True,
    )


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--verdicts", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cudaperf-soak-") as folder:
        tempfile.tempdir = folder
        clean = asyncio.run(soak(args.verdicts, args.minutes, Path(folder)))
        tempfile.tempdir = None
    print("nothing was left" if clean else "something was left", file=sys.stderr)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
