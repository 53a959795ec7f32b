"""PyTorch modules on a GPU: speeds against eager and torch.compile, load_inline files, seconds per verdict, cheats.

    python benchmarks/modules_gpu.py --out FOLDER [--dry] [--scale 1] [--parts pair,variants,inline,cheats]

Every part is written to FOLDER/PART.json when it is done (``variants`` after each module), and a part that is there is
not run again. ``--dry`` takes the emulator, where load_inline files are unsupported and nothing is timed: it shows that
the script works.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cudaperf_agent.codegen.modules.variants import generate_module  # noqa: E402
from cudaperf_agent.cuda.gpu import find_gpu  # noqa: E402
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig  # noqa: E402
from cudaperf_agent.errors import CudaPerfError  # noqa: E402
from cudaperf_agent.tasks.model import Task  # noqa: E402
from cudaperf_agent.tasks.modules.find import load_module_task  # noqa: E402
from tests.cheats.module_files import HERE as CHEATS  # noqa: E402
from tests.cheats.module_files import ModuleAttempt, module_attempts  # noqa: E402

CASES = ROOT / "tests" / "cases"
NAMES = ("row_softmax_scale", "group_norm_silu", "embedding_bag_mean", "linear_gelu_residual")
PAIR = "row_softmax_scale"
INLINE = ("group_norm_silu", "embedding_bag_mean")  # the third one is in the pair
# Seconds of each part; what did not fit is said in its file.
LIMITS = {"pair": 80.0, "variants": 80.0, "inline": 55.0, "cheats": 25.0}
TIMED_VARIANTS = 2
CHEATS_AT_ONCE = 8


class Bench:
    """One verifier, and modules described once."""

    def __init__(self, dry: bool) -> None:
        self.dry = dry
        # Races and bounds were looked for on the emulator before; here the seconds are for what only a GPU can tell.
        config = VerifierConfig(also_emulate=False)
        self.verifier = Verifier(config, gpu=None) if dry else Verifier(config)
        self._tasks: dict[str, asyncio.Task[Task]] = {}

    async def task(self, path: Path, mode: Any = "pure-cuda") -> Task:
        """The described task of a file."""
        key = f"{path} {mode}"
        if key not in self._tasks:
            loaded = load_module_task(path, mode=mode)
            self._tasks[key] = asyncio.create_task(self.verifier.modules.reference.described(loaded))
        return await self._tasks[key]

    async def judged(self, task: Task, source: str) -> dict[str, Any]:
        """Visible and hidden tests from a fresh source, with wall time."""
        started = time.monotonic()
        verdict = await self.verifier.test(task, source)
        visible = time.monotonic() - started
        if verdict.correct:
            verdict = await self.verifier.test(task, source, hidden=True)
        seconds = {"visible": visible, "both": time.monotonic() - started}
        return {
            "status": verdict.status.value,
            "message": verdict.message,
            "wall": seconds,
            "verdict": verdict.to_dict(),
        }


async def pair(bench: Bench, keep: Callable[[dict[str, Any]], None]) -> None:
    """Seconds per verdict: light form and load_inline of the same module, one after the other, nothing beside them."""
    task = await bench.task(CASES / "torch" / f"{PAIR}.py")
    # What is made once per module is made before.
    await bench.verifier.modules.suite_digest(task, False)
    await bench.verifier.modules.suite_digest(task, True)
    found: dict[str, Any] = {}
    stamp = f"// {time.time()}"  # so that no cache holds it
    for form, folder in (("light", "torch_light"), ("load_inline", "torch_inline")):
        text = (CASES / folder / f"{PAIR}.py").read_text()
        found[form] = await bench.judged(task, text.replace("__global__ void", f"{stamp}\n__global__ void", 1))
        keep(found)
        say(f"pair: {form}: {found[form]['status']} {found[form]['wall']} {found[form]['message']}")


async def variants(bench: Bench, keep: Callable[[dict[str, Any]], None]) -> None:
    """The handed modules with the generator's first variants: tested, hidden-tested, timed against both baselines."""
    tasks = await asyncio.gather(*(bench.task(CASES / "torch" / f"{name}.py") for name in NAMES))
    found: dict[str, Any] = {}
    for name, task in zip(NAMES, tasks, strict=True):
        assert task.module is not None
        generation = generate_module(json.loads(task.module.graph), class_source=task.source)
        rows = []
        for variant in generation.variants[: 1 if bench.dry else TIMED_VARIANTS]:
            row = await bench.judged(task, variant.source)
            verdict = await bench.verifier.test(task, variant.source, hidden=True)
            if verdict.correct:
                verdict = await bench.verifier.measure(task, variant.source, verdict)
            row |= {"strategy": variant.strategy, "verdict": verdict.to_dict(), "status": verdict.status.value}
            row["message"] = verdict.message
            rows.append(row)
            speeds = ", ".join(f"{s.value:.2f}x {s.baseline}" for s in verdict.speedups)
            say(f"variants: {name} {variant.strategy}: {verdict.status.value} {verdict.message} {speeds}")
        declined = generation.declined.reason if generation.declined else ""
        found[name] = {"variants": rows, "declined": declined}
        keep(found)


async def inline(bench: Bench, keep: Callable[[dict[str, Any]], None]) -> None:
    """The other load_inline files, unchanged, both at once."""
    found: dict[str, Any] = {}

    async def one(name: str) -> None:
        task = await bench.task(CASES / "torch" / f"{name}.py")
        found[name] = await bench.judged(task, (CASES / "torch_inline" / f"{name}.py").read_text())
        keep(found)
        say(f"inline: {name}: {found[name]['status']} {found[name]['message']} {found[name]['wall']}")

    await asyncio.gather(*(one(name) for name in INLINE))


async def cheats(bench: Bench, keep: Callable[[dict[str, Any]], None]) -> None:
    """Every cheat in PyTorch form; none may come out correct unless that is what it is (or only a time would tell)."""
    gate, found = asyncio.Semaphore(CHEATS_AT_ONCE), {}

    async def one(attempt: ModuleAttempt) -> None:
        task = await bench.task(CHEATS / "tasks" / f"{attempt.task}.py", attempt.mode)
        async with gate:
            verdict = await bench.verifier.test(task, attempt.source, hidden=attempt.hidden)
        if attempt.on_gpu and verdict.correct:
            verdict = await bench.verifier.measure(task, attempt.source, verdict)
        found[attempt.name] = {
            "status": verdict.status.value,
            "message": verdict.message,
            "expected": sorted(attempt.expected),
            "on_gpu": attempt.on_gpu,
        }
        keep(found)
        mark = "" if verdict.status.value in attempt.expected else "   <-- not as on the emulator"
        say(f"cheats: {attempt.name}: {verdict.status.value}{mark}")

    attempts = module_attempts()
    await asyncio.gather(*(one(a) for a in (attempts[:3] if bench.dry else attempts)))


PARTS: dict[str, Callable[[Bench, Callable[[dict[str, Any]], None]], Awaitable[None]]] = {
    "pair": pair,
    "variants": variants,
    "inline": inline,
    "cheats": cheats,
}


async def run(out: Path, parts: list[str], dry: bool, scale: float) -> int:
    """All parts that are not there yet."""
    bench = Bench(dry)
    failed = 0
    try:
        for name in parts:
            path = out / f"{name}.json"
            if path.exists() and json.loads(path.read_text()).get("done"):
                say(f"{name}: done before")
                continue
            content: dict[str, Any] = {"part": name, "device": bench.verifier.place.device, "done": False}

            def keep(result: dict[str, Any], path: Path = path, content: dict[str, Any] = content) -> None:
                content["result"] = result
                path.write_text(json.dumps(content, indent=1, default=str))

            started = time.monotonic()
            try:
                await asyncio.wait_for(PARTS[name](bench, keep), None if dry else scale * LIMITS[name])
                content["done"] = True
            except (TimeoutError, CudaPerfError) as error:
                content["stopped"] = f"{type(error).__name__}: {error}"
                failed += 1
            content["seconds"] = time.monotonic() - started
            keep(content.get("result", {}))
            say(f"{name}: {content['seconds']:.1f} s {content.get('stopped', '')}")
    finally:
        await bench.verifier.aclose()
    return 1 if failed else 0


def say(text: str) -> None:
    """A line of progress, at once."""
    print(text, flush=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="times the limits of the parts, 240 s in all")
    parser.add_argument("--dry", action="store_true")
    arguments = parser.parse_args()
    if not arguments.dry and find_gpu() is None:
        print("there is no GPU here; --dry tries the script on the emulator", file=sys.stderr)
        return 3
    arguments.out.mkdir(parents=True, exist_ok=True)
    return asyncio.run(run(arguments.out, arguments.parts.split(","), arguments.dry, arguments.scale))


if __name__ == "__main__":
    sys.exit(main())
