"""PyTorch modules on a GPU: seconds per verdict, load_inline files, cheats, speeds against eager and torch.compile.

    python benchmarks/modules_gpu.py --out FOLDER [--seconds 220] [--parts pair,inline,cheats,variants]
    python benchmarks/modules_gpu.py --out FOLDER --rehearse     # the same code without a GPU, as far as that goes
    python benchmarks/modules_gpu.py --table FOLDER              # Markdown of what a folder holds

FOLDER/PART.json is written after every step of a part; a part that is whole is not run again. The pair, whose seconds
count, has the machine for itself. Then all that is not timed is tested at once, and what is timed comes last. A row
that was begun and not finished says so. ``--rehearse`` takes the emulator, where load_inline files are unsupported, and
times the modules on the CPU (eager and compiled, few calls): what it cannot show is the device itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.modules_table import PAIR, table  # noqa: E402
from cudaperf_agent.codegen.modules.variants import generate_module  # noqa: E402
from cudaperf_agent.cuda.gpu import find_gpu  # noqa: E402
from cudaperf_agent.cuda.modules.config import MODULES  # noqa: E402
from cudaperf_agent.cuda.modules.timing import TimingPlace, make_baselines  # noqa: E402
from cudaperf_agent.cuda.modules.verifier import ModuleVerifier  # noqa: E402
from cudaperf_agent.cuda.verdict import Verdict  # noqa: E402
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig  # noqa: E402
from cudaperf_agent.tasks.model import Task  # noqa: E402
from cudaperf_agent.tasks.modules.find import load_module_task  # noqa: E402
from cudaperf_agent.tasks.modules.spec import ModuleMode  # noqa: E402
from tests.cheats.module_files import HERE as CHEATS  # noqa: E402
from tests.cheats.module_files import ModuleAttempt, module_attempts  # noqa: E402

CASES = ROOT / "tests" / "cases"
NAMES = (PAIR, "group_norm_silu", "embedding_bag_mean", "linear_gelu_residual")
INLINE = ("group_norm_silu", "embedding_bag_mean")  # the third one is in the pair
SECONDS = 220.0
# Shares of all seconds: what the pair may take, and when timing begins whether or not all is tested by then.
PAIR_SHARE, TIMED_FROM = 0.5, 0.7
TIMED_VARIANTS = 2
# Fewer calls and contents than users get: what is wanted here are the four modules, not the last percent.
TIMED = replace(MODULES, timed=16, warmups=3, contents_bytes=1 << 28)
REHEARSED = replace(MODULES, timed=4, warmups=1, contents_bytes=1 << 24, slack=50.0, slack_seconds=1.0)

Keep = Callable[[str, Any], None]
"""Keeps one finding of a part under a name, on disk at once."""


class Bench:
    """One verifier, and modules described once."""

    def __init__(self, rehearse: bool, seconds: float | None) -> None:
        self.rehearse = rehearse
        self.began = time.monotonic()
        self.seconds = seconds
        # Races and bounds were looked for on the emulator before; here the seconds are for what only a GPU can tell.
        config = VerifierConfig(also_emulate=False)
        self.verifier = Verifier(config, gpu=None) if rehearse else Verifier(config)
        self.verifier.modules = ModuleVerifier(self.verifier.place, TIMED)
        self._tasks: dict[str, asyncio.Task[Task]] = {}
        self._testing = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.timed = asyncio.Event()
        alone = self.verifier.place.alone

        @asynccontextmanager
        async def when_quiet(*, cpu: bool = True) -> AsyncIterator[None]:
            await self.quiet()
            async with alone(cpu=cpu):
                yield

        # Who asks to time makes the others wait, for as long as a load_inline file compiles.
        setattr(self.verifier.place, "alone", when_quiet)  # noqa: B010

    def left(self, share: float = 1.0) -> float | None:
        """Seconds until a share of all is over; `None` without a limit."""
        return None if self.seconds is None else max(0.0, self.began + share * self.seconds - time.monotonic())

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

    @asynccontextmanager
    async def testing(self) -> AsyncIterator[None]:
        """While something is tested, nothing asks for the machine to time: it would wait, and all others behind it."""
        self._testing += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._testing -= 1
            if not self._testing:
                self._quiet.set()

    async def quiet(self) -> None:
        """Nothing is tested any more, or too little time is left to wait for that."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), self.left(TIMED_FROM))

    async def judged(self, name: str, task: Task, source: str, keep: Keep, *, hidden: bool = True) -> Verdict:
        """Visible, and hidden, tests, with wall time."""
        began = time.monotonic()
        verdict = await self.verifier.test(task, source)
        wall = {"visible": time.monotonic() - began}
        keep(name, row(verdict, wall))
        if verdict.correct and hidden:
            verdict = await self.verifier.test(task, source, hidden=True)
            wall["both"] = time.monotonic() - began
            keep(name, row(verdict, wall))
        say(f"{name}: {verdict.status.value} {verdict.message} {rounded(wall)} {rounded(verdict.seconds)}")
        return verdict


@contextmanager
def told(keep: Keep, name: str) -> Iterator[None]:
    """A row of a step: that it was begun, and why it failed. The steps beside it go on."""
    keep(name, {"status": "unfinished", "message": "its time was over", "wall": {}})
    try:
        yield
    except Exception as error:  # noqa: BLE001 (the row holds it)
        said = f"{type(error).__name__}: {error} {getattr(error, 'hint', '')}".strip()
        keep(name, {"status": "failed", "message": said, "wall": {}, "trace": traceback.format_exc()[-2000:]})
        say(f"{name}: {said}")


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
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in wall.items())


async def variants(bench: Bench, keep: Keep) -> None:
    """The handed modules with the generator's first variants: tested, hidden-tested, timed against both baselines."""
    right: dict[str, list[tuple[str, Task, str, Verdict]]] = {}

    async def tested(name: str) -> None:
        task = await bench.describe(CASES / "torch" / f"{name}.py")
        assert task.module is not None
        generation = generate_module(json.loads(task.module.graph), class_source=task.source)
        if generation.declined is not None:
            keep(name, {"status": "declined", "message": generation.declined.reason, "wall": {}})
        for variant in generation.variants[: 1 if bench.rehearse else TIMED_VARIANTS]:
            label = f"{name} {variant.strategy}"
            with told(keep, label):
                verdict = await bench.judged(label, task, variant.source, keep)
                if verdict.correct:
                    right.setdefault(name, []).append((label, task, variant.source, verdict))

    async def timed(name: str) -> None:
        for label, task, source, verdict in right.get(name, []):
            began = time.monotonic()
            found = await bench.verifier.measure(task, source, verdict)
            keep(label, row(found, {"measured": time.monotonic() - began}))
            speeds = ", ".join(f"{s.value:.2f}x {s.baseline}" for s in found.speedups)
            say(f"{label}: {found.status.value} {found.message} {speeds} {rounded(found.seconds)}")

    async def both(name: str) -> None:
        async with bench.testing():
            await tested(name)
        if not bench.rehearse:
            await timed(name)

    errors = await asyncio.gather(*(both(name) for name in NAMES), return_exceptions=True)
    bench.timed.set()
    for name, error in zip(NAMES, errors, strict=True):
        if error is not None:
            keep(f"{name} times", {"status": "failed", "message": f"{type(error).__name__}: {error}", "wall": {}})
            say(f"{name}: not timed: {type(error).__name__}: {error}")
    if bench.rehearse:
        await rehearse_times(bench, keep)


async def rehearse_times(bench: Bench, keep: Keep) -> None:
    """The exchange that times a module and its baselines, on the CPU."""
    task = await bench.describe(CASES / "torch" / f"{PAIR}.py")
    place = TimingPlace(bench.verifier.place.sandbox, device="cpu")
    known = await make_baselines(task, place, REHEARSED)
    keep("baselines on the CPU", {"seconds": {n: t.median for n, t in known.timings.items()}, "missing": known.missing})
    say(f"baselines on the CPU: {sorted(known.timings)}, missing {known.missing}")


def pair_sources(stamp: str) -> dict[str, str]:
    """The same module in both forms, with kernels that no cache holds."""
    folders = {"light": "torch_light", "load_inline": "torch_inline"}
    texts = {form: (CASES / folder / f"{PAIR}.py").read_text() for form, folder in folders.items()}
    return {form: t.replace("__global__ void", f"// {stamp}\n__global__ void", 1) for form, t in texts.items()}


STAMP = str(time.time())


async def pair(bench: Bench, keep: Keep) -> None:
    """Seconds per verdict: light form and load_inline of the same module, one after the other, nothing beside them."""
    began = time.monotonic()
    waiting = bench.verifier.modules.waiting
    if waiting is not None:
        waiting.fill()
    task = await bench.describe(CASES / "torch" / f"{PAIR}.py")
    steps = {"described": time.monotonic() - began}
    # What is made once per module is made before.
    await asyncio.gather(*(bench.verifier.modules.suite_digest(task, hidden) for hidden in (False, True)))
    steps["cases made"] = time.monotonic() - began
    await asyncio.gather(*(bench.describe(CASES / "torch" / f"{name}.py") for name in NAMES), return_exceptions=True)
    steps["all described"] = time.monotonic() - began
    if waiting is not None:
        keep("processes wait", await waiting.wait())
        steps["processes wait"] = time.monotonic() - began
    keep("steps", steps)
    say(f"pair: {rounded(steps)}")
    for form, text in pair_sources(STAMP).items():
        with told(keep, form):
            await bench.judged(form, task, text, keep, hidden=form == "light")


async def inline(bench: Bench, keep: Keep) -> None:
    """Three load_inline files, all at once; what the pair has tested of the first one is not tested again."""

    async def one(name: str, source: str) -> None:
        with told(keep, name):
            task = await bench.describe(CASES / "torch" / f"{name}.py")
            await bench.judged(name, task, source, keep)

    sources = {name: (CASES / "torch_inline" / f"{name}.py").read_text() for name in INLINE}
    async with bench.testing():
        await asyncio.gather(*(one(*item) for item in ({PAIR: pair_sources(STAMP)["load_inline"]} | sources).items()))


def mode_of(attempt: ModuleAttempt) -> ModuleMode:
    """As its file says."""
    return "libraries-allowed" if attempt.mode == "libraries-allowed" else "pure-cuda"


async def cheats(bench: Bench, keep: Keep) -> None:
    """Every cheat in PyTorch form; none may come out correct unless that is what it is (or only a time would tell)."""
    gate = asyncio.Semaphore(max(2, len(os.sched_getaffinity(0)) // 2))
    only_timed: list[tuple[ModuleAttempt, Task, Verdict]] = []

    def found(attempt: ModuleAttempt, verdict: Verdict) -> None:
        more = {"expected": sorted(attempt.expected), "on_gpu": attempt.on_gpu, "seconds": verdict.seconds}
        keep(attempt.name, {"status": verdict.status.value, "message": verdict.message, **more})
        mark = "" if verdict.status.value in attempt.expected else "   <-- not as on the emulator"
        say(f"cheats: {attempt.name}: {verdict.status.value}{mark}")

    async def one(attempt: ModuleAttempt) -> None:
        async with gate:
            with told(keep, attempt.name):
                task = await bench.describe(CHEATS / "tasks" / f"{attempt.task}.py", mode_of(attempt))
                verdict = await bench.verifier.test(task, attempt.source, hidden=attempt.hidden)
                found(attempt, verdict)
                if attempt.on_gpu and verdict.correct and not bench.rehearse:
                    only_timed.append((attempt, task, verdict))

    attempts = module_attempts()
    async with bench.testing():
        await asyncio.gather(*(one(a) for a in (attempts[:3] if bench.rehearse else attempts)))
    if only_timed:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(bench.timed.wait(), bench.left(0.9))
    for attempt, task, verdict in only_timed:
        found(attempt, await bench.verifier.measure(task, attempt.source, verdict))


PARTS: dict[str, Callable[[Bench, Keep], Awaitable[None]]] = {
    "pair": pair,
    "inline": inline,
    "variants": variants,
    "cheats": cheats,
}


async def run(out: Path, parts: list[str], rehearse: bool, seconds: float) -> int:
    """All parts that are not whole yet: the pair alone, then the others together."""
    bench = Bench(rehearse, None if rehearse else seconds)
    say(f"on {bench.verifier.place.device or 'the emulator'}, {seconds:.0f} s")
    for name in NAMES:
        bench.describe(CASES / "torch" / f"{name}.py")
    wanted = []
    for name in parts:
        path = out / f"{name}.json"
        if path.exists() and json.loads(path.read_text()).get("done"):
            say(f"{name}: done before")
        else:
            wanted.append(name)
    if "variants" not in wanted:
        bench.timed.set()
    whole = []
    try:
        if "pair" in wanted:
            whole.append(await part(bench, "pair", out / "pair.json", PAIR_SHARE))
        others = [name for name in PARTS if name in wanted and name != "pair"]
        whole += await asyncio.gather(*(part(bench, name, out / f"{name}.json", 1.0) for name in others))
    finally:
        await bench.verifier.aclose()
    return 0 if all(whole) else 1


async def part(bench: Bench, name: str, path: Path, until: float) -> bool:
    """One part, until a share of all seconds is over; whether it is whole."""
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
        await asyncio.wait_for(PARTS[name](bench, keep), bench.left(until))
        content["done"] = True
    except Exception as error:  # noqa: BLE001 (what fails in one part must not end the others; it is told)
        content["stopped"] = f"{type(error).__name__}: {error}"
        content["trace"] = traceback.format_exc()[-3000:]
    write()
    say(f"{name}: {time.monotonic() - began:.1f} s {content.get('stopped', '')}")
    return bool(content["done"])


def say(text: str) -> None:
    """A line of progress, at once."""
    print(text, flush=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all parts together")
    parser.add_argument("--scale", type=float, help="the same, in parts of 280 s")
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
    seconds = arguments.seconds if arguments.scale is None else 280 * arguments.scale
    arguments.out.mkdir(parents=True, exist_ok=True)
    return asyncio.run(run(arguments.out, arguments.parts.split(","), arguments.rehearse, seconds))


if __name__ == "__main__":
    sys.exit(main())
