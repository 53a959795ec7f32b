"""The command line: registers the commands, and turns whatever happens into one message and one exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cudaperf_agent import __version__
from cudaperf_agent.cli import config, dataset, import_tasks, ranker, train
from cudaperf_agent.cli import eval as evaluation
from cudaperf_agent.cli.doctor import doctor
from cudaperf_agent.cli.features import features
from cudaperf_agent.cli.output import fail, put, put_json, say
from cudaperf_agent.cli.report_run import report
from cudaperf_agent.cli.resume import resume
from cudaperf_agent.cli.runs import runs
from cudaperf_agent.cli.serve import serve
from cudaperf_agent.cli.show import show
from cudaperf_agent.cli.translate import translate
from cudaperf_agent.cli.verify import verify
from cudaperf_agent.cli.watch import watch
from cudaperf_agent.errors import EXIT_BACKEND, EXIT_INTERRUPTED, EXIT_USAGE, CudaPerfError, UsageError

app = typer.Typer(
    name="cudaperf",
    help="Turns C into fast, tested CUDA: generate, compile, test, measure, refine.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 ok, 1 no correct kernel, 2 usage, configuration or refused input, 3 backend unavailable, "
    "4 time budget spent, 130 interrupted.",
)
for _command in (translate, resume, runs, show, watch, report, verify, features, serve, doctor):
    app.command()(_command)
app.add_typer(config.app, name="config")
app.add_typer(dataset.app, name="dataset")
app.add_typer(import_tasks.app, name="import")
app.add_typer(ranker.app, name="ranker")
app.add_typer(evaluation.app, name="eval")
app.add_typer(train.app, name="train")

# typer's own family of usage errors; its base has another name and home in older versions.
_TYPER_ERRORS: type[Exception] = typer.BadParameter.__mro__[-4]


def _show_version(wanted: bool) -> None:
    if wanted:
        put(f"cudaperf {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the whole program."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; the process's own by default.

    Returns:
        The exit code: see `cudaperf_agent.errors`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="cudaperf", standalone_mode=False)
    except CudaPerfError as error:
        return fail(error, as_json=as_json)
    except typer.Abort:
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return _interrupted(as_json)
    except _TYPER_ERRORS as error:
        return _usage(error, as_json)
    except Exception as error:  # noqa: BLE001 - the boundary: nobody but us may see a traceback
        return _internal(error, as_json)
    # Typer gives what the command returned, or the code of an `Exit`; it makes one of an interrupt.
    if code == EXIT_INTERRUPTED:
        return _interrupted(as_json)
    return code if isinstance(code, int) else 0


def _interrupted(as_json: bool) -> int:
    if as_json:
        put_json({"error": {"kind": "interrupted", "message": "interrupted", "where": None, "hint": None}})
    else:
        say("interrupted")
    return EXIT_INTERRUPTED


def _usage(error: Exception, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None and not as_json:
        say(context.get_help())
        return EXIT_USAGE
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    path = context.command_path if context is not None else "cudaperf"
    return fail(UsageError(message.rstrip("."), hint=f"`{path} --help` lists what it takes"), as_json=as_json)


def _internal(error: Exception, as_json: bool) -> int:
    """A fault of ours: the traceback goes to a file, the user gets one sentence and that file's name."""
    import traceback

    from cudaperf_agent.execution.paths import data_dir

    path = data_dir() / "crash.log"
    note = f"the details are in {path}; please report it with that file"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError as why:
        note = f"the details could not be written to {path} ({why.strerror})"
    wrapped = CudaPerfError(f"internal error: {type(error).__name__}: {error}", hint=note)
    fail(wrapped, as_json=as_json)
    return EXIT_BACKEND


if __name__ == "__main__":
    sys.exit(main())
