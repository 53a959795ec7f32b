"""`cudaperf verify`: judge somebody's `.cu` by the same tests that a candidate of ours has to pass."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, say
from cudaperf_agent.cli.translate import ClassOption, DtypeOption, InputsOption, ModeOption, with_module
from cudaperf_agent.errors import EXIT_NO_KERNEL, EXIT_OK, UsageError

if TYPE_CHECKING:
    from cudaperf_agent.cuda.replay import Replay
    from cudaperf_agent.cuda.verdict import Verdict


class TrustChoice(StrEnum):
    """How far a candidate is believed."""

    SUSPICIOUS = "suspicious"
    OWN = "own"


def verify(
    candidate: Annotated[
        Path,
        typer.Argument(metavar="CANDIDATE", help="The .cu: NAME_device, NAME, or a program; the .py with ModelNew."),
    ],
    task: Annotated[
        Path, typer.Option("--task", metavar="FILE", help="The C file, or PyTorch file, that it is to replace.")
    ],
    entry: Annotated[
        str | None, typer.Option(metavar="NAME", help="The function, where the file leaves it open.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(metavar="FILE", help="As for translate.")] = None,
    stdin: Annotated[list[Path] | None, typer.Option("--stdin", metavar="FILE", help="As for translate.")] = None,
    class_name: ClassOption = None,
    inputs: InputsOption = None,
    mode: ModeOption = "pure-cuda",
    dtype: DtypeOption = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the test inputs.")] = None,
    trust: Annotated[
        TrustChoice | None,
        typer.Option(
            help="own, only for kernels of our own generator: on a GPU nothing looks for cheats, which is quicker."
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="VERDICT", help="A verdict from --json: make it again on its inputs and compare."),
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Compile and test a CUDA file against its C, or a ModelNew against its PyTorch module, and time it on a GPU.

    Visible and hidden cases are tried.

    Ends with 0 if it is correct and with 1 if it is not; with --replay, with 0 if the verdict comes out as before.
    """
    from cudaperf_agent.cli import judging
    from cudaperf_agent.cli.source import Source, read_text
    from cudaperf_agent.settings import load_settings
    from graph import loop

    settings = load_settings({"translate.seed": seed, "verify.trust": trust and trust.value}).settings
    text = read_text(candidate, "the candidate")
    source = Source(task, entry=entry, spec=spec, stdin_files=tuple(stdin or ()))
    source = with_module(source, class_name, inputs, mode, dtype or [])
    if replay is not None:
        if seed is not None:
            raise UsageError("--replay takes the seed from the verdict", where="--seed", hint="Leave out --seed.")
        if trust is not None:
            raise UsageError("--replay takes the trust from the verdict", where="--trust", hint="Leave out --trust.")
        again = loop.run(judging.replay_async(source, text, read_record(replay)))
        if as_json:
            put_json({"verdict": again.verdict.to_dict(), "differences": list(again.differences)})
        else:
            put(_compared(again, candidate))
        return EXIT_NO_KERNEL if again.differences else EXIT_OK
    verdict = loop.run(judging.verify_async(source, text, settings, say=say))
    if settings.verify.trust != verdict.trust:
        say("--trust own changes nothing here: without a GPU nothing is left out")
    if as_json:
        put_json({"verdict": verdict.to_dict()})
    else:
        put(_told(verdict, candidate))
    return EXIT_OK if verdict.correct else EXIT_NO_KERNEL


def read_record(path: Path) -> dict[str, Any]:
    """A verdict from a file: the object of `verify --json`, or the verdict in it alone.

    Raises:
        UsageError: It is neither.
    """
    from cudaperf_agent.cli.source import read_text
    from cudaperf_agent.cuda.verdict import Verdict

    hint = "Write one with `cudaperf verify CANDIDATE --task FILE --json > verdict.json`."
    try:
        data = json.loads(read_text(path, "the verdict"))
        record = data.get("verdict", data)
        Verdict.from_dict(dict(record))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is not a verdict: {error}", where="--replay", hint=hint) from error
    return dict(record)


def _compared(again: Replay, candidate: Path) -> str:
    status = again.verdict.status.value
    if not again.differences:
        return f"{candidate}: {status}, as before"
    lines = "".join(f"\n  {difference}" for difference in again.differences)
    return f"{candidate}: {status}, not as before:{lines}"


def _told(verdict: Verdict, candidate: Path) -> str:
    from cudaperf_agent.policies.feedback import build_feedback

    if not verdict.correct:
        lines = build_feedback(verdict).rstrip().splitlines()
        return f"{candidate}: {verdict.status.value}\n" + "\n".join(lines[:-1])
    from cudaperf_agent.cli.report import lined_up, speed_rows, verified_text

    return f"{candidate}: correct\n" + lined_up([("verified", verified_text(verdict)), *speed_rows(verdict)])
