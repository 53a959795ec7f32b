"""What a run of `modules_gpu.py` found, as Markdown: speeds, seconds per verdict, cheats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.modules.timing import COMPILED, EAGER

PAIR = "row_softmax_scale"
"""The module that is judged in both forms."""


def table(folder: Path) -> str:
    """Markdown of the speeds and of the seconds per verdict, from the files of a run."""
    lines = ["| module | variant | verdict | against eager | against torch.compile |", "|---|---|---|---|---|"]
    for label, found in read_part(folder, "variants").items():
        module, _, strategy = label.partition(" ")
        if "status" not in found:
            continue
        speedups = found.get("speedups", {})
        cells = [speed(speedups.get(baseline)) for baseline in (EAGER, COMPILED)]
        verdict = found["status"].replace("_", " ") + (f": {found['message']}" if found["message"] else "")
        lines.append(f"| `{module}` | {strategy} | {verdict} | {' | '.join(cells)} |")
    lines += ["", "| module | form | verdict | visible tests, s | with the hidden ones, s |", "|---|---|---|---|---|"]
    forms = {
        (PAIR, form): found for form, found in read_part(folder, "pair").items() if form in ("light", "load_inline")
    }
    forms |= {(name, "load_inline, beside others"): found for name, found in read_part(folder, "inline").items()}
    for (module, form), found in forms.items():
        cells = [f"{found['wall'][key]:.1f}" if key in found["wall"] else "–" for key in ("visible", "both")]
        said = found["status"].replace("_", " ") + (f": {found['message']}" if found["message"] else "")
        lines.append(f"| `{module}` | {form} | {said} | {' | '.join(cells)} |")
    tried = read_part(folder, "cheats")
    if tried:
        other = sorted(name for name, found in tried.items() if found["status"] not in found.get("expected", ()))
        lines += [
            "",
            f"Cheats: {len(tried) - len(other)} of {len(tried)} as expected. Others: {', '.join(other) or 'none'}.",
        ]
    return "\n".join(lines)


def read_part(folder: Path, name: str) -> dict[str, Any]:
    """What a part found so far."""
    path = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text())["result"] if path.exists() else {}
    return found


def speed(found: list[float] | None) -> str:
    """With its interval."""
    return f"{found[0]:.2f}× [{found[1]:.2f}, {found[2]:.2f}]" if found else "–"
