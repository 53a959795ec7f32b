"""`cudaperf eval`: run a policy on a benchmark, report it with intervals, compare two evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.destination import check_out_file, write_report
from cudaperf_agent.cli.eval_time import USUAL, Fineness, can_go_on, plan_of, time_
from cudaperf_agent.cli.output import JsonFlag, put, put_json, say
from cudaperf_agent.cli.translate import PolicyOption
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from cudaperf_agent.settings_model import Settings as AllSettings
    from cudaperf_agent.tasks.model import Task
    from training.evaluation.document import Document
    from training.evaluation.drive import DriveConfig, Progress
    from training.evaluation.facts import Evaluation
    from training.evaluation.plan import Settings

app = typer.Typer(help="Evaluate a policy on a benchmark.", no_args_is_help=True)

HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write one page that needs no network.")
]
MarkdownOption = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write it as Markdown.")]

TurnsOption = Annotated[
    int | None,
    typer.Option("--turns", metavar="N", help="As with so many turns only; where the search was not timed."),
]


class Backend(StrEnum):
    """Where candidates are tested."""

    AUTO = "auto"
    EMULATOR = "emulator"


_N, _SEEDS = 10, 3
# What they propose depends on the task and the turn alone: drawing again gives the same again.
_DETERMINISTIC = ("variants",)


@app.command()
def run(
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH", help="own-c, held-out, handed, or a benchmark of yours: see docs/evaluation.md."
        ),
    ],
    policy: PolicyOption = None,
    n: Annotated[
        int | None, typer.Option("--n", metavar="N", help="Trajectories per task and seed: 10, and 1 for variants.")
    ] = None,
    turns: Annotated[int, typer.Option(metavar="N", help="Turns per trajectory, at most 5.")] = 5,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Seeds: 3, and 1 for variants.")] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="NAME", help="Name of the evaluation; by default of suite and policy."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="TASKS", help="Only so many tasks, the first of each group in turn.")
    ] = None,
    tasks_at_once: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Tasks at work at once: 4, 64 where the policy takes batches, 2 on a GPU, where each keeps hundreds "
            "of megabytes of inputs.",
        ),
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="No new task begins after so many seconds.")
    ] = None,
    backend: Annotated[
        Backend,
        typer.Option(help="Where candidates are tested: `emulator` also where there is a GPU; see `eval time`."),
    ] = Backend.AUTO,
    samples: Annotated[int, typer.Option(min=5, help="On a GPU: timed calls of a kernel.")] = USUAL.samples,
    contents: Annotated[
        int, typer.Option(min=1, help="On a GPU: input sets that timed calls go through; fewer are cheaper.")
    ] = USUAL.contents,
    c_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.001, help="On a GPU: sizes are not made larger once the C takes this long."
        ),
    ] = USUAL.c_seconds,
    device_times: Annotated[
        bool,
        typer.Option(
            "--device-times",
            help="On a GPU: the search times kernels without copies, nothing is traced; the chosen one has all times.",
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Run a policy on every task of a suite, and keep everything in the store.

    The same command goes on with an evaluation that was killed or stopped; nothing that had finished is done again.
    While a process is at work on it, a second one is refused.
    """
    with can_go_on():
        from cudaperf_agent.settings import load_settings
        from training.evaluation.plan import Settings

        settings = load_settings({"translate.policy": policy, "translate.turns": turns}).settings
        name = settings.translate.policy
        fixed = name in _DETERMINISTIC
        wanted = Settings(
            suite=suite,
            policy=name,
            n=n if n is not None else 1 if fixed else _N,
            turns=turns,
            seeds=seeds if seeds is not None else 1 if fixed else _SEEDS,
            limit=limit,
        )
        label = out or _default_name(wanted)
        numbers = Fineness(samples, contents, c_seconds, device_times)
        progress, evaluation = _run(settings, wanted, label, tasks_at_once, time_budget, backend, numbers)
        again = "the same command goes on"
        if not progress.complete:
            say(f"{progress.done} of {progress.of} tasks are done; {again}")
        if as_json:
            put_json(_facts(evaluation))
        else:
            from training.evaluation.sections import document

            _tell(document([evaluation]), None, None, on_terminal=True)
            say(f"cudaperf eval report {label} tells it again; --html FILE makes a page of it")
        return 0


app.command(name="time")(time_)


@app.command()
def report(
    evaluations: Annotated[
        list[str], typer.Argument(metavar="NAME|FILE...", help="Names of evaluations, or files that --json wrote.")
    ],
    as_json: JsonFlag = False,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    turns: TurnsOption = None,
) -> int:
    """Tell evaluations as tables with 95 % intervals; with --json, facts and estimates of one evaluation."""
    from training.evaluation.sections import document

    _check_files(html, markdown)
    found = _evaluations(list(dict.fromkeys(evaluations)), turns)
    if as_json:
        if len(found) > 1:
            raise UsageError("--json is of one evaluation", where="--json", hint="name one at a time")
        put_json(_facts(found[0]))
    if not as_json or html is not None or markdown is not None:
        _tell(document(found), html, markdown, on_terminal=not as_json)
    return 0


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="An evaluation: its name, or a file that --json wrote.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one on the same tasks.")],
    as_json: JsonFlag = False,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    turns: TurnsOption = None,
) -> int:
    """Tell how A differs from B on the tasks they have in common, pair by pair, with 95 % intervals."""
    from training.evaluation.compare import compare as compare_two
    from training.evaluation.compare import comparison_document

    _check_files(html, markdown)
    one, other = _evaluations([first, second], turns)
    found = compare_two(one, other)
    if as_json:
        put_json(found.to_dict())
    _tell(comparison_document(found), html, markdown, on_terminal=not as_json)
    return 0


_OURS = ("cudaperf eval report", "paired by task, with 95 % intervals")
"""What the first lines of reports and of comparisons say, in every form."""


def _check_files(html: Path | None, markdown: Path | None) -> None:
    for path, option in ((html, "--html"), (markdown, "--markdown")):
        if path is not None:
            check_out_file(path, option)


def _cut(evaluation: Evaluation, turns: int | None) -> Evaluation:
    from training.evaluation.cut import cut

    return evaluation if turns is None else cut(evaluation, turns)


def _tell(told: Document, html: Path | None, markdown: Path | None, *, on_terminal: bool) -> None:
    """A report in the forms asked for; on the terminal where it goes to no file."""
    from training.evaluation.document import markdown_document, text_document
    from training.evaluation.page import html_document

    for path, form, option in ((html, html_document, "--html"), (markdown, markdown_document, "--markdown")):
        if path is not None:
            write_report(path, form(told), _OURS, option)
            say(f"wrote {path}")
    if on_terminal and html is None and markdown is None:
        put(text_document(told).rstrip())


def _facts(evaluation: Evaluation) -> dict[str, object]:
    from training.evaluation.estimates import estimate

    return {
        "evaluation": evaluation.to_dict(),
        "estimates": {group: estimate(evaluation, group).to_dict() for group in evaluation.groups},
    }


def _evaluations(names: Sequence[str], turns: int | None) -> list[Evaluation]:
    """Cut to so many turns; those of one name, as files of several folders may have, are told by what was given."""
    found = [_cut(_evaluation(name), turns) for name in names]
    own = [e.name for e in found]
    return [replace(e, name=n) if own.count(e.name) > 1 else e for e, n in zip(found, names, strict=True)]


def _evaluation(name: str) -> Evaluation:
    """The facts of a stored evaluation, or of a file that was written from one."""
    import json

    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.cli.source import read_text
    from cudaperf_agent.settings import load_settings
    from training.evaluation.collect import collect
    from training.evaluation.facts import Evaluation
    from training.evaluation.kernel_times import KernelTimes
    from training.evaluation.plan import Plans

    if name.endswith(".json"):
        try:
            return Evaluation.from_dict(json.loads(read_text(Path(name), "the evaluation"))["evaluation"])
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"it holds no evaluation: {error}", where=name, hint="cudaperf eval report NAME --json > FILE.json"
            ) from None
    plans = Plans()
    plan = plan_of(name, plans)
    with open_store(load_settings().settings) as store:
        return collect(store, plan, KernelTimes.load(plans.folder))


def _run(
    settings: AllSettings,
    wanted: Settings,
    label: str,
    at_once: int | None,
    seconds: float | None,
    backend: Backend,
    numbers: Fineness,
) -> tuple[Progress, Evaluation]:
    from langgraph.runtime import RunControl

    from graph import loop
    from training.evaluation.drive import DriveConfig
    from training.evaluation.plan import Plans

    config = DriveConfig(seconds=seconds)
    if at_once is not None:
        if at_once < 1:
            raise UsageError("no task could be at work", where="--tasks-at-once", hint="at least 1")
        config = DriveConfig(at_once=at_once, at_once_timed=at_once, at_once_batched=at_once, seconds=seconds)
    control = RunControl()

    def on_interrupt() -> None:
        patience = f"{config.grace:g} s for the steps at work"
        say(f"interrupted: waiting up to {patience} (once more to stop at once)")
        control.request_drain()

    with Plans().claim(label):
        work = _run_async(settings, wanted, label, config, control, backend, numbers)
        result = loop.run(work, on_interrupt=on_interrupt)
    if control.drain_requested:
        raise KeyboardInterrupt
    return result


async def _run_async(
    settings: AllSettings,
    wanted: Settings,
    label: str,
    config: DriveConfig,
    control: RunControl,
    where: Backend,
    numbers: Fineness,
) -> tuple[Progress, Evaluation]:
    import asyncio

    from cudaperf_agent.cli.parts import prepared, run_parts, tell_of_building
    from cudaperf_agent.cli.still import still_saying
    from training.evaluation.collect import collect
    from training.evaluation.drive import drive
    from training.evaluation.given import GivenCases
    from training.evaluation.kernel_times import KernelTimes
    from training.evaluation.plan import Plans, check_same, new_plan
    from training.evaluation.suites.find import find_suite

    suite = (await asyncio.to_thread(find_suite, wanted.suite)).limited(wanted.limit)
    # The test inputs are the same for every evaluation; the seeds of an evaluation are of sampling.
    on_emulator = where is Backend.EMULATOR
    usual = numbers.config(config.at_once_timed)
    verifying = replace(usual, whole="chosen", trace=False) if numbers.device_times else usual
    policy, turns = wanted.policy, wanted.turns
    async with run_parts(settings, policy, turns, 0, say, emulator=on_emulator, config=verifying) as parts:
        parts.check()
        plans = Plans()
        backend = parts.deps.verifier.backend
        plan = plans.load(label)
        if plan is None:
            timed = numbers.told("a search by the device's times alone") if backend == "gpu" else ""
            notes = (*suite.notes, *_notes(wanted), *([f"Timed with {timed}."] if timed else ()))
            plan = new_plan(label, wanted, suite, parts.deps.policy.name, backend, notes)
            plans.save(plan)
        else:
            check_same(plan, wanted, suite, parts.deps.policy.name, backend)
        tell_of_building(parts.verifier, say)
        say(f"{label}: {len(suite.items)} tasks of {suite.name} with {plan.policy}, tests on the {_where(backend)}")

        async def prepare(task: Task) -> Task:
            # With a turn of the verifier's: nothing runs beside a call that is being timed.
            async with parts.verifier.place.preparing:
                return await prepared(task, parts.verifier)

        async with still_saying(say, "at work") as telling:
            progress = await drive(
                suite,
                plan,
                plans,
                parts.deps,
                prepare=prepare,
                given=GivenCases(parts.verifier.place),
                config=config,
                say=telling,
                control=control,
            )
        return progress, await asyncio.to_thread(collect, parts.deps.store, plan, KernelTimes.load(plans.folder))


def _notes(wanted: Settings) -> tuple[str, ...]:
    if wanted.policy not in _DETERMINISTIC:
        return ()
    note = "The policy is deterministic: one trajectory says all, and seeds change nothing but the times."
    if wanted.n > 1:
        note = (
            "The policy is deterministic: each further trajectory goes on with the next variants, so that the "
            "trajectories are not independent draws and pass@k is no estimate for them."
        )
    return (note,)


def _default_name(wanted: Settings) -> str:
    import re

    suite = Path(wanted.suite).stem if Path(wanted.suite).exists() else wanted.suite
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{suite}-{wanted.policy}").strip("-.")[:80]


def _where(backend: str) -> str:
    return "GPU" if backend == "gpu" else "CPU emulator"
