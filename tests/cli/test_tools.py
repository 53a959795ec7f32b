"""The commands beside translate: doctor, features, verify."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_process import Cli, in_process

from cudaperf_agent.cli import parts
from tests.policies.chat_server import serving

KERNEL = """#include <cuda_runtime.h>
__global__ void saxpy_kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[2 * i] + y[i];
}
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        saxpy_kernel<<<(n + 31) / 32, 32, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
"""


def test_doctor_says_what_is_here_and_what_the_sandbox_does_not_cover(cli: Cli) -> None:
    done = cli("doctor", "--json")
    checks = {check["name"]: check for check in done.json["checks"]}
    assert done.code == (3 if any(c["state"] == "missing" for c in checks.values()) else 0)
    assert set(checks) == {"python", "nvcc", "gcc and g++", "GPU", "sandbox", "store", "endpoint"}
    assert checks["sandbox"]["details"]["does not cover"]
    assert os.environ["CUDAPERF_DATA_DIR"] in checks["store"]["text"]
    assert checks["endpoint"]["state"] == "absent"
    plain = cli("doctor").out
    for word in ("python", "nvcc", "sandbox", "does not cover:", "covers:"):
        assert word in plain


def test_doctor_ends_in_3_without_nvcc_and_says_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudaperf_agent.cuda import toolchain

    monkeypatch.setattr(toolchain, "_places", lambda: iter(()))
    done = cli("doctor")
    assert done.code == 3
    assert "missing  nvcc" in done.out
    assert "pip install" in done.out


def test_doctor_says_that_nvcc_is_too_old(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "nvcc"
    old.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 10.1, V10.1.243'\n")
    old.chmod(0o755)
    monkeypatch.setenv("CUDAPERF_NVCC", str(old))
    done = cli("doctor")
    assert done.code == 3
    assert f"missing  nvcc: nvcc 10.1.243 at {old} is too old: it must be 11.8 or newer" in done.out


def test_doctor_names_the_models_of_an_endpoint_or_why_it_is_of_no_use(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(key="right") as server:
        monkeypatch.setenv("CUDAPERF_ENDPOINT__URL", server.url)
        monkeypatch.setenv("CUDAPERF_ENDPOINT__API_KEY", "right")
        done = cli("doctor")
        assert "small-model" in done.out
        assert "right" not in done.out.replace("copyright", "")
        monkeypatch.setenv("CUDAPERF_ENDPOINT__API_KEY", "wrong")
        assert "status 401" in cli("doctor").out


def test_features_come_with_lines_and_hints(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    data = cli("features", path, "--json").json
    assert data["features"]["values"]["tpb"] == 32
    assert any(hint["line"] for hint in data["hints"])
    plain = cli("features", path)
    assert plain.code == 0
    assert "line 6" in plain.out
    assert f"{path}:" in plain.out
    assert cli("features", tmp_path / "absent.cu").code == 2
    assert "name a file in it" in cli("features", tmp_path).err


def test_features_of_something_else_do_not_fail(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "prose.cu"
    path.write_text("this is no CUDA \x1b[31m at all {{{\n")
    done = cli("features", path)
    assert done.code == 0
    assert "\x1b" not in done.out


@pytest.mark.parametrize("as_json", [False, True])
def test_verify_needs_its_files(cli: Cli, tmp_path: Path, as_json: bool) -> None:
    done = cli("verify", tmp_path / "absent.cu", "--task", tmp_path / "absent.c", *(["--json"] if as_json else []))
    assert done.code == 2
    assert "absent.cu" in done.out + done.err


def test_verify_tells_a_verdict(cli: Cli, c_cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from told_verifier import ToldVerifier, answer

    monkeypatch.setattr(parts, "make_verifier", lambda seed, trust: ToldVerifier())
    path = tmp_path / "k.cu"
    for status, code in (("correct", 0), ("wrong", 1)):
        path.write_text(answer(status).partition("```cuda\n")[2].rpartition("```")[0])
        done = cli("verify", path, "--task", c_cases / "saxpy.c")
        assert done.code == code
        assert f"{path}: {status}" in done.out
        assert "running the visible cases" in done.err
        assert ("running the hidden cases" in done.err) == (code == 0)
        assert cli("verify", path, "--task", c_cases / "saxpy.c", "--json").json["verdict"]["status"] == status
    assert "y[3]: expected 1.0, got 2.0" in done.out


@pytest.mark.slow
def test_verify_for_real(c_cases: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    wrong = in_process("verify", path, "--task", c_cases / "saxpy.c")
    assert wrong.returncode == 1, wrong.stderr
    assert "line 6" in wrong.stdout
    path.write_text(KERNEL.replace("x[2 * i]", "x[i]"))
    right = in_process("verify", path, "--task", c_cases / "saxpy.c")
    assert right.returncode == 0, right.stdout + right.stderr
    assert "hidden cases agree with the C" in right.stdout


def test_a_verdict_is_repeated_from_its_file(c_cases: Path, tmp_path: Path) -> None:
    path, record = tmp_path / "mine.cu", tmp_path / "verdict.json"
    path.write_text(KERNEL)
    made = in_process("verify", path, "--task", c_cases / "saxpy.c", "--seed", "3", "--json")
    record.write_text(made.stdout)
    again = in_process("verify", path, "--task", c_cases / "saxpy.c", "--replay", record)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout == f"{path}: memory_error, as before\n"

    changed = json.loads(made.stdout)["verdict"]
    changed["passed"] += 1
    record.write_text(json.dumps(changed))
    other = in_process("verify", path, "--task", c_cases / "saxpy.c", "--replay", record, "--json")
    assert other.returncode == 1
    assert json.loads(other.stdout)["differences"] == [
        f"passed: {changed['passed']} before, {changed['passed'] - 1} now"
    ]


@pytest.mark.parametrize("text", ["not json", "{}", "[1]", '{"verdict": {"status": "splendid"}}'])
def test_what_is_no_verdict_is_not_replayed(cli: Cli, c_cases: Path, tmp_path: Path, text: str) -> None:
    path, record = tmp_path / "mine.cu", tmp_path / "verdict.json"
    path.write_text(KERNEL)
    record.write_text(text)
    done = cli("verify", path, "--task", c_cases / "saxpy.c", "--replay", record, "--json")
    assert done.code == 2
    assert "not a verdict" in done.json["error"]["message"]
    assert cli("verify", path, "--task", c_cases / "saxpy.c", "--replay", record, "--seed", "1").code == 2
    assert cli("verify", path, "--task", c_cases / "saxpy.c", "--replay", record, "--trust", "own").code == 2


@pytest.mark.parametrize("given", ["flag", "environment"])
def test_verify_says_how_far_a_candidate_was_believed(
    given: str, cli: Cli, c_cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from told_verifier import ToldVerifier, answer

    monkeypatch.setattr(parts, "make_verifier", lambda seed, trust: ToldVerifier(gpu=True, trust=trust))
    path = tmp_path / "k.cu"
    path.write_text(answer("correct").partition("```cuda\n")[2].rpartition("```")[0])
    plain = cli("verify", path, "--task", c_cases / "saxpy.c")
    assert "trust" not in plain.out
    if given == "environment":
        monkeypatch.setenv("CUDAPERF_VERIFY__TRUST", "own")
    flag = ["--trust", "own"] if given == "flag" else []
    done = cli("verify", path, "--task", c_cases / "saxpy.c", *flag)
    assert "trust:    own: nothing looked for cheats" in done.out
    assert cli("verify", path, "--task", c_cases / "saxpy.c", *flag, "--json").json["verdict"]["trust"] == "own"
    assert cli("verify", path, "--task", c_cases / "saxpy.c", "--trust", "everybody").code == 2


def test_without_a_gpu_nothing_is_believed(cli: Cli, c_cases: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(KERNEL)
    done = cli("verify", path, "--task", c_cases / "saxpy.c", "--trust", "own", "--json")
    assert "changes nothing here" in done.err
    assert done.json["verdict"]["trust"] == "suspicious"


@pytest.mark.slow
def test_verify_takes_the_file_that_translate_wrote(cli: Cli, tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "cases" / "c" / "saxpy.c"
    assert cli("translate", source, "--policy", "variants", "--out", tmp_path).code == 0
    done = cli("verify", tmp_path / "saxpy.cu", "--task", source, "--json")
    assert done.code == 0, done.out
    assert done.json["verdict"]["form"] == "device"
    text = (tmp_path / "saxpy.cu").read_text()
    layout = text.replace(";\n", ";\n\n").replace("//", "// mine:")
    (tmp_path / "saxpy.cu").write_text(layout)
    mine = cli("verify", tmp_path / "saxpy.cu", "--task", source, "--json")
    assert (mine.code, mine.json["verdict"]["form"]) == (0, "device"), mine.out
    (tmp_path / "verdict.json").write_text(mine.out)
    again = cli("verify", tmp_path / "saxpy.cu", "--task", source, "--replay", tmp_path / "verdict.json")
    assert again.code == 0, again.out
    (tmp_path / "saxpy.cu").write_text(text.replace("std::abort()", "std::exit(1)"))
    edited = cli("verify", tmp_path / "saxpy.cu", "--task", source)
    assert edited.code == 1
    assert "not as `cudaperf translate` writes it" in edited.out


def test_doctor_has_nothing_to_calibrate_without_a_gpu(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_GPU", "off")
    done = cli("doctor", "--calibrate")
    assert done.code == 3
    assert "nothing to calibrate" in done.err
    assert not done.out
    assert cli("doctor", "--calibrate", "--json").json["error"]["message"].endswith("nothing to calibrate")


def test_doctor_tells_the_rest_where_the_named_gpu_is_not_there(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudaperf_agent.cuda.gpu import find_gpu

    find_gpu.cache_clear()
    monkeypatch.setenv("CUDAPERF_GPU", "99")
    done = cli("doctor")
    assert done.code == 3
    assert "missing  GPU: CUDAPERF_GPU: there is no GPU `99`" in done.out
    assert "nvidia-smi -L" in done.out
    assert "sandbox:" in done.out
    find_gpu.cache_clear()


def test_doctor_tells_a_calibration(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudaperf_agent.cli import calibrate
    from cudaperf_agent.cuda.calibrate import Calibration
    from cudaperf_agent.cuda.ceilings import Ceilings
    from cudaperf_agent.cuda.spread import Coverage, Spread, SpreadPoint

    ceilings = Ceilings(4.2e12, 4.4e12, 4.3e12, 7.5e12, 6.44e13, 3.3e13, 8e-6, 9.6e-6)
    spread = Spread((SpreadPoint(4e-5, 0.0123, 24),))
    found = Calibration("H200", ceilings, spread, Coverage(12, 11, 1.1), {"saxpy": 24}, (Path("/c/spread.json"),))
    monkeypatch.setattr(calibrate, "calibrated", lambda: found)
    done = cli("doctor", "--calibrate")
    assert done.code == 0
    assert "memory:     copy 4.2 TB/s" in done.out
    assert "spread:     1.2 % between 24 processes, calls of 0.04 ms" in done.out
    assert "11 of 12" in done.out
    assert "kept in:    /c/spread.json" in done.out
    data = cli("doctor", "--calibrate", "--json").json["calibration"]
    assert data["ceilings"]["null_call_seconds"] == 9.6e-6
    assert data["spread"] == [{"seconds": 4e-5, "deviation": 0.0123, "processes": 24}]
