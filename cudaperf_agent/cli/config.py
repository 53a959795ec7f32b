"""`cudaperf config`: what the settings are and where each of them came from."""

from __future__ import annotations

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, table

app = typer.Typer(help="Settings.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Settings: what they are and where they come from."""


@app.command()
def show(as_json: JsonFlag = False) -> int:
    """Print every setting with its value and where it came from.

    The order of authority is flag, environment, project file (cudaperf.toml here or in a parent folder), user file,
    default. Secrets are masked.
    """
    from cudaperf_agent.settings import load_settings

    shown = load_settings().shown()
    if as_json:
        put_json({"settings": shown})
        return 0
    rows = [
        (key, _text(entry["value"]), entry["layer"] + (f" ({entry['place']})" if entry["place"] else ""))
        for key, entry in shown.items()
    ]
    put(table(rows, heading=("setting", "value", "from")))
    return 0


def _text(value: object) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
