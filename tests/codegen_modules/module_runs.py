"""Traces, builds and runs module files for the tests: torch in child processes, kernels on the emulator."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.codegen.modules import trace
from cudaperf_agent.codegen.modules.variants import generate_module
from cudaperf_agent.codegen.variants import Generation
from cudaperf_agent.cuda import emulator
from cudaperf_agent.execution.child import Limits, run_child

HERE = Path(__file__).parent
HANDED = HERE.parent / "cases" / "torch"
CHILD = HERE / "module_child.py"
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Traced:
    """A module file, its graph, and what is generated from it."""

    file: Path
    graph_file: Path
    graph: dict[str, Any]
    generation: Generation


def cuda_of(source: str) -> str:
    """The CUDA text of a candidate."""
    found = re.search(r'CUDA_SOURCE = r"""(.*?)"""', source, re.DOTALL)
    assert found is not None
    return found.group(1)


async def traced(files: Sequence[Path], folder: Path) -> dict[str, Traced]:
    """Traces files in one child process."""
    command = [sys.executable, str(CHILD), "trace", str(trace.__file__), str(folder), *map(str, files)]
    child = await run_child(command, limits=Limits(seconds=600, memory=8 << 30))
    assert child.ok, child.stderr.decode()[-2000:]
    found = {}
    for file in files:
        path = folder / f"{file.stem}.json"
        graph = json.loads(path.read_text())
        found[file.stem] = Traced(file, path, graph, generate_module(graph, class_source=file.read_text()))
    return found


async def built(cuda: str, folder: Path) -> None:
    """A library of a CUDA text where the loader looks for it."""
    digest = hashlib.sha256(cuda.encode()).hexdigest()
    library = folder / f"{digest}.so"
    if library.exists():
        return
    work = folder / digest
    work.mkdir(exist_ok=True)
    (work / "empty.c").write_text("")
    compiled = await run_child(["gcc", "-fPIC", "-c", "empty.c", "-o", "empty.o"], cwd=work)
    assert compiled.ok, compiled.stderr
    made = await emulator.build(cuda, path_name="kernels.cu", folder=work, extra=[work / "empty.o"], mode="fast")
    assert made.library is not None, made
    made.library.rename(library)


async def compared(modules: Mapping[str, Traced], folder: Path, styles: Sequence[str] | None = None) -> dict[str, str]:
    """What is wrong with each variant, by ``module/style``; an empty text for nothing.

    Args:
        modules: What to run.
        folder: For libraries and candidates.
        styles: Variants to run: ``first``, or names; all where `None`.
    """
    jobs, texts = [], {}
    for name, module in modules.items():
        assert module.generation.declined is None, (name, module.generation.declined)
        for number, variant in enumerate(module.generation.variants):
            if styles is not None and variant.strategy not in styles and not (number == 0 and "first" in styles):
                continue
            candidate = folder / f"{name}__{variant.strategy}.py"
            candidate.write_text(variant.source)
            texts[cuda_of(variant.source)] = None
            jobs.append(
                {
                    "name": f"{name}/{variant.strategy}",
                    "module": str(module.file),
                    "candidate": str(candidate),
                    "trace": str(module.graph_file),
                }
            )
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(text: str) -> None:
        async with turns:
            await built(text, folder)

    emulator.runtime_library("fast")
    await asyncio.gather(*(one(t) for t in texts))
    (folder / "jobs.json").write_text(json.dumps(jobs))
    child = await run_child(
        [sys.executable, str(CHILD), "compare", str(folder / "jobs.json")],
        limits=Limits(seconds=900, memory=8 << 30),
        env={
            **os.environ,
            **emulator.environment("forward", 0),
            "LD_PRELOAD": str(emulator.runtime_library("fast")),
            "CUDAPERF_KERNELS": str(folder),
        },
    )
    assert child.ok, child.stderr.decode()[-2000:]
    answers: dict[str, str] = json.loads(child.stdout.decode().strip().splitlines()[-1])
    assert len(answers) == len(jobs)
    return answers
