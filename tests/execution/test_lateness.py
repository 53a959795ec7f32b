"""Waiting for a processor, as the kernel counts it, and whose waiting it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cudaperf_agent.execution.lateness import process_within, waited_seconds
from cudaperf_agent.execution.sandbox import detect


def test_waiting_for_a_processor_is_counted() -> None:
    chosen = min(os.sched_getaffinity(0))
    command = f"import os; os.sched_setaffinity(0, {{{chosen}}}); print(flush=True)\nwhile True: pass"
    both = [subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in both:
            assert process.stdout is not None
            process.stdout.readline()
        before = [waited_seconds(p.pid) for p in both]
        started = time.perf_counter()
        while time.perf_counter() - started < 0.4:
            pass
        wall = time.perf_counter() - started
        waited = [waited_seconds(p.pid) - was for p, was in zip(both, before, strict=True)]
    finally:
        for process in both:
            process.kill()
            process.communicate()
    if not any(waited):
        pytest.skip("this kernel does not tell how long a process waited")
    assert sum(waited) > 0.8 * wall, "on one processor, one of two always waits"
    assert waited_seconds(0) == waited_seconds(both[0].pid) == 0.0


@pytest.mark.parametrize("sandboxed", [True, False])
def test_the_process_in_a_sandbox_is_found(sandboxed: bool, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    argv = detect().wrap(["/bin/cat"], tmp_path) if sandboxed else ["/bin/cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"there")
        assert process.stdout.read(5) == b"there"
        found = process_within(process.pid, "/bin/cat")
        assert Path(f"/proc/{found}/comm").read_text() == "cat\n"
        assert process_within(process.pid, "/bin/dog") == 0
        process.stdin.close()
    assert process_within(found, "/bin/cat") == 0
