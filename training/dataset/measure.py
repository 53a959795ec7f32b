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
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

from cudaperf_agent.cuda.gpu import find_gpu, read_clocks
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.errors import BackendUnavailable, CudaPerfError
from cudaperf_agent.tasks.model import Task
from training.dataset.bundle import FLAGS, Bundle, compile_bundle, native
from training.dataset.families import all_programs
from training.dataset.job import Compile, Job, JobConfig, judge, make_job
from training.dataset.transfer import transfer_names

_ROOM = 12 << 30
BENCH = Path(__file__).with_name("bench.cu")


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """Numbers of a measurement.

    Attributes:
        warmups: Calls of the timed set before those that count.
        samples: Timed calls.
        seconds: A variant gets no more samples than five once it has taken so long.
        deadline: Seconds after which a variant that does not answer is given up.
        l2_factor: The L2 is emptied by writing so many times its size.
        slice_bytes: A results file is closed once it is this large.
        reserve: Seconds kept back at the end of a slice for what is under way.
        tasks: After so many tasks the process is started anew: each library brings a CUDA runtime of its own, and what
            they hold is given back only then.
    """

    warmups: int = 2
    samples: int = 15
    seconds: float = 0.2
    deadline: float = 30.0
    l2_factor: float = 2.0
    slice_bytes: int = 14 << 20
    reserve: float = 20.0
    tasks: int = 40


@dataclass(slots=True)
class Bench:
    """A running `bench.cu`, started again after a crash."""

    program: Path
    config: BenchConfig
    l2_bytes: int
    env: dict[str, str] | None = None
    _process: subprocess.Popen[bytes] | None = None
    _pending: bytes = b""
    _served: int = 0

    def time(self, job: Job) -> list[dict[str, Any]]:
        """What the bench says of each run of a job, in order.

        ``like`` is the run that its outputs were compared with on the device: the first of its process.
        """
        answers: list[dict[str, Any]] = []
        staged, like = False, -1
        for number, run in enumerate(job.runs):
            if not staged:
                self._stage(job)
                staged, like = True, -1
            prefix = str(Path(job.folder) / f"out{number}")
            c = self.config
            self._say(f"run {run.library} {run.symbol} {prefix} {c.warmups} {c.samples} {c.seconds}")
            answer = self._answer()
            if answer["status"] == "ok" and like < 0:
                like = number
            answers.append({**answer, "like": like})
            if answer["status"] != "ok":
                self.stop()
                staged = False
        self._served += 1
        if staged:
            self._say("end")
        if self._served >= self.config.tasks:
            self.stop()
        return answers

    def stop(self) -> None:
        """End the process, if one runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process, self._pending, self._served = None, b"", 0

    def _stage(self, job: Job) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [str(self.program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **(self.env or {})},
            )
            ready = self._answer()
            if ready["status"] != "ready":
                raise BackendUnavailable(f"the bench does not start: {ready.get('message', ready['status'])}")
            self._say(f"flush {int(self.l2_bytes * self.config.l2_factor)}")
        for arguments in job.arguments:
            self._say("set")
            for kind, size, path in arguments:
                self._say(f"arg {kind} {size} {path}")

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its last words are read as the answer

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        until = time.monotonic() + self.config.deadline
        while b"\n" not in self._pending:
            left = until - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left))
            if not ready:
                return {"status": "timeout", "message": f"no answer in {self.config.deadline:g} s"}
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                return {"status": "crash", "message": f"the bench ended with status {self._process.wait()}"}
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


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
    """
    start = time.monotonic()
    queue = list(names)
    total, finished, variants = len(queue), 0, 0
    making: dict[Future[Job], str] = {}
    judging: dict[Future[list[dict[str, Any]]], Job] = {}
    pool = _pool(workers)
    try:
        while (queue or making or judging) and not stopped():
            elapsed = time.monotonic() - start
            if elapsed > seconds:
                break
            while queue and len(making) + len(judging) < workers + 4 and elapsed < seconds - bench.config.reserve:
                turn, name = queue.pop(0)
                making[pool.submit(make_job, name, turn, scratch, compile_it, job_config)] = name
            if elapsed >= seconds - bench.config.reserve:
                queue = []
            waited: list[Future[Any]] = [*making, *judging]
            done, _ = wait(waited, timeout=1.0, return_when=FIRST_COMPLETED)
            if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                say("a worker process died; its tasks are left for the next slice")
                making, judging = {}, {}
                _end(pool)
                pool = _pool(workers)
                continue
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
    finally:
        bench.stop()
        _end(pool)
    return finished


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _end(pool: ProcessPoolExecutor) -> None:
    """End a pool at once, whatever its workers do."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def nvcc_compile(nvcc: Path, arch: str, task: Task, text: Bundle, folder: Path, name: str) -> Path | str:
    """`Compile` by nvcc."""
    return compile_bundle(nvcc, arch, text, folder, name)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; see the module's docstring."""
    options = _options(argv)
    gpu = find_gpu()
    if gpu is None:
        raise BackendUnavailable("there is no NVIDIA GPU to measure on", hint="run it where nvidia-smi lists one")
    nvcc = find_nvcc()
    options.out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="cudaperf-measure-", dir=options.scratch))
    os.environ.setdefault("CUDAPERF_CACHE_DIR", str(scratch / "cache"))  # nothing else is written to
    stop = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    try:
        program = scratch / "bench"
        made = subprocess.run(
            [str(nvcc.path), "-O2", *FLAGS[1:], *native(gpu.arch), "-o", str(program), str(BENCH)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise BackendUnavailable(f"the bench does not compile: {made.stderr.strip()[:300]}")
        done = tasks_done([options.out, *options.skip])
        every = transfer_names() if options.transfer else [p.name for p in all_programs()]
        names = [(i, name) for i, name in enumerate(every) if name not in done]
        names = names[: options.tasks] if options.tasks else names
        machine = {"device": gpu.name, "driver": gpu.driver, "nvcc": nvcc.version, "clocks": read_clocks()}
        _say(f"{len(names)} tasks to measure on {gpu.name}, {options.workers} workers, {options.seconds:g} s")
        finished = run_slice(
            names,
            Bench(program, BenchConfig(samples=options.samples), gpu.l2_bytes),
            partial(nvcc_compile, nvcc.path, gpu.arch),
            Results(options.out, BenchConfig().slice_bytes),
            scratch,
            seconds=options.seconds,
            workers=options.workers,
            job_config=JobConfig(most=options.variants),
            machine=machine,
            say=_say,
            stopped=lambda: stop,
        )
        _say(
            f"{finished} tasks finished; run the same command again for the rest"
            if finished < len(names)
            else "all done"
        )
        return 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m training.dataset.measure", description="Measure variants on a GPU."
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for measured-N.jsonl; the only one written to")
    parser.add_argument("--seconds", type=float, default=480.0, help="wall time of this slice")
    parser.add_argument("--skip", type=Path, nargs="*", default=[], help="slices whose finished tasks are skipped")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="worker processes")
    parser.add_argument("--variants", type=int, default=JobConfig().most, help="variants of a task at most")
    parser.add_argument("--samples", type=int, default=BenchConfig().samples, help="timed calls of a variant")
    parser.add_argument("--tasks", type=int, default=0, help="tasks of this slice at most; 0 for all")
    parser.add_argument("--transfer", action="store_true", help="the kernels written by hand, instead of the families")
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
