"""The commands of `cudaperf eval` in the test's own process, with a verifier whose verdicts the candidates tell."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.cli import eval as evaluation
from cudaperf_agent.cli import parts
from cudaperf_agent.cli.main import main
from cudaperf_agent.cuda.verifier import VerifierConfig
from cudaperf_agent.settings import load_settings
from training.evaluation.plan import Plans

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from told_verifier import ToldVerifier, answer

Run = Callable[..., tuple[int, str, str]]


class Verifier(ToldVerifier):
    """With turns, as the real one."""

    def __init__(self, *, gpu: bool) -> None:
        import asyncio

        super().__init__(gpu=gpu)
        self.place.running = self.place.preparing = asyncio.Semaphore(2)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(parts, "make_verifier", lambda seed, emulator=False, **_: Verifier(gpu=not emulator))

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main(["eval", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return code, captured.out, captured.err

    return run


@pytest.fixture
def suite(tmp_path: Path, c_cases: Path) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "saxpy.c").write_text((c_cases / "saxpy.c").read_text())
    return folder


def script(tmp_path: Path, *answers: str) -> str:
    path = tmp_path / f"script{len(list(tmp_path.glob('script*')))}.jsonl"
    path.write_text("".join(json.dumps(a) + "\n" for a in answers))
    return f"scripted:{path}"


def test_run_report_compare(cli: Run, suite: Path, tmp_path: Path) -> None:
    good = script(tmp_path, answer("wrong", number=1), answer("correct", number=2))
    bad = script(tmp_path, answer("correct", hidden="wrong", number=1))
    code, out, err = cli(
        "run", "--suite", suite, "--policy", good, "--n", 2, "--turns", 2, "--seeds", 1, "--out", "good"
    )
    assert code == 0, err
    assert "12.5×" in out  # against gcc -O3, as the verifier tells
    assert "[1/1] one/saxpy: 2 of 2 trajectories correct" in err
    assert cli("run", "--suite", suite, "--policy", bad, "--n", 2, "--turns", 2, "--seeds", 1, "--out", "bad")[0] == 0
    code, out, _ = cli("compare", "good", "bad", "--json")
    assert code == 0
    told = json.loads(out)
    shares = {s["name"]: s for s in told["groups"][0]["shares"]}
    assert (shares["pass@1"]["first"], shares["pass@1"]["second"]) == (1.0, 0.0)
    page = tmp_path / "both.html"
    code, out, err = cli("report", "good", "bad", "--html", page)
    assert (code, out) == (0, "")
    assert "Side by side" in page.read_text()


def test_a_written_evaluation_is_reported_as_the_stored_one(cli: Run, suite: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct"))
    cli("run", "--suite", suite, "--policy", policy, "--n", 2, "--turns", 1, "--seeds", 1, "--out", "e")
    _, stored, _ = cli("report", "e", "--json")
    file = tmp_path / "e.json"
    file.write_text(stored)
    assert cli("report", file, "--json")[1] == stored
    assert cli("report", file)[1] == cli("report", "e")[1]
    # Kept in two folders under one name, they are told by their files; one named twice is one.
    twice = tmp_path / "twice.json"
    twice.write_text(file.read_text())
    beside = cli("report", file, twice)[1]
    assert beside.count(str(file)) >= 2
    assert beside.count(str(twice)) >= 2
    assert f"{file} against {twice}" in cli("compare", file, twice)[1]
    assert cli("report", file, file)[1] == cli("report", file)[1]
    assert cli("compare", file, "e", "--markdown", tmp_path / "c.md")[0] == 0
    assert (tmp_path / "c.md").read_text().splitlines()[0].endswith("/e.json against e")
    for form in ("--html", "--markdown"):
        made = tmp_path / form
        for words in (("report", "e"), ("compare", "e", "e"), ("report", file)):
            assert cli(*words, form, made)[0] == 0  # over the one before
        code, _, err = cli("report", file, form, file)
        assert (code, file.read_text()) == (2, stored)
        assert "this file is no report" in err


def test_variants_take_one_trajectory_and_say_why(cli: Run, suite: Path) -> None:
    code, out, err = cli("run", "--suite", suite, "--policy", "variants", "--turns", 1)
    assert code == 0, err
    plan = Plans().load("one-variants")
    assert plan is not None
    assert (plan.settings.n, plan.settings.seeds) == (1, 1)
    assert "deterministic: one trajectory says all" in out
    code, out, _ = cli("run", "--suite", suite, "--policy", "variants", "--turns", 1, "--n", 3, "--out", "three")
    assert "not independent draws" in out


def test_numbers_of_timing_reach_the_verifier_and_the_report(
    cli: Run, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def made(_seed: int, emulator: bool = False, config: Any = None) -> Verifier:
        seen.append(config)
        return Verifier(gpu=not emulator)

    monkeypatch.setattr(parts, "make_verifier", made)
    policy = script(tmp_path, answer("correct"))
    run = ("run", "--suite", suite, "--policy", policy, "--n", 1, "--turns", 1, "--seeds", 1)
    code, out, err = cli(*run, "--out", "usual")
    assert code == 0, err
    assert "Timed with" not in out
    usual = VerifierConfig()
    assert (seen[0].timing, seen[0].references, seen[0].whole) == (usual.timing, usual.references, "all")
    assert seen[0].tasks_at_hand == 2
    few = ("--samples", 9, "--contents", 2, "--c-seconds", 0.1, "--device-times", "--tasks-at-once", 7)
    code, out, err = cli(*run, *few, "--out", "few")
    assert code == 0, err
    timing, references = seen[1].timing, seen[1].references
    assert (timing.samples, timing.contents, timing.fewest_contents, timing.reference_seconds) == (9, 2, 2, 0.1)
    assert (references.samples, references.fewest) == (9, 3)
    assert references.seconds == pytest.approx(usual.references.seconds / 5)
    assert (seen[1].tasks_at_hand, seen[1].whole, seen[1].trace) == (7, "chosen", False)
    told = " ".join(out.split())
    assert "Timed with 9 timed calls of a kernel, at most 2 sets of inputs, sizes at which the C takes 0.1 s" in told
    assert "a search by the device's times alone" in told


def test_other_settings_under_one_name_are_refused(cli: Run, suite: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct"))
    run = ("run", "--suite", suite, "--policy", policy, "--turns", 1, "--seeds", 1, "--out", "e")
    assert cli(*run, "--n", 1)[0] == 0
    code, _, err = cli(*run, "--n", 2)
    assert code == 2
    assert "e was begun with n 1, not 2" in err
    assert "--out e-2" in err


def test_beside_a_process_at_work_on_it_an_evaluation_is_refused(cli: Run, suite: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, answer("correct"))
    run = ("run", "--suite", suite, "--policy", policy, "--n", 1, "--turns", 1, "--seeds", 1)
    holding = "from training.evaluation.plan import Plans\nwith Plans().claim('e'):\n    print(flush=True)\n    input()"
    other = subprocess.Popen(
        [sys.executable, "-c", holding],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdout.readline()
    try:
        code, out, err = cli(*run, "--out", "e")
        assert (code, out) == (2, "")
        assert "another process is at work on the evaluation e" in err
        assert "the same command then goes on" in err
        assert "resume" not in err
        assert Plans().load("e") is None
        assert cli(*run, "--out", "e-2")[0] == 0
    finally:
        other.kill()
        other.communicate()
    assert cli(*run, "--out", "e")[0] == 0


def test_a_kernelbench_folder_is_run_and_reported_by_levels(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All twenty files through the graph; that modules are verified for real is tested with the verifier."""

    async def as_it_is(task: Any, verifier: Any) -> Any:
        return task

    monkeypatch.setattr(parts, "prepared", as_it_is)
    folder = Path(__file__).parents[1] / "cases" / "kernelbench"
    code = "```python\n# {} {}\nimport torch\nclass ModelNew(torch.nn.Module):\n    pass\n```\n"
    policy = script(tmp_path, code.format("wrong", "wrong"), code.format("correct", "correct"))
    run = ("run", "--suite", folder, "--policy", policy, "--n", 1, "--turns", 2, "--seeds", 1, "--out", "kb")
    code_, out, err = cli(*run, "--json")
    assert code_ == 0, err
    told = json.loads(out)
    assert {g: e["tasks"] for g, e in told["estimates"].items()} == {"level1": 16, "level2": 4}
    assert {e["pass_at"]["1"]["value"] for e in told["estimates"].values()} == {1.0}
    text = cli("report", "kb")[1]
    assert "level1: 16 tasks" in text
    assert "level2: 4 tasks" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("report", "nothing"), "there is no evaluation `nothing`"),
        (("report", "nothing.json"), "cannot be read"),
        (("compare", "a", "b"), "there is no evaluation `a`"),
        (("run", "--suite", "nowhere", "--policy", "variants"), "there is no suite `nowhere`"),
        (("run", "--suite", "handed", "--policy", "nobody"), "there is no policy `nobody`"),
        (("run", "--suite", "handed", "--policy", "variants", "--turns", "9"), "turns"),
        (("run", "--suite", "handed", "--policy", "variants", "--out", "../x"), "no name of an evaluation"),
        (("run", "--suite", "handed", "--policy", "variants", "--tasks-at-once", "0"), "no task could be at work"),
    ],
)
def test_what_cannot_be_done_is_one_message(cli: Run, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = cli(*arguments)
    assert code == 2
    assert out == ""
    assert told in err
    code, out, _ = cli(*arguments, "--json")
    assert code == 2
    error: Any = json.loads(out)["error"]
    assert told in error["message"]
    assert error["hint"]


@pytest.mark.parametrize(
    ("policy", "url", "here"),
    [
        ("local:/models/x", None, True),
        ("vllm:x+adapter", None, True),
        ("ensemble:local:/models/x", None, True),
        ("openai:x", "http://localhost:8000/v1", True),
        ("openai:x", "http://127.0.0.1:8000/v1", True),
        ("openai:x", "https://models.example.org/v1", False),
        ("variants", "http://localhost:8000/v1", False),
        ("scripted:/answers", None, False),
    ],
)
def test_who_may_generate_on_this_device(policy: str, url: str | None, here: bool) -> None:
    settings = load_settings({"endpoint.url": url}, environ={}, files=False).settings
    assert parts.may_generate_here(policy, settings.endpoint) is here


TERMINAL, BACKGROUND = signal.default_int_handler, signal.SIG_IGN
"""How Ctrl-C is taken: in a script's background job it is ignored."""


@pytest.fixture
def taken(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ctrl-C taken as the parameter says."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize(
    ("taken", "number"),
    [(TERMINAL, signal.SIGINT), (TERMINAL, signal.SIGTERM), (BACKGROUND, signal.SIGTERM)],
    indirect=["taken"],
    ids=["Ctrl-C", "SIGTERM", "SIGTERM in the background"],
)
@pytest.mark.parametrize("place", ["_default_name", "_facts"])
def test_an_interruption_before_or_after_the_tasks_says_that_the_same_command_goes_on(
    cli: Run, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, number: signal.Signals
) -> None:
    arguments = ["run", "--suite", suite, "--policy", script(tmp_path, answer("correct")), "--n", 1, "--seeds", 1]
    with monkeypatch.context() as patched:
        patched.setattr(evaluation, place, lambda *_: signal.raise_signal(number))
        code, out, _ = cli(*arguments, "--turns", 1, "--json")
    assert code == 130
    assert json.loads(out)["error"]["hint"] == "the same command goes on with it"
    code, out, err = cli(*arguments, "--turns", 1, "--json")
    assert code == 0, err
    assert json.loads(out)["evaluation"]["tasks"]


def test_a_file_that_is_no_evaluation_is_refused(cli: Run, tmp_path: Path) -> None:
    for text in ("{}", "[]", '{"evaluation": {"format": 99}}', "{"):
        (tmp_path / "x.json").write_text(text)
        code, _, err = cli("report", tmp_path / "x.json")
        assert code == 2
        assert "it holds no evaluation" in err


def test_the_results_in_the_documentation_are_those_of_the_stored_facts(cli: Run, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    files = sorted((root / "benchmarks" / "results").glob("*.json"))
    assert files
    made = tmp_path / "results.md"
    assert cli("report", *files, "--markdown", made)[0] == 0
    command = "cudaperf eval report benchmarks/results/*.json --markdown docs/results.md"
    assert made.read_text() == (root / "docs" / "results.md").read_text(), command


def test_a_search_on_the_emulator_is_timed_on_the_device_after(
    cli: Run, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = script(tmp_path, answer("wrong", number=1), answer("correct", number=2), answer("correct", number=3))
    options = ("--suite", suite, "--policy", good, "--n", 2, "--turns", 3, "--seeds", 1, "--out", "e")
    code, out, err = cli("run", *options, "--backend", "emulator")
    assert code == 0, err
    assert "Nothing was timed" in out
    code, _, err = cli("time", "e")
    assert (code, "no GPU to time on" in err) == (3, True)
    monkeypatch.setattr("cudaperf_agent.cuda.verifier.Verifier", lambda config: Verifier(gpu=True))
    code, _, err = cli("time", "e", "--samples", 9)
    assert (code, "[1/1] one/saxpy" in err) == (0, True)
    assert "12.5×" in cli("report", "e")[1]
    # The search had ended at the second turn; with one there is nothing.
    code, out, _ = cli("report", "e", "--turns", 1, "--json")
    (task,) = json.loads(out)["evaluation"]["tasks"]
    assert [(o["correct"], len(o["turns"])) for o in task["outcomes"]] == [(False, 1)] * 2
    assert cli("time", "nothing")[0] == 2


def test_what_was_timed_while_it_searched_is_not_timed_again(cli: Run, suite: Path, tmp_path: Path) -> None:
    good = script(tmp_path, answer("correct", number=1))
    assert cli("run", "--suite", suite, "--policy", good, "--n", 1, "--turns", 1, "--seeds", 1, "--out", "e")[0] == 0
    code, _, err = cli("time", "e")
    assert (code, "timed on a GPU already" in err) == (2, True)
    code, _, err = cli("report", "e", "--turns", 2)
    assert (code, "has 1 turns, not 2" in err) == (2, True)
