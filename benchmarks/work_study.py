"""Does work counted on the emulator (`cuda.work`) tell which correct kernels are far slower than plain CUDA?

    python benchmarks/work_study.py [--kernels FILE] [--out FILE]    # count, then tell; the same again goes on
    python benchmarks/work_study.py --tell                           # tell what is kept

FILE of kernels is what `cudaperf dataset sampled --evaluation` writes: a policy's kernels with the times of a GPU. Each
that passed the hidden cases and was timed beside plain CUDA is put to the visible cases on the emulator here.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig  # noqa: E402
from cudaperf_agent.cuda.work import Work, beyond  # noqa: E402
from cudaperf_agent.tasks.model import Task  # noqa: E402
from cudaperf_agent.tasks.prepare import prepare  # noqa: E402
from graph.sources import source_key  # noqa: E402
from training.evaluation.suites.find import find_suite  # noqa: E402

KEPT = Path(__file__).parent / "policy_kernels"
SLOW = 5.0
LIKE = 1.5


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel: its time over plain CUDA's on a GPU, and what was counted; `None` where there is nothing to compare."""

    task: str
    source: str
    slower: float
    over: float | None
    longer: float | None


def kernels(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Timed kernels, each once, by task and digest of the source."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    timed = [r for r in rows if r.get("hidden") == "correct" and r.get("seconds") and r.get("naive")]
    return {(r["task"], source_key(r["source"])): r for r in timed}


async def count(found: dict[tuple[str, str], dict[str, Any]], out: Path) -> None:
    """Add what is not there yet, a line a kernel."""
    there = {(row.task, row.source) for row in read(out)}
    loaders = {item.key.split("/", 1)[1].replace("-", "/"): item.load for item in find_suite("own-c").items}
    verifier = Verifier(VerifierConfig(), gpu=None)
    tasks: dict[str, Task] = {}
    try:
        with out.open("a", encoding="utf-8") as file:
            for number, ((name, key), row) in enumerate(found.items(), 1):
                if (name, key) in there:
                    continue
                if name not in tasks:
                    tasks[name] = await prepare(loaders[name.removeprefix("handed/")]())
                work = Work.of(await verifier.test(tasks[name], row["source"]))
                slower = row["seconds"] / row["naive"]
                told = Row(name, key, slower, work.over if work else None, work.longer if work else None)
                file.write(json.dumps(asdict(told)) + "\n")
                file.flush()
                print(f"[{number}/{len(found)}] {name}: {slower:.3g} times as slow, {work}", file=sys.stderr)
    finally:
        await verifier.aclose()


def read(path: Path) -> list[Row]:
    """The rows of a file; none where it is not there."""
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def tell(rows: Sequence[Row]) -> None:
    """How many slow ones are noticed, and how many others."""
    told = [(r, e) for r in rows if (e := excess(r)) is not None]
    print(f"{len(rows)} kernels of {len({r.task for r in rows})} tasks, {len(told)} beside plain CUDA's counts")
    slow = [e for r, e in told if r.slower > SLOW]
    others = [e for r, e in told if r.slower <= SLOW]
    wins = sum((s > o) + 0.5 * (s == o) for s in slow for o in others)
    if slow and others:
        print(f"a slow one (more than {SLOW:g} times) has more than another: {wins / len(slow) / len(others):.3f}")
    groups = {
        f"more than {SLOW:g} times as slow": (SLOW, float("inf")),
        f"{LIKE:g} to {SLOW:g} times": (LIKE, SLOW),
        f"at most {LIKE:g} times": (0.0, LIKE),
        "faster by a tenth": (0.0, 0.9),
    }
    for label, (low, high) in groups.items():
        group = [e for r, e in told if low < r.slower <= high]
        print(f"{label}: {sum(e > 1 for e in group)} of {len(group)} are told")
    print("told, and not slow: " + ", ".join(sorted({r.task for r, e in told if e > 1 and r.slower <= LIKE})))
    print("slow, and not told: " + ", ".join(sorted({r.task for r, e in told if e <= 1 and r.slower > SLOW})))


def excess(row: Row) -> float | None:
    """By how much a kernel is beyond what is ordinary; above 1 it is told."""
    if row.over is None or row.longer is None:
        return None
    return beyond(row.over, row.longer)


def main() -> None:
    """Count and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kernels", type=Path, default=KEPT / "evaluations.jsonl.gz")
    parser.add_argument("--out", type=Path, default=KEPT / "work.jsonl")
    parser.add_argument("--tell", action="store_true", help="count nothing")
    args = parser.parse_args()
    if not args.tell:
        asyncio.run(count(kernels(args.kernels), args.out))
    tell(read(args.out))


if __name__ == "__main__":
    main()
