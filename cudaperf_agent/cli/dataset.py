"""`cudaperf dataset`: build, measure, count and export the data behind the ranker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.destination import check_out_file, check_out_folder, writing_file, writing_folder
from cudaperf_agent.cli.output import JsonFlag, put, put_json, say, table
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from training.dataset.sampled_runs import Answers

app = typer.Typer(help="The measured data behind the ranker.", no_args_is_help=True)

BuiltFile = Annotated[Path, typer.Option("--built", help="Tasks and variants with their features, as JSON lines.")]
MeasuredPaths = Annotated[list[Path], typer.Option("--measured", help="Measured slices: files, or folders of them.")]
_BUILT = Path("dataset") / "built.jsonl"
_BUILT_BEGINS = b'{"task":'
_MEASURED = [Path("dataset") / "measured"]


@app.command()
def build(
    built: BuiltFile = _BUILT,
    variants: Annotated[int, typer.Option(help="Variants of a task at most.")] = 18,
    task: Annotated[list[str] | None, typer.Option(help="Only this task, NAME/NUMBER; may be repeated.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Run every task's C under sanitizers instead. Slow.")] = False,
    verify: Annotated[float, typer.Option(help="Also run this share of the variants on the emulator.")] = 0.0,
    seconds: Annotated[float, typer.Option(help="Wall time that --verify may take.")] = 600.0,
    as_json: JsonFlag = False,
) -> int:
    """Generate tasks and variants and extract their features; a file that is there is continued."""
    import asyncio

    from training.dataset.build import build as build_all
    from training.dataset.build import check_tasks, chosen_programs, verify_sample

    if check:
        programs = [program for _, program in chosen_programs(task or ())]
        wrong = asyncio.run(check_tasks(programs, say))
        if as_json:
            put_json({"tasks": len(programs), "wrong": wrong})
        else:
            put(table([(name, why) for name, why in wrong.items()]) or f"all {len(programs)} tasks are fine")
        return 1 if wrong else 0
    check_out_file(built, "--built")
    if built.is_file():
        _check_built(built)
    made = build_all(built, most=variants, names=task or (), say=say)
    counts = {}
    if verify > 0:
        verdicts = built.with_name("verdicts.jsonl")
        counts = asyncio.run(verify_sample(built, verdicts, share=verify, seed=0, seconds=seconds, say=say))
    if as_json:
        put_json({"tasks": made.tasks, "variants": made.variants, "declined": list(made.declined), "verdicts": counts})
        return 0
    put(f"{made.tasks} tasks, {made.variants} variants in {built}")
    for name in made.declined:
        put(f"declined: {name}")
    for status, count in counts.items():
        put(f"emulator: {count} {status}")
    return 0


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def measure(context: typer.Context) -> int:
    """Time variants on this machine's GPU, slice by slice (`--help` lists the options)."""
    from training.dataset.measure import main

    return main(context.args, program="cudaperf dataset measure")


@app.command()
def plan(
    out: Annotated[Path, typer.Option(help="File to write; compressed where its name ends in .gz.")],
    data: Annotated[Path | None, typer.Option(help="Folder of variants.parquet; by default the checkout's.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task, NAME/NUMBER; may be repeated.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Write what is still to be measured, sources and features, for `measure --plan` on a machine with a GPU."""
    from training.dataset.build import chosen_programs
    from training.dataset.export import DATA
    from training.dataset.plan import plan_lines, write_plan
    from training.dataset.table import read_rows

    chosen_programs(task or ())  # names that do not exist are told before the work
    check_out_file(out)
    measured: dict[str, set[str]] = {}
    for row in read_rows((data or DATA) / "variants.parquet"):
        measured.setdefault(row["task"], set()).add(row["variant"])
    known = {name: frozenset(digests) for name, digests in measured.items()}
    lines = list(plan_lines(known, names=task or (), say=say))
    with writing_file(out):
        count = write_plan(lines, out)
    if as_json:
        put_json({"variants": count, "path": str(out), "bytes": out.stat().st_size})
    else:
        put(f"{out}: {count} variants ({out.stat().st_size / 1e6:.1f} MB)")
    return 0


@app.command()
def merge(
    plan: Annotated[Path, typer.Option(help="What was measured: a file of `dataset plan`.")],
    measured: MeasuredPaths,
    data: Annotated[Path | None, typer.Option(help="Folder of the Parquet files; by default the checkout's.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Add what was measured by a plan to the Parquet files; the variants that are there stay as they are."""
    from statistics import median

    from training.dataset.export import DATA, add_measured, measured_rows
    from training.dataset.plan import read_plan

    _there(None, measured)
    folder = data or DATA
    check_out_folder(folder, "--data", names=("variants.parquet", "tasks.parquet"))
    added = add_measured(read_plan(plan), measured_rows(measured), folder)
    apart = median(abs(a) for a in added.apart) if added.apart else None
    if as_json:
        put_json({"variants": added.variants, "tasks": added.tasks, "again": len(added.apart), "apart_log2": apart})
        return 0
    put(f"{added.variants} variants and {added.tasks} tasks added")
    if apart is not None:
        put(f"{len(added.apart)} variants were measured again: gains differ by {apart:.3f} in log2 (median)")
    for path in added.paths:
        put(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


@app.command()
def sampled(
    out: Annotated[Path, typer.Option(help="File to write: verdicts and times, as JSON lines; `.gz` compresses it.")],
    candidates: Annotated[
        list[Path] | None, typer.Option(help="A policy's kernels with verdicts, JSON lines; with --measured.")
    ] = None,
    measured: Annotated[
        list[Path] | None, typer.Option(help="Measured slices of --candidates: files, or folders of them.")
    ] = None,
    evaluation: Annotated[
        list[str] | None, typer.Option(help="Answers of this evaluation, with its times; may be repeated.")
    ] = None,
    runs: Annotated[
        list[Path] | None, typer.Option(help="Answers of a runs.parquet (`dataset export --runs`); may be repeated.")
    ] = None,
    every_turn: Annotated[
        bool, typer.Option("--every-turn", help="Later turns of evaluations and runs, too; by default the first.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Join a policy's kernels with their times, for `ranker eval --sampled` and `ranker rerank`."""
    from training.dataset.export import measured_rows
    from training.dataset.sampled import timed_candidates, write_candidates
    from training.dataset.sampled_runs import exported_answers

    if not (candidates or evaluation or runs):
        raise UsageError("there is nothing to take kernels from", hint="--candidates, --evaluation or --runs")
    if bool(candidates) != bool(measured):
        raise UsageError("--candidates and --measured go together", hint="name the kernels and their measured slices")
    _there(None, measured or [])
    check_out_file(out)
    lines = timed_candidates(candidates or (), measured_rows(measured or ()))
    read = [_of_evaluation(name, every_turn) for name in evaluation or ()]
    read += [exported_answers(path, every_turn=every_turn) for path in runs or ()]
    lines += [c.model_dump(mode="json", exclude_defaults=True) for found in read for c in found.candidates]
    with writing_file(out):
        write_candidates(lines, out)
    timed = sum(line.get("seconds") is not None for line in lines)
    left_out = sum(found.left_out for found in read)
    if as_json:
        put_json({"candidates": len(lines), "timed": timed, "left_out": left_out, "path": str(out)})
    else:
        put(f"{out}: {len(lines)} candidates, {timed} with a time")
        if left_out:
            put(f"left out: {left_out} tasks with first answers that have no verdict yet")
    return 0


@app.command()
def stats(built: BuiltFile = _BUILT, measured: MeasuredPaths = _MEASURED, as_json: JsonFlag = False) -> int:
    """Count what is built and measured, and say how far apart the variants are."""
    from training.dataset.build import read_lines
    from training.dataset.export import measured_rows, merged, statistics

    _there(built, measured)
    found = statistics(merged(read_lines(built), measured_rows(measured)))
    if as_json:
        put_json(found)
        return 0
    put(table([(name.replace("_", " "), _shown(value)) for name, value in found.items()]))
    return 0


@app.command()
def export(
    built: BuiltFile = _BUILT,
    measured: MeasuredPaths = _MEASURED,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the Parquet files; where left out, the one that `ranker` reads.")
    ] = None,
    runs: Annotated[
        bool, typer.Option("--runs", help="Export the stored trajectories instead, as runs.parquet in the folder.")
    ] = False,
    origin: Annotated[
        str | None, typer.Option(help="With --runs: only those of one origin: `grpo`, `translate`, `eval`, ...")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Lose rows that are in the folder's files and not in this export.")
    ] = False,
) -> int:
    """Join what was built with what was measured, as Parquet, hand-written kernels apart; or write out stored runs."""
    if runs:
        return _export_runs(out or Path("dataset"), origin, replace=replace)
    from training.dataset.build import read_lines
    from training.dataset.export import (
        DATA,
        TASKS,
        TRANSFER,
        VARIANTS,
        family_export,
        measured_rows,
        transfer_export,
        write_export,
    )
    from training.dataset.transfer import is_hand_written

    folder = out or DATA
    _there(None, measured)
    check_out_folder(folder, names=(VARIANTS, TASKS, TRANSFER))
    rows = measured_rows(measured)
    by_hand = [row for row in rows if is_hand_written(row["task"])]
    found = transfer_export(by_hand) if by_hand else {}
    if len(by_hand) < len(rows) or not rows:
        _there(built, [])
        found = {**family_export(list(read_lines(built)), rows), **found}
    with writing_folder(folder):
        paths = write_export(found, folder, replace=replace)
    for path in paths:
        put(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


def _there(built: Path | None, measured: list[Path]) -> None:
    """Refuse files that are not there: without them every count would be nought.

    Before the first measurement the default folder is not there yet; what the user named has to be.
    """
    if built is not None and not built.is_file():
        raise UsageError("there is no built data set", where=str(built), hint="make it: cudaperf dataset build")
    if built is not None:
        _check_built(built)
    for path in measured if measured != _MEASURED else []:
        if not path.exists():
            raise UsageError("there are no measured slices", where=str(path), hint="check what --measured names")


def _of_evaluation(name: str, every_turn: bool) -> Answers:
    from cudaperf_agent.cli.eval_time import plan_of
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings
    from training.dataset.sampled_runs import evaluation_answers
    from training.evaluation.kernel_times import KernelTimes
    from training.evaluation.plan import Plans

    plans = Plans()
    plan = plan_of(name, plans)
    with open_store(load_settings().settings) as store:
        return evaluation_answers(store, plan, KernelTimes.load(plans.folder), every_turn=every_turn)


def _check_built(path: Path) -> None:
    """Refuse any other file: of one that was being written the last line is cut off where it is no whole one."""
    with path.open("rb") as file:
        begins = file.read(len(_BUILT_BEGINS))
    if not _BUILT_BEGINS.startswith(begins):
        raise UsageError(
            "this is no built data set", where=str(path), hint="name a file that `cudaperf dataset build` wrote"
        )


def _export_runs(out: Path, origin: str | None, *, replace: bool) -> int:
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings
    from training.dataset.export_runs import write_runs
    from training.dataset.kept import check_kept

    path = out / "runs.parquet"
    check_out_folder(out, names=[path.name])
    with open_store(load_settings().settings) as store, writing_folder(out):
        found = {run.id for run in store.list_runs(None, origin=origin)}
        if not replace:
            check_kept(
                path,
                lambda row: row["run"] in found,
                lambda lost: (
                    f"{len({row['run'] for row in lost})} of the runs that are there, such as {lost[0]['run']},"
                ),
                what="export of runs",
            )
        made = write_runs(store, path, origin=origin)
    put(f"{path}: {made.runs} runs, {made.turns} turns ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


@app.command()
def pool(
    data: Annotated[
        Path | None, typer.Option(help="Folder of variants.parquet and tasks.parquet; by default the checkout's.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; by default the pool of the package.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Make the pool of few-shot examples from the training split; each kernel must pass the emulator's hidden cases."""
    import asyncio

    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.policies.examples import SHIPPED
    from cudaperf_agent.tasks.prepare import prepare
    from training.dataset.export import DATA
    from training.dataset.pool import Worked, pool_lines, worked_examples
    from training.dataset.table import read_rows

    folder, path = data or DATA, out or SHIPPED
    check_out_file(path)
    found = worked_examples(read_rows(folder / "variants.parquet"), read_rows(folder / "tasks.parquet"))

    async def made() -> list[str]:
        verifier = Verifier(gpu=None)

        async def passes(worked: Worked) -> bool:
            task = await prepare(worked.c_task)
            verdicts = [await verifier.test(task, worked.source, hidden=hidden) for hidden in (False, True)]
            return all(verdict.correct for verdict in verdicts)

        try:
            return await pool_lines(found, passes, say=say)
        finally:
            await verifier.aclose()

    lines = asyncio.run(made())
    with writing_file(path):
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if as_json:
        put_json({"examples": len(lines), "path": str(path)})
    else:
        put(f"{path}: {len(lines)} examples")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    if isinstance(value, list):
        return f"{len(value)}" + (": " + ", ".join(map(str, value[:12])) if value else "")
    return f"{value:.3g}" if isinstance(value, float) else str(value)
