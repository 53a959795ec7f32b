"""`cudaperf features`: what a CUDA source looks like, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, table

if TYPE_CHECKING:
    from cudaperf_agent.features.model import Features


def features(
    file: Annotated[Path, typer.Argument(metavar="FILE.cu", help="The CUDA source.")], as_json: JsonFlag = False
) -> int:
    """Print the structural features of a CUDA source, where they come from, and what they hint at."""
    from dataclasses import asdict

    from cudaperf_agent.cli.source import read_text
    from cudaperf_agent.features.extract import extract
    from cudaperf_agent.features.hints import hints

    found = extract(read_text(file, "the CUDA source"))
    told = hints(found)
    if as_json:
        put_json({"features": found.to_dict(), "hints": [asdict(hint) for hint in told]})
        return 0
    put(table([(name, f"{value:.4g}", _from(found, name)) for name, value in found.values.items()]))
    for hint in told:
        put(f"{file}:{hint.line or 1}: {hint.message}")
    for gap in found.gaps:
        put(f"{file}:{gap.line or 1}: not known ({', '.join(gap.features)}): {gap.reason}")
    return 0


def _from(found: Features, name: str) -> str:
    lines = [f"line {e.line} {e.detail}".strip() for e in found.evidence if e.feature == name]
    return "; ".join(lines[:3]) + (f"; and {len(lines) - 3} more" if len(lines) > 3 else "")
