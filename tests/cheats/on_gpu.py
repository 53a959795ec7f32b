"""What a GPU made of the cheats: from results of `benchmarks.verdicts_gpu` to the file that the table reads.

    python -m tests.cheats.on_gpu results.jsonl > tests/cheats/gpu.json

Several files of results may be named; of a cheat that several judged, the last one counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("gpu.json")


def summary(lines: list[str]) -> dict[str, Any]:
    """Device, command, and status of each file; the last row of a name counts."""
    rows = [json.loads(line) for line in lines if line.strip()]
    machines = [r for r in rows if r["part"] == "machine" and r.get("gpu")]
    statuses = {r["name"]: r["status"] for r in rows if r["part"] == "cheat"}
    return {
        "device": machines[-1]["gpu"]["name"] if machines else "unknown",
        "driver": machines[-1]["gpu"]["driver"] if machines else "unknown",
        "command": "python -m benchmarks.verdicts_gpu --out results.jsonl --parts machine,cheats",
        "statuses": dict(sorted(statuses.items())),
    }


def known() -> dict[str, str]:
    """Status by file name on the GPU; empty where none was asked."""
    return dict(json.loads(KEPT.read_text())["statuses"]) if KEPT.exists() else {}


def told() -> str:
    """Which GPU, for the page; empty where none was asked."""
    if not KEPT.exists():
        return ""
    data = json.loads(KEPT.read_text())
    return f"On a GPU: {data['device']}, driver for CUDA {data['driver']}, `{data['command']}`.\n"


if __name__ == "__main__":
    json.dump(summary([r for name in sys.argv[1:] for r in Path(name).read_text().splitlines()]), sys.stdout, indent=1)
    print()
