"""Translations for real, end to end: C in, tested CUDA out, by the compiler and the tests of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_process import Cli, in_process

from cudaperf_agent.cuda.emulator import runtime_library

pytestmark = pytest.mark.slow


def test_saxpy_by_variants_in_a_process_of_its_own(c_cases: Path, tmp_path: Path) -> None:
    done = in_process("translate", c_cases / "saxpy.c", "--policy", "variants", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(":", 1) for line in done.stdout.splitlines() if not line.startswith(" "))
    assert set(lines) >= {"made", "verified", "assumed", "files"}
    report = json.loads((tmp_path / "saxpy.report.json").read_text())
    verdict = report["verdict"]
    assert verdict["status"] == "correct"
    assert verdict["passed"] == verdict["total"] > 5
    if not verdict["measured"]:
        assert "times as fast" not in done.stdout + done.stderr
        assert "no GPU" in lines["speed"]
    text = (tmp_path / "saxpy.cu").read_text()
    assert "__global__" in text
    assert 'extern "C" void saxpy(' in text


def test_standard_input_and_json(c_cases: Path, tmp_path: Path) -> None:
    text = (c_cases / "saxpy.c").read_text()
    done = in_process("translate", "-", "--policy", "variants", "--out", tmp_path, "--json", input=text)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["task"]["path"] == "<stdin>"
    assert (tmp_path / "saxpy.cu").exists()


def test_a_file_with_state_keeps_its_c_part(cli: Cli, c_cases: Path, tmp_path: Path) -> None:
    done = cli("translate", c_cases / "kmeans_assign.c", "--policy", "variants", "--out", tmp_path)
    assert done.code == 0, done.err
    host = tmp_path / "kmeans_assign_host.c"
    assert "set_centroids" in host.read_text()
    assert str(host) in done.out
    subprocess.run(["gcc", "-c", str(host), "-o", os.devnull], check=True)


def test_what_is_declined_names_the_line_and_ends_in_1(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "chaos.c"
    path.write_text(
        "/* cudaperf: r in 0..4; x[n] in 0..1 */\nvoid chaos(int n, float r, float *x)\n{\n"
        "    for (int i = 1; i < n; i++)\n        x[i] = r * x[i - 1] * (1.0f - x[i - 1]);\n}\n"
    )
    done = cli("translate", path, "--policy", "variants", "--out", tmp_path / "o", "--json")
    assert done.code == 1, done.out
    error = done.json["error"]
    assert error["kind"] == "no_kernel"
    assert any(f"{path}:{line}: " in error["message"] for line in (4, 5))
    assert error["hint"]
    assert not (tmp_path / "o").exists()


def test_a_wrong_answer_is_mended_by_the_next(cli: Cli, c_cases: Path, tmp_path: Path) -> None:
    kernel = (
        "#include <cuda_runtime.h>\n"
        "__global__ void k(int n, float a, const float *x, float *y) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) y[i] = a * x[i] SIGN y[i];\n"
        "}\n"
        'extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream) {\n'
        "    if (n > 0) k<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);\n"
        "    return cudaGetLastError();\n"
        "}\n"
    )
    script = tmp_path / "script"
    script.mkdir()
    (script / "1.cu").write_text(kernel.replace("SIGN", "-"))
    (script / "2.cu").write_text(kernel.replace("SIGN y[i];", "+ z[i];"))
    (script / "3.cu").write_text(kernel.replace("SIGN", "+"))
    done = cli("translate", c_cases / "saxpy.c", "--policy", f"scripted:{script}", "--out", tmp_path / "o")
    assert done.code == 0, done.err
    first = cli("show", "latest", "--turn", "1").out
    assert "expected" in first
    second = cli("show", "latest", "--turn", "2").out
    assert '"z" is undefined' in second
    assert "line 4" in second
    assert "turn 3" in done.out


def test_the_first_run_says_that_the_emulator_is_built_and_the_next_does_not(
    c_cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The headers are what is left to build; the runtime would take three times as long.
    runtime = runtime_library().parent
    shutil.copytree(runtime, tmp_path / "cache" / "emulator" / runtime.name)
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CUDAPERF_GPU", "off")
    said = [
        in_process(
            "translate", c_cases / "saxpy.c", "--policy", "variants", "--turns", "1", "--out", tmp_path / "out"
        ).stderr
        for _ in range(2)
    ]
    assert ["builds the CPU emulator" in err for err in said] == [True, False], said
