"""Tables and pictures of GRPO runs and of what they are worth, for docs/training.md.

    python benchmarks/grpo_results.py FOLDER... --name h200   # keeps what `benchmarks/visit_gpu.sh` left, then tells it
    python benchmarks/grpo_results.py --name h200             # tells what is kept

FOLDER, as `visit_gpu.sh --unpack` lays it out, holds CONDITION/metrics.jsonl of runs, and evaluate/NAME.json and
base/base.json of evaluations, or time/NAME.json with times: `base` is the bare model, `warm` the warm start, the others
are conditions.
The section between NAME's marks in docs/training.md is written anew, and docs/grpo-NAME-*.svg with it; where the page
has none it is added at the end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from training.evaluation.compare import GroupComparison, compare  # noqa: E402
from training.evaluation.cut import cut  # noqa: E402
from training.evaluation.document import (  # noqa: E402
    percent_interval,
    signed_percent_interval,
    times_interval,
)
from training.evaluation.estimates import GroupEstimates, estimate  # noqa: E402
from training.evaluation.facts import Evaluation  # noqa: E402
from training.sft.adapters import write_facts  # noqa: E402

KEPT = Path(__file__).parent / "grpo"
PAGE = ROOT / "docs" / "training.md"
PICTURES = ROOT / "docs"
BEGIN, END = "<!-- GRPO results, {}: written by benchmarks/grpo_results.py -->", "<!-- end of GRPO results, {} -->"
BASE, WARM = "base", "warm"
CONDITIONS = {
    "both": "verifiable and structural",
    "verifiable": "verifiable only",
    "structural": "structural only",
    "permuted": "structural, permuted",
}
COLOURS = ("#0a5", "#a40", "#05a", "#777")
TIMES = {
    "time/generating": "generating",
    "time/learning": "learning",
    "time/timing": "timing",
    "time/verifying": "verifying",
    "time/waiting": "waiting",
}
LOGGED = {
    "reward": "reward",
    "correct@turn1": "correct, one turn",
    "correct@turn2": "correct, two turns",
    "compile_rate": "compiles",
    "rewards/structural/mean": "structural part",
    "clipped/structural_low": "structural score at its lower clip",
    "clipped/structural_high": "structural score at its upper clip",
    "charged/work": "correct ones charged for work",
    "entropy": "entropy of what is learned from, nats a token",
    "completions/clipped_ratio": "answers cut",
    "distinct_sources_per_group": "distinct sources of 16",
    "zero_variance_groups": "groups skipped",
    "sampling/sampling_logp_difference/mean": "engine and trainer differ, nats a token",
    "clip_ratio/region_mean": "ratio clipped",
    "cheats": "cheats",
}

OF_ROWS = ("entropy", "clip_ratio/region_mean", "sampling/sampling_logp_difference/mean")
"""Numbers about the rows that are learned from."""

Steps = list[dict[str, Any]]


def keep(folders: Sequence[Path], name: str) -> None:
    """Bring results into the repository."""
    into = KEPT / name
    into.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for path in sorted(folder.glob("*/metrics.jsonl")):
            shutil.copyfile(path, into / f"{path.parent.name}.jsonl")
        for path in (path for part in ("base", "evaluate", "time") for path in sorted(folder.glob(f"{part}/*.json"))):
            # Estimates follow from the facts.
            facts = json.loads(path.read_text(encoding="utf-8"))["evaluation"]
            (into / path.name).write_text(json.dumps({"evaluation": facts}, separators=(",", ":")) + "\n")
        for path in sorted(folder.glob("evaluate/validation/validation-*.json")):
            facts = json.loads(path.read_text(encoding="utf-8"))["evaluation"]
            (into / "validation").mkdir(exist_ok=True)
            kept = into / "validation" / path.name.removeprefix("validation-")
            kept.write_text(json.dumps({"evaluation": facts}, separators=(",", ":")) + "\n")


def read_runs(folder: Path) -> dict[str, Steps]:
    """Steps of each condition."""
    found = {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in folder.glob("*.jsonl")}
    return {name: found[name] for name in sorted(found, key=order) if found[name]}


def read_evaluations(folder: Path) -> dict[str, Evaluation]:
    """By name: base, warm start, conditions."""
    found = {p.stem: Evaluation.from_dict(json.loads(p.read_text())["evaluation"]) for p in folder.glob("*.json")}
    return {name: found[name] for name in sorted(found, key=order)}


def order(name: str) -> tuple[int, str]:
    """Base, warm start, then the conditions as they are listed."""
    known = [BASE, WARM, *CONDITIONS]
    return (known.index(name) if name in known else len(known), name)


def section(runs: dict[str, Steps], evaluations: dict[str, Evaluation], tried: dict[str, Evaluation], name: str) -> str:
    """The whole section as Markdown; `tried`: the checkpoints on the validation."""
    lines = [f"### GRPO from the warm start, on one GPU: {name}", ""]
    if runs:
        lines += [*training(runs, name), ""]
    if evaluations:
        lines += [*worth(evaluations), ""]
    if tried:
        lines += [*validation(tried), ""]
    lines.append(
        f"Kept: `benchmarks/grpo/{name}`; this section is made by `python benchmarks/grpo_results.py --name {name}`."
    )
    return "\n".join(lines) + "\n"


def training(runs: dict[str, Steps], name: str) -> Iterator[str]:
    """What the log says."""
    told = ", ".join(f"`{n}` ({CONDITIONS.get(n, n)}) {len(s)} steps in {spent(s):.0f} s" for n, s in runs.items())
    alike = len({len(s) for s in runs.values()}) == 1
    charged = (
        ", and work that is done over again is charged for"
        if any("charged/work" in s[0] for s in runs.values())
        else ""
    )
    budget = "as many steps" if alike else "as many steps as the time of each held, which are not equally many"
    yield (
        f"Conditions with one seed, the same tasks in the same order and {budget}: {told}. A step is 8 tasks × 16 "
        "trajectories × 2 turns, tested on the emulator; nothing is timed, so that correctness and structure alone are "
        f"rewarded{charged}. With one seed a condition, this is a demonstration, no claim that one reward is better."
    )
    yield ""
    reward, correct = (picture_name(name, what) for what in ("reward", "correct"))
    yield f"![Reward by step]({reward}) ![Correct at the first turn by step]({correct})"
    yield ""
    yield "Means over the first and the last quarter of the steps; each step has other tasks, not equally hard:"
    yield ""
    yield f"| | {' | '.join(f'`{n}`' for n in runs)} |"
    yield f"|---|{'---|' * len(runs)}"
    for key, label in LOGGED.items():
        if any(key in step for steps in runs.values() for step in steps):
            yield f"| {label} | {' | '.join(first_and_last(steps, key) for steps in runs.values())} |"
    yield from on_the_same_tasks(runs)
    yield ""
    yield "Share of a step's time, each moment counted once:"
    yield ""
    yield f"| | {' | '.join(TIMES.values())} | GPU busy | seconds a step |"
    yield f"|---|{'---|' * (len(TIMES) + 2)}"
    for condition, steps in runs.items():
        # The first step has compilation and warm-up in it.
        rest = steps[1:] or steps
        cells = [f"{fmean(s.get(key, 0.0) for s in rest):.0%}" for key in TIMES]
        busy, seconds = (fmean(s[key] for s in rest) for key in ("time/gpu_busy", "time/step_seconds"))
        yield f"| `{condition}` | {' | '.join(cells)} | {busy:.0%} | {seconds:.1f} |"


def on_the_same_tasks(runs: dict[str, Steps], key: str = "correct@turn1") -> Iterator[str]:
    """Conditions side by side, step by step: at a step they have the same tasks."""
    by_step = {name: {s["step"]: float(s[key]) for s in steps if key in s} for name, steps in runs.items()}
    names = list(by_step)
    for number, first in enumerate(names):
        for second in names[number + 1 :]:
            shared = sorted(set(by_step[first]) & set(by_step[second]))
            if shared:
                gaps = [by_step[first][s] - by_step[second][s] for s in shared]
                later = gaps[len(gaps) // 2 :]
                yield ""
                above, below = sum(g > 0 for g in gaps), sum(g < 0 for g in gaps)
                yield (
                    f"On the same tasks, step by step: correct at one turn, `{first}` less `{second}`, "
                    f"{100 * fmean(gaps):+.1f} points over the {len(shared)} steps that both have "
                    f"({100 * fmean(later):+.1f} over the second half of them); higher in {above}, lower in {below}."
                )


def spent(steps: Steps) -> float:
    """Seconds of the steps, without the starts of the slices."""
    return float(sum(s["time/step_seconds"] for s in steps))


def first_and_last(steps: Steps, key: str) -> str:
    """Mean over the first and the last quarter of the steps that have the number."""
    if key in OF_ROWS:
        # Where every group was skipped, they are of a row that only fills up.
        steps = [s for s in steps if s.get("rows_with_advantage", 1.0) > 0]
    values = [float(s[key]) for s in steps if key in s]
    if not values:
        return "–"
    quarter = max(1, len(values) // 4)
    return f"{fmean(values[:quarter]):.3g} → {fmean(values[-quarter:]):.3g}"


def worth(evaluations: dict[str, Evaluation]) -> Iterator[str]:
    """What the policies do on held-out tasks."""
    one = next(iter(evaluations.values()))
    yield (
        f"Held-out tasks and the handed files ({len(one.tasks)} of the suite `{one.suite}`, {one.n * one.seeds} "
        f"trajectories each, up to {one.turns} turns; one turn is the same trajectories cut to their first). Intervals "
        "are 95 %, over tasks, over families where tasks share one."
    )
    notes = dict.fromkeys(note for e in evaluations.values() for note in e.notes)
    for note in notes:
        whose = [name for name, e in evaluations.items() if note in e.notes]
        yield f" {note}" if len(whose) == len(evaluations) else f" {', '.join(f'`{n}`' for n in whose)}: {note}"
    groups = dict.fromkeys(group for e in evaluations.values() for group in e.groups)
    for group in groups:
        if not any(t.group == group and t.outcomes for e in evaluations.values() for t in e.tasks):
            continue
        yield ""
        yield f"| {group} | turns | tasks | pass@1 | pass@5 | speed@5 against C | tasks timed |"
        yield "|---|---|---|---|---|---|---|"
        for name, whole in evaluations.items():
            for turns in dict.fromkeys((1, whole.turns)):
                found = estimate(cut(whole, turns), group)
                if found.tasks:
                    yield f"| `{name}` | {turns} | {found.tasks} | {' | '.join(headline(found))} |"
    yield ""
    yield "Paired differences on common tasks, all groups together; shares in points, speeds as ratios:"
    yield ""
    yield "| | turns | tasks | pass@1 | pass@5 | speed@5 against C |"
    yield "|---|---|---|---|---|---|"
    for first, second in pairs(list(evaluations)):
        for turns in dict.fromkeys((1, min(evaluations[first].turns, evaluations[second].turns))):
            both = compare(cut(evaluations[first], turns), cut(evaluations[second], turns))
            if both.groups and both.groups[0].tasks:
                every = both.groups[0]
                yield f"| `{first}` less `{second}` | {turns} | {every.tasks} | {' | '.join(differences(every))} |"


def validation(tried: dict[str, Evaluation]) -> Iterator[str]:
    """Which checkpoint is right most often on the validation's tasks, and how it differs from the warm start."""
    one = next(iter(tried.values()))
    yield (
        f"The validation, by which a checkpoint is chosen to ship: {len(one.tasks)} tasks, members of families that "
        f"were learned from, {one.n} answers each, one turn. `NAME-N` is the checkpoint of step N, `NAME` the one "
        "that is compared above."
    )
    yield ""
    yield f"| | tasks | pass@1 | less `{WARM}`, points |"
    yield "|---|---|---|---|"
    for name, found in tried.items():
        whole = compare(found, tried[WARM]).groups if name != WARM and WARM in tried else ()
        difference = next(differences(whole[0])) if whole and whole[0].tasks else "–"
        estimates = [estimate(found, group) for group in found.groups]
        yield f"| `{name}` | {sum(e.tasks for e in estimates)} | {next(headline(estimates[0]))} | {difference} |"


def validation_facts(tried: dict[str, Evaluation], name: str) -> dict[str, Any]:
    """The same for an adapter's card."""
    one = next(iter(tried.values()))
    shares = {n: round(estimate(e, e.groups[0]).pass_at[1].value, 4) for n, e in tried.items()}
    return {"run": name, "tasks": len(one.tasks), "answers": one.n, "pass@1": shares}


def headline(found: GroupEstimates) -> Iterator[str]:
    """pass@1, pass@5, speed@5 against the first baseline, and over how many tasks."""
    for k in (1, 5):
        yield percent_interval(found.pass_at[k]) if k in found.pass_at else "–"
    speed = found.speeds[0] if found.speeds else None
    yield times_interval(speed.speed_at[5]) if speed is not None and 5 in speed.speed_at else "–"
    yield str(speed.tasks) if speed is not None else "0"


def differences(group: GroupComparison) -> Iterator[str]:
    """The same of a comparison."""
    shares = {s.name: s.difference for s in group.shares}
    for name in ("pass@1", "pass@5"):
        yield signed_percent_interval(shares[name]) if name in shares else "–"
    speeds = [s for s in group.speeds if s.name == "speed@5"]
    yield f"{times_interval(speeds[0].ratio)}, {speeds[0].tasks} tasks" if speeds else "–"


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Each condition against the warm start, the warm start against the base, the conditions against the first."""
    trained = [n for n in names if n not in (BASE, WARM)]
    found = [(n, WARM) for n in trained if WARM in names]
    found += [(WARM, BASE)] if WARM in names and BASE in names else []
    return found + [(trained[0], n) for n in trained[1:]]


def picture_name(name: str, what: str) -> str:
    """File name of a picture."""
    return f"grpo-{name}-{what}.svg"


def curves(runs: dict[str, Steps], key: str, title: str, *, width: int = 420, height: int = 240) -> str:
    """A number by step, a line a condition."""
    lines = {name: [(s["step"], float(s[key])) for s in steps if key in s] for name, steps in runs.items()}
    points = [point for line in lines.values() for point in line]
    low, high = min(y for _, y in points), max(y for _, y in points)
    span, last = max(high - low, 1e-9), max(max(x for x, _ in points), 2)
    left, top, bottom = 46, 24, height - 30

    def at(x: float, y: float) -> str:
        return (
            f"{left + (width - left - 12) * (x - 1) / (last - 1):.1f},{bottom - (bottom - top) * (y - low) / span:.1f}"
        )

    parts = [f'<text x="4" y="14">{title}</text>', f'<text x="{left}" y="{height - 6}">step 1 to {last}</text>']
    for value in (low, (low + high) / 2, high):
        y = at(1, value).partition(",")[2]
        parts.append(f'<path d="M{left} {y}H{width - 12}" stroke="#ccc"/><text x="4" y="{y}">{value:.2f}</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(at(x, y) for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{width - 110}" y="{height - 6 - 13 * number}" fill="{colour}">{name}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def main() -> None:
    """Keep, tell, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--name", required=True)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--pictures", type=Path, default=PICTURES)
    parser.add_argument("--card", type=Path, metavar="ADAPTER", help="tell the validation in this adapter's card, too")
    args = parser.parse_args()
    if args.folders:
        keep(args.folders, args.name)
    runs, evaluations = read_runs(KEPT / args.name), read_evaluations(KEPT / args.name)
    tried = read_evaluations(KEPT / args.name / "validation")
    told = section(runs, evaluations, tried, args.name)
    if args.card is not None:
        write_facts(args.card, {"validation": validation_facts(tried, args.name)})
    for what, key, title in (
        ("reward", "reward", "mean reward"),
        ("correct", "correct@turn1", "share of trajectories correct at turn 1"),
    ):
        if any(key in step for steps in runs.values() for step in steps):
            (args.pictures / picture_name(args.name, what)).write_text(curves(runs, key, title), encoding="utf-8")
    page = args.page.read_text(encoding="utf-8")
    begin, end = BEGIN.format(args.name), END.format(args.name)
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2].strip()
    text = f"{before.rstrip()}\n\n{begin}\n{told}{end}\n" + (f"\n{after}" if after else "")
    args.page.write_text(text.rstrip() + "\n", encoding="utf-8")
    print(told)


if __name__ == "__main__":
    main()
