"""`cudaperf translate`: a C file in, a tested drop-in CUDA file out; or a PyTorch module in, a `ModelNew` out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json
from cudaperf_agent.cli.signals import termination_interrupts
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from cudaperf_agent.cli.compose import Translation
    from cudaperf_agent.cli.display import Display
    from cudaperf_agent.cli.source import Source
    from cudaperf_agent.settings_model import Settings
    from cudaperf_agent.tasks.modules.spec import ModuleMode
    from graph.events import Event

    Work = Coroutine[Any, Any, Translation]

OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")]
DisplayOption = Annotated[
    str | None, typer.Option("--display", help="Progress on stderr: auto, plain, log or none.", metavar="FORM")
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="auto, variants, openai[:MODEL], local[:FOLDER[+ADAPTER]], vllm[:MODEL[+ADAPTER]], ensemble[:POLICY] or "
        "scripted:PATH.",
    ),
]
ClassOption = Annotated[
    str | None, typer.Option("--class", metavar="NAME", help="PyTorch: the module's class, where it is not Model.")
]
InputsOption = Annotated[
    str | None,
    typer.Option(metavar="SPEC", help='PyTorch: its inputs, where there is no get_inputs: "f32[64,128], i64[64]".'),
]
ModeOption = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help="PyTorch: pure-cuda (own kernels do all computing) or libraries-allowed (torch's operators too).",
    ),
]
DtypeOption = Annotated[
    list[str] | None,
    typer.Option("--dtype", metavar="TYPE", help="PyTorch: test in f32, f16, bf16 or f64; repeat for more."),
]


def translate(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="The C file, or .py with a PyTorch module; - reads C from stdin.")
    ],
    entry: Annotated[
        str | None, typer.Option(metavar="NAME", help="The function to translate, where the file leaves it open.")
    ] = None,
    turns: Annotated[int | None, typer.Option(metavar="N", help="Turns per trajectory, at most 5.")] = None,
    trajectories: Annotated[
        int | None, typer.Option(metavar="N", help="Independent searches at the same time.")
    ] = None,
    policy: PolicyOption = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML or JSON file that says what a cudaperf: comment could say."),
    ] = None,
    stdin: Annotated[
        list[Path] | None, typer.Option("--stdin", metavar="FILE", help="Example input of a program; repeat for more.")
    ] = None,
    include: Annotated[
        list[Path] | None,
        typer.Option("--include-dir", "-I", metavar="DIR", help="Folder with headers; repeat for more."),
    ] = None,
    define: Annotated[
        list[str] | None, typer.Option("--define", "-D", metavar="NAME=VALUE", help="Macro; repeat for more.")
    ] = None,
    class_name: ClassOption = None,
    inputs: InputsOption = None,
    mode: ModeOption = "pure-cuda",
    dtype: DtypeOption = None,
    out: OutOption = Path(),
    as_json: JsonFlag = False,
    display: DisplayOption = None,
    tui: Annotated[bool, typer.Option("--tui", help="Watch it at work on the whole terminal.")] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of test inputs and sampling.")] = None,
    time_budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="No new turn begins after so many seconds.")
    ] = None,
) -> int:
    """Translate a C function (or program), or a PyTorch module, into tested CUDA.

    Writes NAME.cu, NAME_host.c where it is needed and NAME.report.json, and says what was verified, where, what was
    assumed and how fast it is. Link NAME.cu in place of the C file. Progress goes to stderr.

    For a .py file it writes model_new.py, which needs torch and nvcc only: a class ModelNew with the same constructor,
    state and results as the module.
    """
    from cudaperf_agent.cli import compose
    from cudaperf_agent.cli.report import check_folder
    from cudaperf_agent.settings import load_settings

    flags = {
        "translate.policy": policy,
        "translate.turns": turns,
        "translate.trajectories": trajectories,
        "translate.seed": seed,
        "translate.time_budget": time_budget,
        "display": display,
    }
    settings = load_settings(flags).settings
    if tui:
        from cudaperf_agent.cli.watch import check_display

        check_display()
    source = _source(file, entry, spec, stdin or [], include or [], define or [])
    source = with_module(source, class_name, inputs, mode, dtype or [])

    def work(shown: Display, on_event: Callable[[Event], None], control: RunControl) -> Work:
        return compose.translate_async(
            source,
            settings,
            on_event=on_event,
            say=shown.note,
            control=control,
            check=lambda task: check_folder(task, out),
        )

    if tui:
        return _drive_tui(work, settings, out, as_json=as_json)
    return drive(work, settings.display, out, as_json=as_json)


def drive(
    work: Callable[[Display, Callable[[Event], None], RunControl], Work],
    display: str,
    out: Path,
    *,
    as_json: bool,
) -> int:
    """Run a translation with progress, write its files and say what it came to.

    The first Ctrl-C lets the step at work end, the second cancels it; either way the run can be resumed.

    Args:
        work: Makes the coroutine, given the display, where events go and what can drain the run.
        display: Name of the display.
        out: Folder for the files.
        as_json: Whether the report goes to stdout rather than a summary.

    Raises:
        CudaPerfError: There is no correct candidate, or the user stopped it.
    """
    from langgraph.runtime import RunControl

    from cudaperf_agent.cli.display import make_display
    from cudaperf_agent.cli.outcome import interrupted
    from graph import loop

    extra = "" if out == Path() else f" --out {out}"
    shown = make_display(display)
    control = RunControl()
    begun: list[str] = []

    def on_event(event: Event) -> None:
        if not begun:
            begun.append(event.run)
        shown.show(event)

    def on_interrupt() -> None:
        shown.note("interrupted: waiting for the step at work (once more to stop at once)")
        control.request_drain()

    try:
        with termination_interrupts():
            translation = loop.run(work(shown, on_event, control), on_interrupt=on_interrupt)
    except KeyboardInterrupt:
        raise interrupted(begun[0] if begun else None, extra) from None
    finally:
        shown.close()
    return _conclude(translation, out, as_json=as_json)


def _drive_tui(
    work: Callable[[Display, Callable[[Event], None], RunControl], Work],
    settings: Settings,
    out: Path,
    *,
    as_json: bool,
) -> int:
    """As `drive`, with the terminal app in place of a display."""
    from cudaperf_agent.cli.outcome import interrupted
    from cudaperf_agent.cli.watch import watch_translation

    begun: list[str] = []

    def noting(shown: Display, on_event: Callable[[Event], None], control: RunControl) -> Work:
        def note(event: Event) -> None:
            if event.run and not begun:
                begun.append(event.run)
            on_event(event)

        return work(shown, note, control)

    try:
        translation = watch_translation(noting, settings)
    except KeyboardInterrupt:
        translation = None
    if translation is None:
        raise interrupted(begun[0] if begun else None, "" if out == Path() else f" --out {out}")
    return _conclude(translation, out, as_json=as_json)


def _conclude(translation: Translation, out: Path, *, as_json: bool) -> int:
    """Write the files of a run that has ended and say what it came to."""
    from cudaperf_agent.cli.outcome import trouble
    from cudaperf_agent.cli.report import build_report, summary, write_files

    extra = "" if out == Path() else f" --out {out}"
    error = trouble(translation.result, translation.task.path, extra)
    if error is not None:
        error.report = build_report(translation, {})
        raise error
    written = write_files(translation, out)
    if as_json:
        put_json(build_report(translation, written))
    else:
        put(summary(translation, written))
    return 0


def with_module(source: Source, class_name: str | None, inputs: str | None, mode: str, dtypes: list[str]) -> Source:
    """The source with what was said about a PyTorch module.

    Raises:
        UsageError: There is no such mode.
    """
    return replace(source, class_name=class_name, inputs=inputs, mode=mode_of(mode), dtypes=tuple(dtypes))


def mode_of(text: str) -> ModuleMode:
    """What a candidate for a module may call.

    Raises:
        UsageError: There is no such mode.
    """
    if text not in ("pure-cuda", "libraries-allowed"):
        raise UsageError(f"{text} is no mode", where="--mode", hint="Use pure-cuda or libraries-allowed.")
    return "libraries-allowed" if text == "libraries-allowed" else "pure-cuda"


def _source(
    file: str, entry: str | None, spec: Path | None, stdin: list[Path], include: list[Path], define: list[str]
) -> Source:
    from cudaperf_agent.cli.source import Source

    text = None
    if file == "-":
        text = sys.stdin.buffer.read().decode("utf-8", errors="replace")
        if not text.strip():
            raise UsageError("standard input is empty", where="-", hint="cudaperf translate - < FILE.c")
    return Source(None if file == "-" else Path(file), text, entry, spec, tuple(stdin), tuple(include), tuple(define))
