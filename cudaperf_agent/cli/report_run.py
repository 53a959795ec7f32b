"""`cudaperf report`: the story of a stored run as one HTML page or as Markdown."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cudaperf_agent.cli.destination import check_out_file, write_report
from cudaperf_agent.cli.output import put, say
from cudaperf_agent.cli.runs import RunArgument


class Form(StrEnum):
    """What the report is written in."""

    html = "html"
    md = "md"


def report(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to write; stdout where it is left out.")
    ] = None,
    form: Annotated[
        Form | None, typer.Option("--format", metavar="FORM", help="html or md; by the file's name, else html.")
    ] = None,
) -> int:
    """Tell a run turn by turn: code, differences, messages, times, features, environment.

    The HTML page is one file that needs no network and runs no script.
    """
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings
    from graph.replay import replay_events
    from tui.run_view import RunView

    if out is not None:
        check_out_file(out)
    with open_store(load_settings().settings) as store:
        view = RunView.of(replay_events(store, run))
    if form is None:
        form = Form.md if out is not None and out.suffix.lower() in (".md", ".markdown") else Form.html
    if form is Form.md:
        from tui.report.markdown import MARK, markdown_report

        mark, text = MARK, markdown_report(view)
    else:
        from tui.report.html import MARK, html_report

        mark, text = MARK, html_report(view)
    if out is None:
        put(text.rstrip("\n"))
        return 0
    write_report(out, text, (mark,))
    say(f"wrote {out}")
    return 0
