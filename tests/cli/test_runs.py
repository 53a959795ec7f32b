"""Translations through the commands: files, report, summary, exit codes; and what is told of them afterwards."""

from __future__ import annotations

import importlib.util
import io
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_process import Cli
from told_verifier import ToldVerifier, answer

from cudaperf_agent.cli import compose, parts
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.openai import OpenAIPolicy
from tests.policies.chat_server import serving

EVIL = "\x1b]0;owned\x07[red]\u202e\x1b[2J"


@pytest.fixture(autouse=True)
def _told(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    gpu = "gpu" in request.fixturenames or "on_gpu" in request.node.name
    monkeypatch.setattr(parts, "make_verifier", lambda seed, **_: ToldVerifier(gpu=gpu))


@pytest.fixture
def saxpy(c_cases: Path) -> Path:
    return c_cases / "saxpy.c"


def script(folder: Path, *answers: Any) -> str:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(json.dumps(a) for a in answers) + "\n")
    return f"scripted:{path}"


def test_a_translation_writes_files_and_a_summary(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    policy = script(tmp_path, answer("wrong"), answer("correct", number=1))
    done = cli("translate", saxpy, "--policy", policy, "--out", out)
    assert done.code == 0, done.err
    assert "turn 1: test     wrong, 1 of 4 cases: y differs" in done.err
    lines = dict(line.split(":", 1) for line in done.out.splitlines() if not line.startswith(" "))
    assert "saxpy of" in lines["made"]
    assert "turn 2" in lines["made"]
    assert "nvcc 13.0.88" in lines["verified"]
    assert "4 of 4 hidden cases" in lines["verified"]
    assert "CPU emulator" in lines["verified"]
    assert "loops" in lines["assumed"]
    assert "x[n], y[n]" in lines["assumed"]
    assert "\n          what y points to does not overlap" in done.out
    assert "no GPU" in lines["speed"]
    assert "times as fast" not in done.out + done.err
    text = (out / "saxpy.cu").read_text()
    assert "return 1;" in text
    assert 'extern "C" void saxpy(int n, float a, const float *x, float *y)' in text
    assert not (out / "saxpy_host.c").exists()
    report = json.loads((out / "saxpy.report.json").read_text())
    assert report["status"] == "correct"
    assert report["candidate"]["turn"] == 1
    assert report["verdict"]["passed"] == 4
    assert [a["status"] for a in report["attempts"]] == ["wrong", "correct"]
    assert {p["name"]: p["role"] for p in report["task"]["parameters"]}["y"] == "inout"
    assert report["sandbox"]["misses"] == ["everything"]


def test_json_is_one_object_on_stdout(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    done = cli("translate", saxpy, "--policy", script(tmp_path, answer("correct")), "--out", tmp_path / "o", "--json")
    assert done.code == 0
    report = json.loads((tmp_path / "o" / "saxpy.report.json").read_text())
    assert done.json == report
    assert "error" not in done.json


def test_speed_is_told_on_gpu(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    done = cli("translate", saxpy, "--policy", script(tmp_path, answer("correct")), "--out", tmp_path, "--turns", "1")
    assert done.code == 0, done.err
    assert "12.50 times as fast as gcc -O3 (95 %: 12.00 to 13.00)" in done.out
    assert "NVIDIA H200" in done.out
    assert "end_to_end 9 ms" in done.out


class OneDevice(ToldVerifier):
    """On a GPU that a model of this machine asks for before it generates."""

    def __init__(self) -> None:
        super().__init__(gpu=True)
        self.turns = 0
        self.busy = False
        self.place.alone = self.alone

    @asynccontextmanager
    async def alone(self, *, cpu: bool = True) -> AsyncIterator[None]:
        assert not cpu, "compilers may work while a model generates"
        self.turns += 1
        self.busy = True
        yield
        self.busy = False


@pytest.mark.parametrize("host", ["127.0.0.1", "elsewhere"])
def test_a_model_on_the_gpu_generates_in_turns_with_timing(
    cli: Cli, saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    device = OneDevice()
    monkeypatch.setattr(parts, "make_verifier", lambda seed, **_: device)
    if host == "elsewhere":
        monkeypatch.setattr(parts, "may_generate_here", lambda policy, endpoint: False)
    held: list[bool] = []
    propose = OpenAIPolicy.propose

    async def watched(self: OpenAIPolicy, request: Any) -> Any:
        held.append(device.busy)
        return await propose(self, request)

    monkeypatch.setattr(OpenAIPolicy, "propose", watched)
    with serving(answer("correct")) as server:
        monkeypatch.setenv("CUDAPERF_ENDPOINT__URL", server.url)
        done = cli("translate", saxpy, "--policy", "openai", "--trajectories", "2", "--out", tmp_path, "--turns", "1")
    assert done.code == 0, done.err
    here = host == "127.0.0.1"
    assert held == [here] * 2
    assert (device.turns > 0) is here


def test_standard_input(cli: Cli, saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(saxpy.read_bytes())))
    done = cli("translate", "-", "--policy", script(tmp_path, answer("correct")), "--out", tmp_path / "o")
    assert done.code == 0, done.err
    assert (tmp_path / "o" / "saxpy.cu").exists()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"  \n")))
    assert cli("translate", "-").code == 2


def test_no_correct_candidate_ends_in_1(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("wrong"), answer("crash", number=1))
    args = ("translate", saxpy, "--policy", policy, "--turns", "2", "--out", tmp_path / "o")
    done = cli(*args)
    assert (done.code, done.out) == (1, "")
    assert "none of 2 candidates is correct" in done.err
    assert "crash" in done.err
    assert "cudaperf show " in done.err
    assert not (tmp_path / "o").exists()
    shown = cli(*args, "--json")
    assert shown.code == 1
    assert shown.json["error"]["kind"] == "no_kernel"
    assert len(shown.json["report"]["attempts"]) == 2


def test_passing_the_visible_cases_alone_is_no_success(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    done = cli("translate", saxpy, "--policy", script(tmp_path, answer("correct", hidden="wrong")), "--out", tmp_path)
    assert done.code == 1
    assert "put to the hidden cases: wrong, y differs" in done.err
    assert not (tmp_path / "saxpy.cu").exists()


def test_the_next_best_is_taken_and_told_on_gpu(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct", hidden="wrong"), answer("correct", number=1))
    done = cli("translate", saxpy, "--policy", policy, "--out", tmp_path, "--turns", "2")
    assert done.code == 0, done.err
    assert "turn 1 was the first choice and failed the hidden cases" in done.out


@pytest.mark.parametrize("policy", ["local", "vllm", "ensemble:local", "local:FOLDER"])
def test_a_model_that_cannot_run_is_said_before_anything_costly(
    cli: Cli, saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    find = importlib.util.find_spec
    if policy != "local:FOLDER":
        absent = ("torch", "vllm")
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name, *rest: None if name in absent else find(name, *rest)
        )
    (tmp_path / "empty").mkdir()
    done = cli("translate", saxpy, "--policy", policy.replace("FOLDER", str(tmp_path / "empty")), "--out", tmp_path)
    assert done.code == 3
    assert ("no config.json" if "FOLDER" in policy else "is not installed") in done.err
    assert "sanitizers" not in done.err
    assert "cudaperf resume" not in done.err
    assert cli("runs", "--json").json == {"runs": []}


def test_a_policy_that_declines_ends_in_1_with_its_reason(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, {"declined": "line 4 depends on line 3"})
    done = cli("translate", saxpy, "--policy", policy, "--out", tmp_path, "--json")
    assert done.code == 1
    assert "line 4 depends on line 3" in done.json["error"]["message"]
    assert done.json["error"]["hint"]


def test_a_spent_time_budget_ends_in_4(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct"))
    done = cli("translate", saxpy, "--policy", policy, "--out", tmp_path, "--time-budget", "0.000001")
    assert done.code == 4
    assert "--time-budget" in done.err


def test_an_endpoint_that_is_not_there_ends_in_3_and_can_be_resumed(
    cli: Cli, saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("CUDAPERF_ENDPOINT__URL", f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        monkeypatch.setenv("CUDAPERF_ENDPOINT__RETRIES", "0")
        done = cli("translate", saxpy, "--policy", "openai", "--out", tmp_path, "--json")
    assert done.code == 3
    assert done.json["error"]["kind"] == "backend"
    assert "CUDAPERF_ENDPOINT__URL" in done.json["error"]["hint"]
    assert "cudaperf resume" in done.json["error"]["hint"]
    with serving(answer("correct")) as server:
        monkeypatch.setenv("CUDAPERF_ENDPOINT__URL", server.url)
        again = cli("resume", "latest", "--out", tmp_path)
        assert {r["model"] for r in server.requests} == {"small-model"}
    assert again.code == 0, again.err
    assert (tmp_path / "saxpy.cu").exists()


def test_auto_says_that_the_endpoint_is_not_used(
    cli: Cli, saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(key="right") as server:
        monkeypatch.setenv("CUDAPERF_ENDPOINT__URL", server.url)
        done = cli("translate", saxpy, "--out", tmp_path, "--turns", "1")
    assert "takes the variants: the endpoint" in done.err
    assert "is not used (it answers with status 401)" in done.err


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["absent.c"], "absent.c"),
        (["FILE", "--policy", "magic"], "magic"),
        (["FILE", "--policy", "openai"], "endpoint"),
        (["FILE", "--policy", "scripted:/nowhere"], "/nowhere"),
        (["FILE", "--turns", "6"], "turns"),
        (["FILE", "--display", "loud"], "display"),
        (["FILE", "--entry", "nothing"], "nothing"),
        (["FILE", "--spec", "/nowhere.toml"], "/nowhere.toml"),
        (["FILE", "--stdin", "/nowhere.txt"], "/nowhere.txt"),
    ],
)
def test_wrong_arguments_end_in_2_and_name_the_thing(
    cli: Cli, saxpy: Path, args: list[str], word: str, tmp_path: Path
) -> None:
    done = cli("translate", *(str(saxpy) if a == "FILE" else a for a in args), "--out", tmp_path, "--json")
    assert done.code == 2
    error = done.json["error"]
    assert word in f"{error['where']} {error['message']} {error['hint']}"
    assert error["hint"]


def test_a_file_of_the_user_s_is_not_overwritten(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct"))
    (tmp_path / "saxpy.cu").write_text("// mine\n")
    done = cli("translate", saxpy, "--policy", policy, "--out", tmp_path)
    assert done.code == 2
    assert "--out" in done.err
    assert (tmp_path / "saxpy.cu").read_text() == "// mine\n"
    (tmp_path / "saxpy.cu").unlink()
    assert cli("translate", saxpy, "--policy", policy, "--out", tmp_path).code == 0
    assert cli("translate", saxpy, "--policy", policy, "--out", tmp_path).code == 0
    (tmp_path / "saxpy.cu").write_text("// edited\n")
    assert cli("translate", saxpy, "--policy", policy, "--out", tmp_path).code == 2


def test_a_host_part_that_is_needed_no_more_goes_with_the_translation_it_was_of(
    cli: Cli, saxpy: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "saxpy.c", tmp_path / "out"
    words = ("translate", file, "--entry", "saxpy", "--policy", script(tmp_path, answer("correct")), "--out", out)
    for others in ("int helper(int a) { return a; }\n", "", "int helper(int a) { return a; }\n"):
        file.write_text(others + saxpy.read_text())
        done = cli(*words)
        assert done.code == 0, done.err
        assert (out / "saxpy_host.c").exists() == bool(others)
    (out / "saxpy_host.c").write_text("// mine\n")
    file.write_text(saxpy.read_text())
    assert cli(*words).code == 2
    assert (out / "saxpy_host.c").read_text() == "// mine\n"


def test_runs_and_show_tell_what_happened(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("compile_error"), answer("correct", number=1))
    assert cli("runs").code == 0
    assert cli("runs", "--json").json == {"runs": []}
    run = cli("translate", saxpy, "--policy", policy, "--out", tmp_path, "--json").json["run"]
    listed = cli("runs")
    assert run in listed.out
    assert "correct" in listed.out
    assert cli("runs", "--json").json["runs"][0]["id"] == run
    overview = cli("show", "latest").out
    assert "compile_error" in overview
    assert "best" in overview
    detail = cli("show", run, "--turn", "1").out
    assert "line 7: error: identifier q is undefined" in detail
    assert "feedback:" in detail
    assert "return 1;" in cli("show", run, "--code").out
    assert "return 0;" in cli("show", run, "--turn", "1", "--code").out
    data = cli("show", run, "--json").json
    assert [a["turn"] for a in data["attempts"]] == [0, 1]
    assert data["best"]["turn"] == 1
    assert cli("show", run, "--turn", "5").code == 2
    missing = cli("show", "zzz", "--json")
    assert missing.code == 2
    assert missing.json["error"]["kind"] == "store"


def test_a_run_that_stopped_after_compiling_is_not_told_as_correct(
    cli: Cli, saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: ToldVerifier, task: Any, source: str, *, hidden: bool = False) -> Any:
        raise BackendUnavailable("the machine broke")

    monkeypatch.setattr(ToldVerifier, "test", fails)
    done = cli("translate", saxpy, "--policy", script(tmp_path, answer("correct")), "--out", tmp_path, "--json")
    assert done.code == 3
    assert [a["status"] for a in done.json["report"]["attempts"]] == ["unfinished"]
    run = done.json["report"]["run"]
    overview = cli("show", run).out
    assert "unfinished" in overview
    assert "correct" not in overview
    page = cli("report", run, "--format", "md").out
    assert "unfinished" in page
    assert "✓" not in page


def test_without_a_correct_candidate_the_last_one_is_named(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("wrong"), answer("crash", number=7), "I give up.")
    assert cli("translate", saxpy, "--policy", policy, "--turns", "3", "--out", tmp_path).code == 1
    for options in ([], ["--turn", "3"]):
        refused = cli("show", "latest", *options, "--code")
        assert (refused.code, refused.out) == (2, "")
        _, _, command = refused.err.strip().rpartition("the last candidate: cudaperf ")
        assert "return 7;" in cli(*command.split()).out
    assert cli("translate", saxpy, "--policy", script(tmp_path, "No."), "--turns", "1", "--out", tmp_path).code == 1
    assert "no attempt holds code" in cli("show", "latest", "--code").err


def test_runs_of_translate_are_listed_and_the_others_counted(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    from cudaperf_agent.store.repository import Store

    assert cli("translate", saxpy, "--policy", script(tmp_path, answer("correct")), "--out", tmp_path).code == 0
    with Store() as store:
        (mine,) = store.list_runs()
        task = store.get_run(mine.id).task
        made = {
            origin: [
                store.create_run(
                    task, policy="p", backend="b", config={}, trajectories=1, turns=1, created=1.0, origin=origin
                )
                for _ in range(count)
            ]
            for origin, count in (("eval", 3), ("grpo", 1))
        }
    listed = cli("runs")
    assert mine.id in listed.out
    assert not any(run in listed.out for runs in made.values() for run in runs)
    assert "4 runs of another origin not shown (eval 3, grpo 1); --origin all shows all" in listed.err
    assert [run["id"] for run in cli("runs", "--json").json["runs"]] == [mine.id]
    of_eval = cli("runs", "--origin", "eval", "--json")
    assert {run["id"] for run in of_eval.json["runs"]} == set(made["eval"])
    assert "2 runs of another origin not shown (grpo 1, translate 1)" in of_eval.err
    everything = cli("runs", "--origin", "all", "--json")
    assert len(everything.json["runs"]) == 5
    assert "not shown" not in everything.err
    assert "no such runs of sft" in cli("runs", "--origin", "sft").err
    assert "another origin" not in cli("runs", "--task", "no such task").err


def test_latest_is_of_what_runs_lists(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    from cudaperf_agent.store.repository import Store

    assert cli("translate", saxpy, "--policy", script(tmp_path, answer("correct")), "--out", tmp_path).code == 0
    with Store() as store:
        (mine,) = store.list_runs()
        task = store.get_run(mine.id).task
        store.create_run(
            task, policy="p", backend="b", config={}, trajectories=1, turns=1, created=mine.created + 9, origin="eval"
        )
        asked = (("show", "latest"), ("report", "latest", "--format", "md"), ("resume", "latest", "--out", tmp_path))
        for words in asked:
            named, by_id = cli(*words), cli(*(mine.id if word == "latest" else word for word in words))
            assert named.code == 0, named.err
            assert named.out == by_id.out
        store.delete_run(mine.id)
    for words in asked:
        refused = cli(*words)
        assert refused.code == 2
        assert "only others (eval 1)" in refused.err
        assert "cudaperf runs --origin all" in refused.err


def test_a_finished_run_is_told_again_by_resume(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct"))
    first = cli("translate", saxpy, "--policy", policy, "--out", tmp_path / "one-out")
    again = cli("resume", "latest", "--out", tmp_path / "two-out")
    assert again.code == 0, again.err
    assert again.out == first.out.replace(str(tmp_path / "one-out"), str(tmp_path / "two-out"))
    assert (tmp_path / "two-out" / "saxpy.cu").read_bytes() == (tmp_path / "one-out" / "saxpy.cu").read_bytes()


def test_hostile_answers_are_shown_and_not_obeyed(cli: Cli, saxpy: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("wrong", message=EVIL), answer("correct", number=1, message=EVIL) + EVIL)
    shown = [cli("translate", saxpy, "--policy", policy, "--out", tmp_path)]
    shown += [cli("show", "latest"), cli("show", "latest", "--turn", "1"), cli("show", "latest", "--code")]
    shown += [cli("runs"), cli("show", "latest", "--json")]
    for done in shown:
        assert done.code == 0, done.err
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err)


def test_the_library_does_it_in_two_lines(saxpy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudaperf_agent.cli.report import write_files

    monkeypatch.setenv("CUDAPERF_TRANSLATE__POLICY", script(tmp_path, answer("correct")))
    from cudaperf_agent.settings import load_settings

    translation = compose.translate(compose.Source(saxpy), load_settings().settings)
    assert set(write_files(translation, tmp_path / "o")) == {"cu", "report"}
