"""Measures the data set on a GPU, in resumable slices: ``python3 -m training.dataset.measure --out F --seconds N``.

Trust level "own": only our own sources (the generator's, or with ``--transfer`` those written by hand) are run here,
so many kernels share one process without a sandbox, the child's clock alone counts, one content set is timed, and there
are fewer samples than for a user's candidate (`cuda.timing` has 24 samples over secret contents and two clocks). What
stays: each call starts from fresh inputs, poisoned outputs and an emptied L2; the outputs of the last timed call, and
of small ragged cases, are judged by the oracle. Times are host times from the call to full synchronisation, in seconds.

Worker processes generate, compile and compute what must come out; one process at a time has the GPU. Each finished
task is appended to ``measured-N.jsonl`` and flushed: whatever ends the program, what was measured stays, and the next
slice skips it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

from cudaperf_agent.cuda.gpu import chosen_environment, find_gpu, read_clocks
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.errors import BackendUnavailable, CudaPerfError
from cudaperf_agent.tasks.model import Task
from training.dataset.bench import SOURCE, Bench, BenchConfig
from training.dataset.bundle import FLAGS, Bundle, compile_bundle, native
from training.dataset.families import all_programs
from training.dataset.job import Compile, Job, JobConfig, judge, make_job
from training.dataset.transfer import transfer_names

_ROOM = 12 << 30


@dataclass(slots=True)
class Results:
    """Appends rows to numbered files of limited size in a folder, flushed task by task."""

    folder: Path
    most: int
    number: int = 0
    written: int = field(default=0)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append the rows of one task."""
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        path = self.folder / f"measured-{self.number}.jsonl"
        if path.exists() and path.stat().st_size + len(text) > self.most:
            self.number += 1
            path = self.folder / f"measured-{self.number}.jsonl"
        with path.open("a") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self.written += 1


def tasks_done(paths: Iterable[Path]) -> set[str]:
    """Names of tasks that earlier slices finished (files, or folders of ``*.jsonl``)."""
    done = set()
    for path in paths:
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            for line in file.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # the last line of a slice that was killed
                if row.get("done") and not row.get("error"):
                    done.add(row["task"])
    return done


def run_slice(
    names: Sequence[tuple[int, str]],
    bench: Bench,
    compile_it: Compile,
    results: Results,
    scratch: Path,
    *,
    seconds: float,
    workers: int,
    job_config: JobConfig,
    machine: dict[str, Any],
    say: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
    lines: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Measure tasks until they or the seconds are used up; returns how many were finished.

    Args:
        names: ``(turn, name)`` in order of importance.
        bench: The device's process.
        compile_it: Makes libraries, in worker processes (must pickle).
        results: Where rows go.
        scratch: Folder for contents, in memory if possible.
        seconds: Of wall time.
        workers: Processes.
        job_config: How tasks are made ready.
        machine: What is added to each task's last row: device, driver, versions.
        say: Progress, one line.
        stopped: Asked between tasks.
        lines: Tasks with their variants, by name, as `build.task_line` writes them; others are generated.
    """
    start = time.monotonic()
    queue = list(names)
    total, finished, variants = len(queue), 0, 0
    making: dict[Future[Job], str] = {}
    judging: dict[Future[list[dict[str, Any]]], Job] = {}
    pool = _pool(workers)
    try:
        while (queue or making or judging) and not stopped():
            try:
                elapsed = time.monotonic() - start
                if elapsed > seconds:
                    break
                while queue and len(making) + len(judging) < workers + 4 and elapsed < seconds - bench.config.reserve:
                    turn, name = queue.pop(0)
                    line = (lines or {}).get(name)
                    making[pool.submit(make_job, name, turn, scratch, compile_it, job_config, line)] = name
                if elapsed >= seconds - bench.config.reserve:
                    queue = []
                waited: list[Future[Any]] = [*making, *judging]
                done, _ = wait(waited, timeout=1.0, return_when=FIRST_COMPLETED)
                if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                    raise BrokenProcessPool
                for future in [f for f in judging if f in done]:
                    job = judging.pop(future)
                    failure = future.exception()
                    if failure is not None:
                        say(f"{job.program}: not judged, left for the next slice: {failure}")
                        continue
                    rows = future.result()
                    results.add([*rows, {**(job.head or {"task": job.program}), **machine, "done": True}])
                    finished += 1
                    variants += len(rows)
                    rate = (time.monotonic() - start) / finished
                    bad = sum(1 for row in rows if row["status"] != "correct")
                    left = min(rate * (total - finished), max(0.0, seconds - (time.monotonic() - start)))
                    say(f"{finished}/{total} tasks, {variants} variants, {left:.0f} s to go: {job.program}"
                        + (f", {bad} of {len(rows)} not correct" if bad else ""))  # fmt: skip
                for made in [f for f in making if f in done]:
                    name = making.pop(made)
                    job = made.result()
                    if job.error:
                        say(f"{name}: {job.error}")
                        results.add([{"task": name, "error": job.error, "done": True}])
                        shutil.rmtree(job.folder, ignore_errors=True)
                        finished += 1
                        continue
                    answers = bench.time(job)
                    ours = next((a for a in answers if a["status"] == "bench_error"), None)
                    if ours is not None:
                        say(f"{name}: not timed, left for the next slice: {ours['message']}")
                        shutil.rmtree(job.folder, ignore_errors=True)
                        continue
                    judging[pool.submit(judge, job, answers)] = job
            except BrokenProcessPool:
                if stopped():
                    break
                say("a worker process died; its tasks are left for the next slice")
                making, judging = {}, {}
                _end(pool)
                pool = _pool(workers)
    finally:
        bench.stop()
        _end(pool)
    return finished


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_undisturbed)


def _undisturbed() -> None:
    """What ends a slice is sent to all its processes at once: the first of them ends the others, and in order."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(pool: ProcessPoolExecutor) -> None:
    """End a pool at once, whatever its workers do."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def nvcc_compile(nvcc: Path, arch: str, task: Task, text: Bundle, folder: Path, name: str) -> Path | str:
    """`Compile` by nvcc."""
    return compile_bundle(nvcc, arch, text, folder, name)


@dataclass(frozen=True, slots=True)
class _Device:
    """What variants run on.

    Attributes:
        program: The bench.
        compile_it: Makes libraries.
        l2_bytes: Of its cache.
        machine: What is written of it.
        bench, job: Numbers.
    """

    program: Path
    compile_it: Compile
    l2_bytes: int
    machine: dict[str, Any]
    bench: BenchConfig
    job: JobConfig


def _gpu(options: argparse.Namespace, scratch: Path) -> _Device:
    gpu = find_gpu()
    if gpu is None:
        raise BackendUnavailable("there is no NVIDIA GPU to measure on", hint="run it where nvidia-smi lists one")
    nvcc = find_nvcc()
    program = scratch / "bench"
    made = subprocess.run(
        [str(nvcc.path), "-O2", *FLAGS[1:], *native(gpu.arch), "-o", str(program), str(SOURCE)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise BackendUnavailable(f"the bench does not compile: {made.stderr.strip()[:300]}")
    machine = {"device": gpu.name, "driver": gpu.driver, "nvcc": nvcc.version, "clocks": read_clocks()}
    return _Device(
        program, partial(nvcc_compile, nvcc.path, gpu.arch), gpu.l2_bytes, machine,
        BenchConfig(samples=options.samples), JobConfig(most=options.variants),
    )  # fmt: skip


def _emulator(options: argparse.Namespace, scratch: Path) -> _Device:
    from training.dataset.emulated import emulated_bench, emulator_compile

    folder = scratch / "bench"
    folder.mkdir()
    once = BenchConfig(warmups=0, samples=1, seconds=0.0, deadline=300.0)
    return _Device(
        emulated_bench(SOURCE, folder), emulator_compile, 0, {"device": "emulator"}, once,
        JobConfig(most=options.variants, small_cases=6, shrink=options.emulate),
    )  # fmt: skip


def main(argv: Sequence[str] | None = None, *, program: str = "python3 -m training.dataset.measure") -> int:
    """The command; see the module's docstring. `program` is how its usage calls it."""
    options = _options(argv, program)
    scratch = Path(tempfile.mkdtemp(prefix="cudaperf-measure-", dir=options.scratch))
    stop = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    try:
        if not options.emulate:
            os.environ.setdefault("CUDAPERF_CACHE_DIR", str(scratch / "cache"))  # nothing else is written to
        device = _emulator(options, scratch) if options.emulate else _gpu(options, scratch)
        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)
        options.out.mkdir(parents=True, exist_ok=True)
        lines = _planned(options.plan, options.candidates)
        every = transfer_names() if options.transfer else list(lines) or [p.name for p in all_programs()]
        done = tasks_done([options.out, *options.skip])
        names = [(i, name) for i, name in enumerate(every) if name not in done]
        names = names[: options.tasks] if options.tasks else names
        kind = device.machine["device"]
        _say(f"{len(names)} tasks to measure on {kind}, {options.workers} workers, {options.seconds:g} s")
        finished = run_slice(
            names,
            Bench(device.program, device.bench, device.l2_bytes, chosen_environment()),
            device.compile_it,
            Results(options.out, BenchConfig().slice_bytes),
            scratch,
            seconds=options.seconds,
            workers=options.workers,
            job_config=device.job,
            machine=device.machine,
            say=_say,
            stopped=lambda: stop,
            lines=lines,
        )
        _say(
            f"{finished} tasks finished; run the same command again for the rest"
            if finished < len(names)
            else "all done"
        )
        return 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _planned(plan: Path | None, candidates: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Lines by task, in the order in which they are to be measured; empty without a plan and candidates."""
    from training.dataset.plan import read_plan, with_candidates

    lines = read_plan(plan) if plan is not None else []
    there = [path for path in candidates if path.exists()]
    for path in set(candidates) - set(there):
        _say(f"there are no candidates at {path}: measured without them")
    return {line["task"]: line for line in (with_candidates(lines, there) if there else lines)}


def _options(argv: Sequence[str] | None, program: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program, description="Measure variants on a GPU.")
    parser.add_argument("--out", type=Path, required=True, help="folder for measured-N.jsonl; the only one written to")
    parser.add_argument("--seconds", type=float, default=480.0, help="wall time of this slice")
    parser.add_argument("--skip", type=Path, nargs="*", default=[], help="slices whose finished tasks are skipped")
    free = max(1, len(os.sched_getaffinity(0)) - 2)
    parser.add_argument("--workers", type=int, default=free, help="worker processes")
    parser.add_argument("--variants", type=int, default=JobConfig().most, help="variants of a task at most")
    parser.add_argument("--samples", type=int, default=BenchConfig().samples, help="timed calls of a variant")
    parser.add_argument("--tasks", type=int, default=0, help="tasks of this slice at most; 0 for all")
    parser.add_argument("--transfer", action="store_true", help="the kernels written by hand, instead of the families")
    parser.add_argument("--plan", type=Path, help="what to measure, from `cudaperf dataset plan`, in its order")
    parser.add_argument(
        "--candidates", type=Path, nargs="*", default=[], help="a policy's kernels with verdicts, measured first"
    )
    parser.add_argument(
        "--emulate", type=int, default=0, metavar="SHRINK", help="try it on the CPU emulator, sizes divided by SHRINK"
    )
    parser.add_argument("--scratch", type=Path, default=_roomy(), help="folder for contents, deleted at the end")
    return parser.parse_args(argv)


def _roomy() -> Path | None:
    """Memory for the contents, where there is much; `None` for the usual temporary folder."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free > _ROOM else None


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CudaPerfError as error:
        _say(f"error: {error}")
        sys.exit(error.exit_code)
