"""`cudaperf verify`: judge somebody's `.cu` by the same tests that a candidate of ours has to pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json
from cudaperf_agent.errors import EXIT_NO_KERNEL, EXIT_OK

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verdict import Verdict


def verify(
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The .cu: NAME_device, NAME, or a program.")],
    task: Annotated[Path, typer.Option("--task", metavar="FILE", help="The C file that it is to replace.")],
    entry: Annotated[
        str | None, typer.Option(metavar="NAME", help="The function, where the file leaves it open.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(metavar="FILE", help="As for translate.")] = None,
    stdin: Annotated[list[Path] | None, typer.Option("--stdin", metavar="FILE", help="As for translate.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the test inputs.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Compile and test a CUDA file against its C, on visible and hidden cases, and time it where there is a GPU.

    Ends with 0 if it is correct and with 1 if it is not.
    """
    from cudaperf_agent.cli import compose
    from cudaperf_agent.settings import load_settings
    from graph import loop

    settings = load_settings({"translate.seed": seed}).settings
    text = compose.read_text(candidate, "the candidate")
    source = compose.Source(task, entry=entry, spec=spec, stdin_files=tuple(stdin or ()))
    verdict = loop.run(compose.verify_async(source, text, settings))
    if as_json:
        put_json({"verdict": verdict.to_dict()})
    else:
        put(_told(verdict, candidate))
    return EXIT_OK if verdict.correct else EXIT_NO_KERNEL


def _told(verdict: Verdict, candidate: Path) -> str:
    from cudaperf_agent.policies.feedback import build_feedback

    if not verdict.correct:
        lines = build_feedback(verdict).rstrip().splitlines()
        return f"{candidate}: {verdict.status.value}\n" + "\n".join(lines[:-1])
    from cudaperf_agent.cli.report import lined_up, speed_rows, verified_text

    return f"{candidate}: correct\n" + lined_up([("verified", verified_text(verdict)), *speed_rows(verdict)])
