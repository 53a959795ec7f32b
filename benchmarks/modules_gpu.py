"""PyTorch modules on a GPU: speeds against eager and torch.compile, load_inline files, seconds per verdict, cheats.

    python benchmarks/modules_gpu.py --out FOLDER [--scale 1] [--parts variants,pair,inline,cheats]
    python benchmarks/modules_gpu.py --out FOLDER --rehearse     # the same code without a GPU, as far as that goes
    python benchmarks/modules_gpu.py --table FOLDER              # Markdown of what a folder holds

FOLDER/PART.json is written after every step of a part; a part that is whole is not run again. ``--rehearse`` takes the
emulator, where load_inline files are unsupported, and times the modules on the CPU (eager and compiled, few calls):
what it cannot show is the device itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cudaperf_agent.codegen.modules.variants import generate_module  # noqa: E402
from cudaperf_agent.cuda.gpu import find_gpu  # noqa: E402
from cudaperf_agent.cuda.modules.config import MODULES  # noqa: E402
from cudaperf_agent.cuda.modules.timing import COMPILED, EAGER, TimingPlace, make_baselines  # noqa: E402
from cudaperf_agent.cuda.verdict import Verdict  # noqa: E402
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig  # noqa: E402
from cudaperf_agent.tasks.model import Task  # noqa: E402
from cudaperf_agent.tasks.modules.find import load_module_task  # noqa: E402
from cudaperf_agent.tasks.modules.spec import ModuleMode  # noqa: E402
from tests.cheats.module_files import HERE as CHEATS  # noqa: E402
from tests.cheats.module_files import ModuleAttempt, module_attempts  # noqa: E402

CASES = ROOT / "tests" / "cases"
NAMES = ("row_softmax_scale", "group_norm_silu", "embedding_bag_mean", "linear_gelu_residual")
PAIR = "row_softmax_scale"
INLINE = ("group_norm_silu", "embedding_bag_mean")  # the third one is in the pair
# Seconds of each part; what did not fit is said in its file.
LIMITS = {"variants": 100.0, "pair": 90.0, "inline": 60.0, "cheats": 30.0}
TIMED_VARIANTS = 2
CHEATS_AT_ONCE = 8
REHEARSED_CALLS, REHEARSED_BYTES = 4, 1 << 24

Keep = Callable[[str, Any], None]
"""Keeps one finding of a part under a name, on disk at once."""


class Bench:
    """One verifier, and modules described once."""

    def __init__(self, rehearse: bool) -> None:
        self.rehearse = rehearse
        # Races and bounds were looked for on the emulator before; here the seconds are for what only a GPU can tell.
        config = VerifierConfig(also_emulate=False)
        self.verifier = Verifier(config, gpu=None) if rehearse else Verifier(config)
        self._tasks: dict[str, asyncio.Task[Task]] = {}

    def describe(self, path: Path, mode: ModuleMode = "pure-cuda") -> asyncio.Task[Task]:
        """Begin to describe the module of a file; the same file and mode again is the same task."""
        key = f"{path} {mode}"
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._described(path, mode))
        return self._tasks[key]

    async def _described(self, path: Path, mode: ModuleMode) -> Task:
        began = time.monotonic()
        task = await self.verifier.modules.reference.described(load_module_task(path, mode=mode))
        say(f"described {path.stem} in {time.monotonic() - began:.1f} s")
        return task

    async def judged(self, name: str, task: Task, source: str, keep: Keep) -> Verdict:
        """Visible and hidden tests from a fresh source, with wall time."""
        began = time.monotonic()
        verdict = await self.verifier.test(task, source)
        wall = {"visible": time.monotonic() - began}
        keep(name, row(verdict, wall))
        if verdict.correct:
            verdict = await self.verifier.test(task, source, hidden=True)
            wall["both"] = time.monotonic() - began
            keep(name, row(verdict, wall))
        say(f"{name}: {verdict.status.value} {verdict.message} {rounded(wall)}")
        return verdict


def row(verdict: Verdict, wall: dict[str, float]) -> dict[str, Any]:
    """What is kept of a verdict."""
    return {
        "status": verdict.status.value,
        "message": verdict.message,
        "wall": dict(wall),
        "seconds": verdict.seconds,
        "form": verdict.form,
        "speedups": {s.baseline: [s.value, s.low, s.high] for s in verdict.speedups},
        "timings": [[t.kind, t.case, t.note, t.median] for t in verdict.timings],
        "baselines": verdict.profile.get("baselines"),
    }


def rounded(wall: dict[str, float]) -> str:
    """Seconds by name."""
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in wall.items())


async def variants(bench: Bench, keep: Keep) -> None:
    """The handed modules with the generator's first variants: tested, hidden-tested, timed against both baselines."""
    described = [bench.describe(CASES / "torch" / f"{name}.py") for name in NAMES]
    for place in range(1 if bench.rehearse else TIMED_VARIANTS):
        for name, waiting in zip(NAMES, described, strict=True):
            task = await waiting
            assert task.module is not None
            generation = generate_module(json.loads(task.module.graph), class_source=task.source)
            if generation.declined is not None:
                keep(name, {"declined": generation.declined.reason})
            if place >= len(generation.variants):
                continue
            variant = generation.variants[place]
            label = f"{name} {variant.strategy}"
            verdict = await bench.judged(label, task, variant.source, keep)
            if not verdict.correct or bench.rehearse:
                continue
            began = time.monotonic()
            verdict = await bench.verifier.measure(task, variant.source, verdict)
            keep(label, row(verdict, {"measured": time.monotonic() - began}))
            speeds = ", ".join(f"{s.value:.2f}x {s.baseline}" for s in verdict.speedups)
            say(f"{label}: {verdict.status.value} {verdict.message} {speeds} in {time.monotonic() - began:.1f} s")
    if bench.rehearse:
        await rehearse_times(bench, keep)


async def rehearse_times(bench: Bench, keep: Keep) -> None:
    """The exchange that times a module and its baselines, on the CPU."""
    task = await bench.describe(CASES / "torch" / f"{PAIR}.py")
    config = replace(
        MODULES, timed=REHEARSED_CALLS, warmups=1, contents_bytes=REHEARSED_BYTES, slack=50.0, slack_seconds=1.0
    )
    known = await make_baselines(task, TimingPlace(bench.verifier.place.sandbox, device="cpu"), config)
    keep("baselines on the CPU", {"seconds": {n: t.median for n, t in known.timings.items()}, "missing": known.missing})
    say(f"baselines on the CPU: {sorted(known.timings)}, missing {known.missing}")


async def pair(bench: Bench, keep: Keep) -> None:
    """Seconds per verdict: light form and load_inline of the same module, one after the other, nothing beside them."""
    task = await bench.describe(CASES / "torch" / f"{PAIR}.py")
    # What is made once per module is made before.
    for hidden in (False, True):
        began = time.monotonic()
        await bench.verifier.modules.suite_digest(task, hidden)
        say(f"pair: {'hidden' if hidden else 'visible'} cases made in {time.monotonic() - began:.1f} s")
    stamp = f"// {time.time()}"  # so that no cache holds it
    for form, folder in (("light", "torch_light"), ("load_inline", "torch_inline")):
        text = (CASES / folder / f"{PAIR}.py").read_text()
        await bench.judged(form, task, text.replace("__global__ void", f"{stamp}\n__global__ void", 1), keep)


async def inline(bench: Bench, keep: Keep) -> None:
    """The other load_inline files, unchanged, both at once."""

    async def one(name: str) -> None:
        task = await bench.describe(CASES / "torch" / f"{name}.py")
        await bench.judged(name, task, (CASES / "torch_inline" / f"{name}.py").read_text(), keep)

    await asyncio.gather(*(one(name) for name in INLINE))


def mode_of(attempt: ModuleAttempt) -> ModuleMode:
    """As its file says."""
    return "libraries-allowed" if attempt.mode == "libraries-allowed" else "pure-cuda"


async def cheats(bench: Bench, keep: Keep) -> None:
    """Every cheat in PyTorch form; none may come out correct unless that is what it is (or only a time would tell)."""
    gate = asyncio.Semaphore(CHEATS_AT_ONCE)

    async def one(attempt: ModuleAttempt) -> None:
        task = await bench.describe(CHEATS / "tasks" / f"{attempt.task}.py", mode_of(attempt))
        async with gate:
            verdict = await bench.verifier.test(task, attempt.source, hidden=attempt.hidden)
        if attempt.on_gpu and verdict.correct:
            verdict = await bench.verifier.measure(task, attempt.source, verdict)
        told = {"expected": sorted(attempt.expected), "on_gpu": attempt.on_gpu}
        keep(attempt.name, {"status": verdict.status.value, "message": verdict.message, **told})
        mark = "" if verdict.status.value in attempt.expected else "   <-- not as on the emulator"
        say(f"cheats: {attempt.name}: {verdict.status.value}{mark}")

    attempts = module_attempts()
    await asyncio.gather(*(one(a) for a in (attempts[:3] if bench.rehearse else attempts)))


PARTS: dict[str, Callable[[Bench, Keep], Awaitable[None]]] = {
    "variants": variants,
    "pair": pair,
    "inline": inline,
    "cheats": cheats,
}


async def run(out: Path, parts: list[str], rehearse: bool, scale: float) -> int:
    """All parts that are not whole yet."""
    bench = Bench(rehearse)
    say(f"on {bench.verifier.place.device or 'the emulator'}")
    for name in NAMES:
        bench.describe(CASES / "torch" / f"{name}.py")
    failed = 0
    try:
        for name in parts:
            path = out / f"{name}.json"
            if path.exists() and json.loads(path.read_text()).get("done"):
                say(f"{name}: done before")
                continue
            failed += not await part(bench, name, path, None if rehearse else scale * LIMITS[name])
    finally:
        await bench.verifier.aclose()
    return 1 if failed else 0


async def part(bench: Bench, name: str, path: Path, limit: float | None) -> bool:
    """One part; whether it is whole."""
    content: dict[str, Any] = {"part": name, "device": bench.verifier.place.device, "done": False, "result": {}}
    began = time.monotonic()

    def write() -> None:
        new = path.with_suffix(".new")
        new.write_text(json.dumps({**content, "seconds": time.monotonic() - began}, indent=1, default=str))
        new.replace(path)

    def keep(label: str, found: Any) -> None:
        content["result"][label] = found
        write()

    write()
    try:
        await asyncio.wait_for(PARTS[name](bench, keep), limit)
        content["done"] = True
    except Exception as error:  # noqa: BLE001 (what fails in one part must not end the others; it is told)
        content["stopped"] = f"{type(error).__name__}: {error}"
        content["trace"] = traceback.format_exc()[-3000:]
    write()
    say(f"{name}: {time.monotonic() - began:.1f} s {content.get('stopped', '')}")
    return bool(content["done"])


def table(folder: Path) -> str:
    """Markdown of the speeds and of the seconds per verdict, from the files of a run."""
    lines = ["| module | variant | verdict | against eager | against torch.compile |", "|---|---|---|---|---|"]
    for label, found in read_part(folder, "variants").items():
        module, _, strategy = label.partition(" ")
        if "speedups" not in found:
            continue
        cells = [speed(found["speedups"].get(baseline)) for baseline in (EAGER, COMPILED)]
        verdict = found["status"].replace("_", " ") + (f": {found['message']}" if found["message"] else "")
        lines.append(f"| `{module}` | {strategy} | {verdict} | {' | '.join(cells)} |")
    lines += ["", "| module | form | verdict | visible tests, s | with the hidden ones, s |", "|---|---|---|---|---|"]
    forms = {(PAIR, form): found for form, found in read_part(folder, "pair").items()}
    forms |= {(name, "load_inline"): found for name, found in read_part(folder, "inline").items()}
    for (module, form), found in forms.items():
        wall = found["wall"]
        both = f"{wall['both']:.1f}" if "both" in wall else "–"
        lines.append(f"| `{module}` | {form} | {found['status'].replace('_', ' ')} | {wall['visible']:.1f} | {both} |")
    tried = read_part(folder, "cheats")
    if tried:
        other = sorted(name for name, found in tried.items() if found["status"] not in found["expected"])
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


def say(text: str) -> None:
    """A line of progress, at once."""
    print(text, flush=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="times the limits of the parts, 280 s in all")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(arguments.table))
        return 0
    if arguments.out is None:
        parser.error("--out FOLDER")
    if not arguments.rehearse and find_gpu() is None:
        print("there is no GPU here; --rehearse tries the script without one", file=sys.stderr)
        return 3
    arguments.out.mkdir(parents=True, exist_ok=True)
    return asyncio.run(run(arguments.out, arguments.parts.split(","), arguments.rehearse, arguments.scale))


if __name__ == "__main__":
    sys.exit(main())
