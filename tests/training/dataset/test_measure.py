"""The measuring path, run for real on the emulator: generated, compiled, timed, judged, written, resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.dataset.bench import SOURCE, Bench, BenchConfig
from training.dataset.bundle import Bundle, bundle
from training.dataset.emulated import emulated_bench, emulator_compile
from training.dataset.job import Job, JobConfig, judge, make_job, program_named
from training.dataset.measure import Results, main, run_slice, tasks_done

JOB = JobConfig(most=6, small_cases=2, shrink=4096)
FAST = BenchConfig(warmups=1, samples=3, seconds=0.05, deadline=20.0, reserve=0.0)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return emulated_bench(SOURCE, tmp_path_factory.mktemp("bench"))


def spoiled(task: Task, text: Bundle, folder: Path, name: str) -> Path | str:
    """Compiles, but the second variant is wrong and the third does not end."""
    cuda = text.cuda
    for number, body in ((1, "return 0;"), (2, "volatile int on = 1; while (on) {}")):
        head = cuda.index(f"v{number}_device(")
        brace = cuda.index("{", head)
        cuda = cuda[: brace + 1] + body + cuda[brace + 1 :]
    return emulator_compile(task, replace(text, cuda=cuda), folder, name)


def refused(task: Task, text: Bundle, folder: Path, name: str) -> Path | str:
    """Refuses the whole bundle, and one variant alone."""
    return f"no {name}" if name in ("all", "v1") else emulator_compile(task, text, folder, name)


def timed(job: Job, program: Path, config: BenchConfig = FAST) -> list[dict[str, Any]]:
    bench = Bench(program, config, 1 << 16)
    try:
        return bench.time(job)
    finally:
        bench.stop()


def test_all_variants_of_a_task_are_timed_in_one_process_and_judged(tmp_path: Path, program: Path) -> None:
    job = make_job("weighted_total/0", 0, tmp_path, emulator_compile, JOB)
    assert not job.error
    assert job.runs[0].naive
    answers = timed(job, program)
    rows = judge(job, answers)
    assert [r["status"] for r in rows] == ["correct"] * len(job.runs)
    assert all(len(r["samples"]) == FAST.samples and min(r["samples"]) > 0 for r in rows)
    assert not Path(job.folder).exists()
    assert json.loads(json.dumps(rows)) == rows


def test_a_wrong_and_an_endless_variant_spoil_no_other(tmp_path: Path, program: Path) -> None:
    job = make_job("activation/0", 0, tmp_path, spoiled, JOB)
    rows = judge(job, timed(job, program, replace(FAST, deadline=3.0)))
    assert [r["status"] for r in rows] == ["correct", "wrong", "timeout"] + ["correct"] * (len(rows) - 3)
    assert "is" in rows[1]["message"]
    assert "samples" not in rows[2]


def test_after_a_restart_outputs_are_compared_with_those_of_the_new_process(tmp_path: Path, program: Path) -> None:
    job = make_job("weighted_total/0", 0, tmp_path, spoiled, JOB)
    answers = timed(job, program, replace(FAST, deadline=3.0))
    assert [a.get("like") for a in answers[:2]] == [0, 0]
    assert all(a["like"] == 3 for a in answers[3:])
    assert all(r["status"] == "correct" for r in judge(job, answers)[3:])


def test_inputs_that_a_variant_changes_make_it_wrong(tmp_path: Path, program: Path) -> None:
    job = make_job("activation/0", 0, tmp_path, emulator_compile, JOB)
    answers = timed(job, program)
    rows = judge(job, [answers[0], {**answers[1], "changed": True}, *answers[2:]])
    assert rows[1]["status"] == "wrong"


def test_one_variant_that_does_not_compile_is_a_row_and_the_others_run(tmp_path: Path, program: Path) -> None:
    job = make_job("axpy_shift/2", 0, tmp_path, refused, JOB)
    rows = judge(job, timed(job, program))
    by_status = [r["status"] for r in rows]
    assert by_status.count("compile_error") == 1
    assert by_status.count("correct") == len(rows) - 1


def test_a_slice_is_written_task_by_task_and_resumed(tmp_path: Path, program: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = [(0, "axpy_shift/0"), (1, "activation/3")]
    said: list[str] = []

    def slice_of(some: list[tuple[int, str]]) -> int:
        return run_slice(
            some,
            Bench(program, FAST, 0),
            emulator_compile,
            Results(out, 1 << 20),
            tmp_path,
            seconds=60,
            workers=1,
            job_config=replace(JOB, most=3),
            machine={"device": "emulator"},
            say=said.append,
        )

    assert slice_of(names[:1]) == 1
    with (out / "measured-0.jsonl").open("a") as file:
        file.write('{"task": "activation/3", "done": tr')  # a slice that was killed while it wrote
    assert tasks_done([out]) == {"axpy_shift/0"}
    left = [n for n in names if n[1] not in tasks_done([out])]
    assert left == names[1:]
    assert any("axpy_shift/0" in line for line in said)
    rows = [json.loads(line) for line in (out / "measured-0.jsonl").read_text().splitlines()[:-1]]
    assert rows[-1]["device"] == "emulator"
    assert {r["status"] for r in rows[:-1]} == {"correct"}


def test_a_slice_without_time_starts_nothing(tmp_path: Path, program: Path) -> None:
    finished = run_slice(
        [(0, "axpy_shift/0")],
        Bench(program, replace(FAST, reserve=5.0), 0),
        emulator_compile,
        Results(tmp_path, 1 << 20),
        tmp_path,
        seconds=1,
        workers=1,
        job_config=JOB,
        machine={},
        say=lambda text: None,
    )
    assert finished == 0
    assert not list(tmp_path.glob("measured-*"))


def test_a_process_is_replaced_after_so_many_tasks_and_a_slice_can_be_stopped(tmp_path: Path, program: Path) -> None:
    bench = Bench(program, replace(FAST, tasks=1), 0)
    for name in ("axpy_shift/0", "axpy_shift/1"):
        job = make_job(name, 0, tmp_path, emulator_compile, replace(JOB, most=2))
        rows = judge(job, bench.time(job))
        assert bench._process is None
        assert {r["status"] for r in rows} == {"correct"}
    finished = run_slice(
        [(0, "axpy_shift/0")], bench, emulator_compile, Results(tmp_path, 1 << 20), tmp_path,
        seconds=60, workers=1, job_config=JOB, machine={}, say=lambda text: None, stopped=lambda: True,
    )  # fmt: skip
    assert finished == 0


def test_a_worker_that_dies_costs_its_tasks_and_no_more(tmp_path: Path, program: Path) -> None:
    class Deadly(Bench):
        """Kills the workers before the first of its answers."""

        def time(self, job: Job) -> list[dict[str, Any]]:
            if not said:
                for child in active_children():
                    child.kill()
                    child.join()
            return super().time(job)

    said: list[str] = []
    finished = run_slice(
        [(0, "axpy_shift/0"), (1, "axpy_shift/1"), (2, "activation/0")], Deadly(program, FAST, 0), emulator_compile,
        Results(tmp_path, 1 << 20), tmp_path, seconds=120, workers=1, job_config=replace(JOB, most=2), machine={},
        say=said.append,
    )  # fmt: skip
    assert "a worker process died" in said[0]
    assert finished == len(tasks_done([tmp_path])) == len(said) - 1


def test_a_signal_to_all_processes_ends_a_slice_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "training.dataset.measure", "--out", str(tmp_path)]
    command += ["--emulate", "4096", "--workers", "1", "--seconds", "100"]
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert next(line for line in lines if "variants," in line)
        os.killpg(process.pid, signal.SIGTERM)
        rest = "".join(lines)
        assert process.wait() == 0, rest
    assert "run the same command again for the rest" in rest
    assert tasks_done([tmp_path])


def test_a_fault_of_the_bench_is_no_verdict_on_the_variant(tmp_path: Path, program: Path) -> None:
    job = make_job("axpy_shift/0", 0, tmp_path, emulator_compile, replace(JOB, most=2))
    broken = replace(job, runs=tuple(replace(run, library="/nowhere.so") for run in job.runs))
    assert [a["status"] for a in timed(broken, program)] == ["bench_error"] * 2


def test_a_task_with_an_error_is_tried_again(tmp_path: Path) -> None:
    Results(tmp_path, 1 << 20).add([{"task": "t/0", "error": "no room", "done": True}])
    assert tasks_done([tmp_path]) == set()


def test_without_a_gpu_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.dataset.measure.find_gpu", lambda: None)
    with pytest.raises(BackendUnavailable, match="no NVIDIA GPU"):
        main(["--out", str(tmp_path)])


def test_results_go_on_in_a_new_file_when_one_is_full(tmp_path: Path) -> None:
    results = Results(tmp_path, 64)
    for number in range(4):
        results.add([{"task": f"t/{number}", "done": True, "filler": "x" * 20}])
    assert len(list(tmp_path.glob("measured-*.jsonl"))) >= 3
    assert tasks_done([tmp_path]) == {f"t/{n}" for n in range(4)}


def test_a_bundle_keeps_the_sources_apart() -> None:
    program = program_named("axpy_shift/0")
    task = load_task(source=program.source, entry=program.entry)
    source = 'extern "C" int axpy_shift_device() { return 0; }'
    text = bundle(task, [source, source])
    assert text.symbols == ("v0_call", "v1_call")
    assert text.cuda.count("namespace v1 {") == 1
    assert "axpy_shift_device" not in text.cuda
    assert "v1_device(args[0]" not in text.calls


def test_nvcc_takes_a_bundle(tmp_path: Path) -> None:
    from cudaperf_agent.cuda.toolchain import DEFAULT_ARCH, find_nvcc
    from training.dataset.measure import nvcc_compile

    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc")
    from functools import partial

    job = make_job("matmul/0", 0, tmp_path, partial(nvcc_compile, find_nvcc().path, DEFAULT_ARCH), replace(JOB, most=4))
    assert not job.error
    assert not job.failed
    assert len({run.library for run in job.runs}) == 1
