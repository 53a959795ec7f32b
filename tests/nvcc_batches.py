"""What nvcc refuses of many generated sources: asked in a few runs, and of each alone where a run fails.

Each run of nvcc reads its headers anew, and optimising costs more than all else, while what it refuses is said without
either. So sources with the same includes go into one file, each in a namespace of its own;
sources that define macros, which no namespace keeps apart, are compiled alone.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

from cudaperf_agent.cuda.compile import CompileConfig, compile_cuda
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.execution.child import Limits

BATCH = 24
_INCLUDE = re.compile(r"\s*#\s*include\b")
_DIRECTIVE = re.compile(r"^\s*#\s*(?!include\b|pragma\s+unroll\b)", re.M)


@lru_cache(maxsize=1)
def _quick() -> tuple[str, ...]:
    """The flag that has nvcc optimise hardly at all, where it knows one (CUDA 12.9 or newer)."""
    said = subprocess.run([str(find_nvcc().path), "--help"], capture_output=True, text=True, check=False).stdout
    return ("-Ofc", "max") if "--Ofast-compile" in said else ()


async def refused(sources: Mapping[str, str], *, flags: Sequence[str] = ("-std=c++17",)) -> dict[str, list[str]]:
    """nvcc's errors for those of `sources` that it does not take, by name.

    Args:
        sources: CUDA text by name.
        flags: Of nvcc.
    """
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    alone = []
    for name, text in sources.items():
        if _DIRECTIVE.search(text):
            alone.append(name)
        else:
            groups[tuple(line.strip() for line in text.splitlines() if _INCLUDE.match(line))].append(name)
    for group, names in groups.items():
        for first in range(0, len(names), BATCH):
            batch = names[first : first + BATCH]
            parts = list(group)
            for number, name in enumerate(batch):
                body = "\n".join(line for line in sources[name].splitlines() if not _INCLUDE.match(line))
                # Functions with C linkage are the same one in every namespace.
                body = body.replace('extern "C"', "")
                parts.append(f"namespace v{number} {{\n{body}\n}}")
            if await _errors("\n".join(parts), flags):
                alone += batch
    found = {name: await _errors(sources[name], flags) for name in alone}
    return {name: errors for name, errors in found.items() if errors}


async def _errors(text: str, flags: Sequence[str]) -> list[str]:
    config = CompileConfig(flags=(*flags, *_quick()), limits=Limits(seconds=600, memory=3 << 30), source_bytes=8 << 20)
    made = await compile_cuda(find_nvcc(), text, "cubin", config=config)
    if made.artefact is not None:
        return []
    return [d.message for d in made.diagnostics if d.severity == "error"][:5] or ["there is no cubin"]
