"""Tables and the loss curve of a warm start from what `benchmarks/sft_gpu.sh` left, for docs/training.md.

    python benchmarks/sft_results.py FOLDER --name sft-h200      # keeps FOLDER's results in benchmarks/warm_start
    python benchmarks/sft_results.py FOLDER --name sft-h200 --add  # adds phases that training.sft.evaluate ran later
    python benchmarks/sft_results.py --name sft-h200             # tables and curve from what is kept

Intervals are 95 %: over tasks for held-out members (one to a family), over whole families for unseen ones.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
from collections import Counter, defaultdict
from math import isfinite
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from cudaperf_agent.policies.model_spec import shipped_adapter
from training.evaluation.intervals import Interval, share
from training.sft.adapters import write_facts
from training.sft.phases import whole_lines

RESULTS = Path(__file__).parent / "warm_start"
CURVE = Path(__file__).parents[1] / "docs" / "sft-loss.svg"
PHASES = {
    "base": "base, greedy",
    "greedy": "greedy",
    "five first": "sampled, one turn",
    "five": "sampled, five turns",
}
KEPT = ("step", "seconds", "loss", "learning_rate")


def keep(folder: Path, name: str) -> None:
    """Bring the results into the repository: one JSON, and the candidates as they are."""
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    trained = json.loads((folder / "trained.json").read_text())
    data = {
        "machine": (folder / "progress.txt").read_text().splitlines()[0].partition("machine: ")[2],
        "trained": {**trained, "adapter": "cudaperf_agent/policies/adapters/smollm2-135m-instruct"},
        "evaluation": json.loads((folder / "evaluation.json").read_text()),
        "metrics": [[round(row[k], 6) for k in KEPT] for row in metrics if "loss" in row],
    }
    write(name, data)
    shutil.copyfile(folder / "candidates.jsonl.gz", RESULTS / f"{name}-candidates.jsonl.gz")


def add(folder: Path, name: str) -> None:
    """Bring phases that were run later into what is kept, and onto the shipped adapter's card."""
    path = RESULTS / f"{name}-candidates.jsonl.gz"
    rows = whole_lines(folder / "candidates.jsonl")
    again = {row["phase"] for row in rows}
    rows = [row for row in read(path) if row["phase"] not in again] + rows
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    data = json.loads((RESULTS / f"{name}.json").read_text())
    later = json.loads((folder / "evaluation.json").read_text())
    known = data["evaluation"]
    for split, found in later.get("splits", {}).items():
        row = known["splits"].setdefault(split, {"tasks": found["tasks"]})
        for phase in again & found.keys():
            of = found.get(f"{phase}_of", found["tasks"])
            row |= {phase: found[phase]} | ({f"{phase}_of": of} if of != row["tasks"] else {})
        row |= {"first": found["first"]} if "five" in again else {}
    known |= {key: value for key, value in later.items() if key.endswith("_seconds")}
    write(name, data)
    adapter = shipped_adapter()
    assert adapter is not None
    write_facts(adapter, {"evaluation": {k: v for k, v in known.items() if k != "config"}})


def write(name: str, data: dict[str, Any]) -> None:
    """One JSON, a line a key."""
    lines = [f'  "{key}": {json.dumps(value)}' for key, value in data.items()]
    (RESULTS / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Candidates that are kept."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def right(rows: list[dict[str, Any]]) -> dict[str, float]:
    """By task: 1 where the run ended with a kernel that passed all tests; rows of before have one turn and no mark."""
    found: dict[str, float] = {}
    for row in rows:
        good = row.get("best", row["status"] == "correct" and row["hidden"] in (None, "correct"))
        found[row["task"]] = max(found.get(row["task"], 0.0), float(good))
    return found


def tables(name: str) -> str:
    """Markdown: correct by split, by unseen family, and why candidates failed."""
    rows = read(RESULTS / f"{name}-candidates.jsonl.gz")
    lines = ["| tasks | phase | correct | share | 95 % |", "|---|---|---|---|---|"]
    for split in ("held_out_member", "unseen_family"):
        for phase, label in PHASES.items():
            of_phase = [row for row in rows if (row["split"], row["phase"]) == (split, phase.partition(" ")[0])]
            one_turn = [{**row, "best": row.get("best", False) and row["turn"] == 0} for row in of_phase]
            found = right(one_turn if phase == "five first" else of_phase)
            if not found:
                continue
            interval = share(list(found.values()), clusters=[task.partition("/")[0] for task in found])
            lines.append(
                f"| {split.replace('_', ' ')} | {label} | {sum(found.values()):.0f} of {len(found)} | "
                f"{interval.value:.0%} | {interval_of(interval)}, {interval.units} families |"
            )
    greedy = [row for row in rows if row["phase"] == "greedy"]
    by_family: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in greedy:
        if row["split"] == "unseen_family":
            by_family[_family(row)].append(row)
    lines += ["", "| unseen family | correct | of | the others |", "|---|---|---|---|"]
    for family, tried in sorted(by_family.items(), key=lambda item: (-_correct(item[1]), item[0])):
        lines.append(f"| `{family}` | {_correct(tried)} | {len(tried)} | {_failures(tried)} |")
    held = [row for row in greedy if row["split"] == "held_out_member"]
    missed = sorted(_family(row) for row in held if row["status"] != "correct")
    lines += ["", f"Held-out members missed: {', '.join(missed)} ({_failures(held)})."]
    return "\n".join(lines)


def interval_of(found: Interval) -> str:
    """Its ends, where there are units enough for one."""
    return f"{found.low:.0%} to {found.high:.0%}" if isfinite(found.low) and isfinite(found.high) else "–"


def curve(name: str, *, width: int = 640, height: int = 240) -> str:
    """The loss by step as SVG, logarithmic from 0.001 to 10."""
    metrics = json.loads((RESULTS / f"{name}.json").read_text())["metrics"]
    left, bottom, top = 50, height - 30, 10
    decades = (1, -3)

    def at(step: float, loss: float) -> str:
        from math import log10

        x = left + (width - left - 10) * step / metrics[-1][0]
        share_of = (decades[0] - max(log10(max(loss, 1e-9)), decades[1])) / (decades[0] - decades[1])
        return f"{x:.1f},{top + (bottom - top) * share_of:.1f}"

    marks = []
    for power in range(decades[1], decades[0] + 1):
        y = at(0, 10.0**power).partition(",")[2]
        marks.append(f'<path d="M{left} {y}H{width - 10}" stroke="#ccc"/><text x="4" y="{y}">{10.0**power:g}</text>')
    points = " ".join(at(row[0], row[2]) for row in metrics)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(marks)
        + f'\n<polyline points="{points}" fill="none" stroke="#0a5"/>\n'
        + f'<text x="{left}" y="{height - 8}">loss on the answers by step, 1 to {metrics[-1][0]} '
        + f"({metrics[-1][1]:.0f} s)</text>\n</svg>\n"
    )


def _family(row: dict[str, Any]) -> str:
    return str(row["task"]).partition("/")[0]


def _correct(rows: list[dict[str, Any]]) -> int:
    return sum(row["status"] == "correct" for row in rows)


def _failures(rows: list[dict[str, Any]]) -> str:
    counts = Counter(row["status"] for row in rows if row["status"] != "correct")
    return ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common())


def main() -> None:
    """Read the arguments, keep, print the tables, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--name", required=True)
    parser.add_argument("--add", action="store_true")
    args = parser.parse_args()
    if args.folder:
        (add if args.add else keep)(args.folder, args.name)
    print(tables(args.name))
    CURVE.write_text(curve(args.name), encoding="utf-8")


if __name__ == "__main__":
    main()
