"""Time of feature extraction per source, after start-up, on one core.

    python benchmarks/features.py [--json] [--aim-ms 15] [FILE.cu ...]

Without files: golden sources joined to sources of about 60 lines, with several kernels and launches each. Two figures:
within the parsing process (CPU time), and through `extract`, which adds a pipe and JSON (wall time).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cudaperf_agent.features.extract import extract, extract_here

GOLDEN = Path(__file__).parent.parent / "tests" / "features" / "golden"
LINES = 60
ROUNDS = 5


def sixty_line_sources() -> list[str]:
    """Golden sources joined, names made distinct, until each has about sixty lines of code."""
    bodies = [
        re.sub(r"/\*.*?\*/", "", p.read_text(), count=1, flags=re.DOTALL).strip() for p in sorted(GOLDEN.glob("*.cu"))
    ]
    found: list[str] = []
    parts: list[str] = []
    for number, body in enumerate(bodies):
        if "main(" in body or "#define" in body:
            continue
        parts.append(f"namespace part{number} {{\n{body}\n}}" if "#include" not in body else body)
        if sum(p.count("\n") + 1 for p in parts) >= LINES:
            includes = sorted({line for p in parts for line in p.splitlines() if line.startswith("#include")})
            rest = "\n".join(line for p in parts for line in p.splitlines() if not line.startswith("#include"))
            found.append("\n".join([*includes, rest]))
            parts = []
    return found


def best(measure: Callable[[str], object], source: str, clock: Callable[[], float]) -> float:
    """Least milliseconds of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = clock()
        measure(source)
        times.append((clock() - start) * 1e3)
    return min(times)


def main() -> int:
    """Print the table; exit status 1 if the median misses the aim."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--aim-ms", type=float, default=15.0)
    arguments.add_argument("files", nargs="*", type=Path)
    given = arguments.parse_args()
    sources = [p.read_text() for p in given.files] or sixty_line_sources()
    extract(sources[0])
    extract_here(sources[0])
    inside = [best(extract_here, s, time.process_time) for s in sources]
    outside = [best(extract, s, time.perf_counter) for s in sources]
    result = {
        "sources": len(sources),
        "median_lines": statistics.median(s.count("\n") + 1 for s in sources),
        "median_ms": round(statistics.median(inside), 2),
        "worst_ms": round(max(inside), 2),
        "median_ms_through_process": round(statistics.median(outside), 2),
        "aim_ms": given.aim_ms,
    }
    if given.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:28} {value}")
    return 0 if result["median_ms"] <= given.aim_ms else 1


if __name__ == "__main__":
    sys.exit(main())
