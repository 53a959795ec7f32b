"""From estimates to the sections of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from training.evaluation.baselines import HAND, Kind, kind_of
from training.evaluation.document import (
    Document,
    Section,
    Table,
    percent,
    percent_interval,
    signed_percent_interval,
    times,
    times_interval,
)
from training.evaluation.estimates import SLOW, EstimateConfig, GroupEstimates, SpeedEstimates, estimate
from training.evaluation.facts import Evaluation, TaskFacts
from training.evaluation.intervals import Interval
from training.evaluation.pictures import budget_picture, curve_picture

UNTIMED = "Nothing was timed: candidates ran on the CPU emulator, since there was no GPU. So there are no speeds here."
NO_CORRECT = "No kernel was correct, so nothing was timed."
MADE_BY = "Made by cudaperf eval report; what the figures mean is in docs/evaluation.md."
_MOST_REFUSED = 40
_KINDS: dict[Kind, str] = {
    "c": "speed@1 against C",
    "torch": "speed@1 against PyTorch",
    "naive": "speed@1 against naive",
    "limit": "of the limit, correct ones",
}


def document(evaluations: Sequence[Evaluation], config: EstimateConfig | None = None) -> Document:
    """The report of one evaluation or of several."""
    several = len(evaluations) > 1
    title = "Evaluation: " + ", ".join(e.name for e in evaluations)
    sections: list[Section] = list(side_by_side(evaluations, config)) if several else []
    for evaluation in evaluations:
        sections += _evaluation(evaluation, config, several)
    return Document(title, (MADE_BY,), tuple(sections))


def side_by_side(evaluations: Sequence[Evaluation], config: EstimateConfig | None = None) -> Iterator[Section]:
    """One table a group: a row an evaluation, the headline figures as columns.

    A second one is over the tasks that all of them have finished, where those are not the same for all.
    """
    groups = dict.fromkeys(group for e in evaluations for group in e.groups)
    tables = []
    for group in groups:
        tables += _group_tables(group, evaluations, config)
        common = _in_common(group, evaluations)
        if common:
            size = len(common[0].tasks)
            title = f"{group}: {size} {_plural(size, 'task', 'tasks')} that all have finished"
            tables += _group_tables(group, common, config, title)
    text = (
        "Against the fastest of the C's builds, eager PyTorch, naive CUDA and the speed of light, where they were "
        "timed; against the last, the mean of the correct trajectories with their count.",
    )
    timed = any("headroom closed" in table.head for table in tables)
    yield Section("Side by side", 2, text if timed else (), tuple(tables))


def _group_tables(
    group: str, evaluations: Sequence[Evaluation], config: EstimateConfig | None, title: str = ""
) -> list[Table]:
    found = [(e.name, estimate(e, group, config)) for e in evaluations if group in e.groups]
    found = [(name, f) for name, f in found if f.tasks]
    kinds = [k for k in _KINDS if any(_against(f, k) for _, f in found)]
    ks = sorted({k for _, f in found for k in f.pass_at})
    head = ("evaluation", "tasks", "trajectories", *(f"pass@{k}" for k in ks))
    head = (*head, *(_KINDS[k] for k in kinds), *(("headroom closed",) if kinds else ()))
    rows = tuple((name, *_headline(f, ks, kinds)) for name, f in found)
    return [Table(head, rows, title or group)] if rows else []


def _in_common(group: str, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations cut to what each has finished of a group; none where nothing is cut or left."""
    finished = [{(t.key, t.digest) for t in e.finished() if t.group == group} for e in evaluations]
    having = [(e, f) for e, f in zip(evaluations, finished, strict=True) if f]
    if len(having) < 2:
        return []
    common = set.intersection(*(f for _, f in having))
    if not common or all(f == common for _, f in having):
        return []
    return [replace(e, tasks=tuple(t for t in e.tasks if (t.key, t.digest) in common)) for e, _ in having]


def _headline(found: GroupEstimates, ks: Sequence[int], kinds: Sequence[Kind]) -> Iterator[str]:
    yield str(found.tasks)
    yield str(found.trajectories)
    yield from (percent_interval(found.pass_at[k]) if k in found.pass_at else "–" for k in ks)
    for kind in kinds:
        speed = _against(found, kind)
        if kind == "limit":
            yield f"{times(speed.mean)} ({speed.over})" if speed is not None and speed.mean is not None else "–"
        else:
            yield times_interval(speed.speed_at[1]) if speed is not None else "–"
    if kinds:
        yield percent_or_interval(found.headroom) if found.headroom is not None else "–"


def _against(found: GroupEstimates, kind: Kind) -> SpeedEstimates | None:
    """Speeds against the first baseline of a kind: of C, the fastest."""
    return next((s for s in found.speeds if kind_of(s.baseline) == kind), None)


def _evaluation(evaluation: Evaluation, config: EstimateConfig | None, several: bool) -> Iterator[Section]:
    yield Section(evaluation.name if several else "What was evaluated", 2, tuple(_about(evaluation)))
    for group in evaluation.groups:
        yield from group_sections(evaluation, estimate(evaluation, group, config))
    refused = [(t.key, t.refused) for t in evaluation.tasks if t.refused]
    if refused:
        more = len(refused) - _MOST_REFUSED
        text = (f"and {more} more",) if more > 0 else ()
        yield Section("Refused", 3, text, (Table(("task", "why"), tuple(refused[:_MOST_REFUSED])),))


def _about(evaluation: Evaluation) -> Iterator[str]:
    where = (evaluation.device or "a GPU") if evaluation.backend == "gpu" else "the CPU emulator"
    seeds = f", {evaluation.seeds} seeds" if evaluation.seeds > 1 else ""
    yield (
        f"Policy {evaluation.policy} on suite {evaluation.suite}, tested on {where}: {evaluation.n} "
        f"{_plural(evaluation.n, 'trajectory', 'trajectories')} a task{seeds}, up to {evaluation.turns} "
        f"{_plural(evaluation.turns, 'turn', 'turns')} each."
    )
    yield (
        "A trajectory's kernel is chosen by the visible tests and the search's timing alone; it counts as correct if "
        "it then passes the hidden tests, and its times are those of a fresh measurement after. Intervals are 95 %, by "
        "bootstrap over tasks (over families where tasks share one); none is given for fewer than three units, nor for "
        "speeds where fewer than five differ (of three to five: where two are equal)."
    )
    if evaluation.versions:
        yield "Made with " + ", ".join(f"{name} {version}" for name, version in evaluation.versions.items()) + "."
    yield from evaluation.notes
    finished = len(evaluation.finished())
    refused = sum(bool(t.refused) for t in evaluation.tasks)
    left = len(evaluation.tasks) - finished - refused
    if left:
        yield f"Incomplete: {left} of {len(evaluation.tasks)} tasks are not finished and are left out of every figure."
    errors = sum(o.reason == "error" for o in evaluation.outcomes())
    if errors:
        yield f"{errors} trajectories were stopped by an error of the machine or of a backend; they count as failures."


def group_sections(evaluation: Evaluation, found: GroupEstimates) -> Iterator[Section]:
    """The sections of one group."""
    title = f"{found.group}: {found.tasks} {_plural(found.tasks, 'task', 'tasks')}"
    if not found.tasks:
        yield Section(title, 3, ("No task of this group is finished.",))
        return
    each = found.trajectories
    text = [f"{each} {_plural(each, 'trajectory', 'trajectories')} a task" + _units(found) + "."]
    if found.refused and found.pass_of_all is not None:
        text.append(
            f"{found.refused} more {_plural(found.refused, 'task is', 'tasks are')} refused as input and left out; "
            f"counted as failures, pass@1 is {percent(found.pass_of_all)}."
        )
    passes = [_row("our hidden tests" if found.given_at else "all", found.pass_at.values())]
    if found.given_at:
        passes.append(_row(f"its own cases, {found.given_tasks} tasks", found.given_at.values()))
        text.append(
            f"{found.given_passed} kernels pass the benchmark's own cases, where they could be run; {found.given_only} "
            "of them fail our tests."
        )
    tables = [Table(("", *(f"pass@{k}" for k in found.pass_at)), tuple(passes))]
    if found.by_seed:
        head = ("seed", "pass@1") + (("speed@1",) if found.main else ())
        seeds = tuple(
            (str(s.seed), percent(s.pass_at_1), *([times(s.speed_at_1)] if s.speed_at_1 is not None else []))
            for s in found.by_seed
        )
        tables.append(Table(head, seeds, "Each seed alone"))
    pictures = (curve_picture(found.curve),) if len(found.curve) > 1 else ()
    yield Section(title, 3, tuple(text), tuple(tables), pictures)
    yield _speed_section(evaluation, found)
    if found.budget:
        yield _budget_section(found)
    if found.by_family:
        families = tuple(
            (
                f.family,
                str(f.tasks),
                str(f.trajectories),
                percent(f.pass_at_1),
                *_mean_cells(f.mean, f.over, found.main),
            )
            for f in found.by_family
        )
        head = (
            "family",
            "tasks",
            "trajectories",
            "pass@1",
            *(("mean speed of the correct", "over") if found.main else ()),
        )
        yield Section(f"{found.group}: by family", 4, (), (Table(head, families),))
    tasks = evaluation.finished(found.group)
    yield _failures(found, tasks)
    if found.hand_correct is not None:
        yield _hand(found, tasks)
    sizes = _sizes(found.group, tasks)
    if sizes is not None:
        yield sizes


def _units(found: GroupEstimates) -> str:
    return f"; {found.families} families are the independent units" if found.families < found.tasks else ""


def _speed_section(evaluation: Evaluation, found: GroupEstimates) -> Section:
    title = f"{found.group}: speed"
    if not found.speeds:
        return Section(title, 4, (UNTIMED if evaluation.backend != "gpu" else NO_CORRECT,))
    text = [
        "speed@k is the expected speedup of the best of k trajectories, where a failure or a slowdown counts as 1 "
        "(the user keeps the C); raw leaves slowdowns as they are. The mean of the correct ones is geometric, always "
        "with its count; against the speed of light it is all there is. Headroom is how much of "
        "log(naive / speed of light) the baseline itself closes."
    ]
    if found.headroom is not None:
        text.append(
            f"The policy's correct kernels close {percent_or_interval(found.headroom)} of the headroom between naive "
            f"CUDA and the speed of light (over {found.headroom.units} units)."
        )
    if found.beside_naive:
        text.append(
            f"{found.slow} of {found.beside_naive} correct trajectories take more than {SLOW} times as long as naive "
            "CUDA: right, but with work done over again, or by few threads."
        )
    if found.untimed:
        text.append(
            f"{found.untimed} correct trajectories have no time (whole programs are not timed): they count as 1."
        )
    if found.unreached:
        text.append(
            f"{found.unreached} of the {found.tasks} tasks were not timed, since the time for that was over: speeds "
            "are of the others, which were taken in the suite's order, whatever came of them."
        )
    ks = tuple(found.speeds[0].speed_at)
    ps = tuple(found.speeds[0].fast)
    head = (
        "against", "tasks", *(f"speed@{k}" for k in ks), "raw speed@1", *(f"fast_{p:g}" for p in ps),
        "mean of the correct", "over", "headroom",
    )  # fmt: skip
    return Section(title, 4, tuple(text), (Table(head, tuple(_speed_row(s) for s in found.speeds)),))


def _speed_row(speed: SpeedEstimates) -> tuple[str, ...]:
    if kind_of(speed.baseline) == "limit":
        # No candidate is faster than the limit, and a failure is not as fast as it: only the correct ones' mean tells.
        shares = ("–",) * (len(speed.speed_at) + 1 + len(speed.fast))
    else:
        shares = (
            *(times_interval(i) for i in speed.speed_at.values()),
            times_interval(speed.raw_at[1]) if 1 in speed.raw_at else "–",
            *(percent(i.value) for i in speed.fast.values()),
        )
    return (
        speed.baseline,
        str(speed.tasks),
        *shares,
        times(speed.mean) if speed.mean is not None else "–",
        str(speed.over),
        percent(speed.headroom) if speed.headroom is not None else "–",
    )


def _mean_cells(mean: float | None, over: int, main: str) -> tuple[str, ...]:
    return (times(mean) if mean is not None else "–", str(over)) if main else ()


def _budget_section(found: GroupEstimates) -> Section:
    timed = any(row.speed_ratio is not None for row in found.budget)
    head: tuple[str, ...] = ("attempts a task", "as", "pass", "single samples", "difference, points", "turns used")
    head = (*head, "speed", "single samples", "ratio") if timed else head
    rows: list[tuple[str, ...]] = []
    for row in found.budget:
        cells = [
            str(row.budget),
            f"{row.trajectories} × {row.turns} turns",
            percent(row.pass_turns),
            percent(row.pass_samples),
            signed_percent_interval(row.pass_difference),
            f"{row.used:.2f}",
        ]
        if timed and row.speed_turns is not None and row.speed_samples is not None and row.speed_ratio is not None:
            cells += [times(row.speed_turns), times(row.speed_samples), times_interval(row.speed_ratio)]
        rows.append(tuple(cells))
    text = (
        "k trajectories of t turns against k · t single samples (the first turns), both judged by the visible tests "
        "and the search's timing, since hidden verdicts exist for chosen kernels only. A trajectory may end before its "
        "turns are used up (where nothing is timed, at its first correct kernel): turns used is the average."
    )
    pictures = (budget_picture(found.budget),) if len(found.budget) > 1 else ()
    return Section(f"{found.group}: turns against parallel samples", 4, (text,), (Table(head, tuple(rows)),), pictures)


def _failures(found: GroupEstimates, tasks: Sequence[TaskFacts]) -> Section:
    total = sum(found.failures.values())
    text: tuple[str, ...] = () if total else ("Every trajectory ended with a kernel that passed the hidden tests.",)
    tables = []
    if total:
        rows = tuple((reason.replace("_", " "), str(n), percent(n / total)) for reason, n in found.failures.items())
        tables.append(Table(("reason", "trajectories", "share"), rows, "Failed trajectories by their last verdict"))
    statuses = sorted({s for turn in found.statuses for s in turn})
    if statuses:
        turns = tuple((str(i + 1), *(str(turn.get(s, 0)) for s in statuses)) for i, turn in enumerate(found.statuses))
        tables.append(
            Table(("turn", *(s.replace("_", " ") for s in statuses)), turns, "Attempts by turn, visible tests")
        )
    unsolved = [t for t in tasks if not any(o.correct for o in t.outcomes)]
    if unsolved:
        shown = tuple((t.key, t.outcomes[-1].reason.replace("_", " "), t.outcomes[-1].detail) for t in unsolved)
        more = f", the first {_MOST_REFUSED}" if len(unsolved) > _MOST_REFUSED else ""
        title = f"{len(unsolved)} {_plural(len(unsolved), 'task', 'tasks')} that no trajectory solved{more}"
        tables.append(Table(("task", "last verdict", "detail"), shown[:_MOST_REFUSED], title))
    return Section(f"{found.group}: failures", 4, text, tuple(tables))


def _hand(found: GroupEstimates, tasks: Sequence[TaskFacts]) -> Section:
    text = [f"{found.hand_correct} of {found.hand_of} hand-written kernels pass by the same rules."]
    if found.given_tasks:
        text.append(f"{found.given_hand} of the {found.hand_of} pass the benchmark's own cases.")
    if any(s.baseline == HAND for s in found.speeds):
        text.append(f"The row `{HAND}` of the speeds is over the tasks where it passes.")
    failed = [(t.key, t.hand.reason.replace("_", " "), t.hand.detail) for t in tasks if t.hand and not t.hand.correct]
    tables = (Table(("task", "how it fails", "detail"), tuple(failed[:_MOST_REFUSED])),) if failed else ()
    return Section(f"{found.group}: hand-written kernels", 4, tuple(text), tables)


def _sizes(group: str, tasks: Sequence[TaskFacts]) -> Section | None:
    """What a benchmark tests with, beside what we test with: medians over tasks."""
    names = dict.fromkeys(name for t in tasks for name, value in t.facts.items() if isinstance(value, int | float))
    if not names:
        return None
    rows = tuple((name, f"{median([t.facts[name] for t in tasks if name in t.facts]):g}") for name in names)
    text = "Medians over tasks; elements are those of a case's largest buffer, the median over a task's cases."
    return Section(f"{group}: sizes of the tests", 4, (text,), (Table(("", "median"), rows),))


def percent_or_interval(interval: Interval) -> str:
    """Headroom may be below 0 or above 1, so its interval is not cut."""
    value, low, high = interval.value, interval.low, interval.high
    if low == -float("inf") or high == float("inf"):
        return percent(value)
    return f"{percent(value)} [{100 * low:.1f}, {100 * high:.1f}]"


def _row(name: str, intervals: Iterable[Interval]) -> tuple[str, ...]:
    return (name, *(percent_interval(i) for i in intervals))


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
