"""The section that tells GRPO runs: from logs and evaluations to Markdown and pictures."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from training.evaluation.facts import Evaluation, Outcome, TaskFacts, TurnFacts

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "grpo_results.py"
C = "gcc -O3 -march=native"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("grpo_results", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    return module


def step(number: int, reward: float) -> dict[str, float]:
    shares = {"time/generating": 0.5, "time/learning": 0.3, "time/verifying": 0.15, "time/waiting": 0.05}
    return {
        "step": number, "elapsed": 30.0 * number, "reward": reward, "correct@turn1": 0.5, "time/timing": 0.0,
        "time/gpu_busy": 0.8, "time/step_seconds": 30.0, "entropy": 5.0 if number == 1 else 0.01,
        "rows_with_advantage": 0.0 if number == 1 else 0.5, **shares,
    }  # fmt: skip


def evaluation(name: str, right: int) -> Evaluation:
    """Eight tasks; the first `right` are solved, half of those at the first turn, eight times as fast as the C."""

    def outcomes(task: int) -> tuple[Outcome, ...]:
        first = TurnFacts("correct" if task < right / 2 else "wrong")
        turns = (first,) if first.correct else (first, TurnFacts("correct" if task < right else "wrong"))
        speeds = {C: 8.0} if task < right else {}
        return tuple(
            Outcome(0, n, task < right, "" if task < right else "wrong", speedups=speeds, turns=turns) for n in range(5)
        )

    tasks = tuple(TaskFacts(f"g/{t}", "g", f"g/{t}", f"d{t}", "", outcomes(t)) for t in range(8))
    return Evaluation(name, "own-c", f"vllm:{name}", "emulator", 5, 2, 1, tasks, "NVIDIA H200", notes=("A note.",))


def folder(tmp_path: Path) -> Path:
    found = tmp_path / "visit"
    for condition, gain in (("both", 0.1), ("verifiable", 0.0)):
        (found / condition).mkdir(parents=True)
        lines = [json.dumps(step(n, -1 + gain * n)) for n in range(1, 9)]
        (found / condition / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    for name, right in (("base", 0), ("warm", 4), ("both", 6), ("verifiable", 4)):
        facts = {"evaluation": evaluation(name, right).to_dict(), "estimates": {}}
        (found / "evaluate").mkdir(exist_ok=True)
        (found / "evaluate" / f"{name}.json").write_text(json.dumps(facts))
    return found


def test_logs_and_evaluations_become_a_section(results: ModuleType, tmp_path: Path) -> None:
    results.keep([folder(tmp_path)], "h200")
    kept = tmp_path / "kept" / "h200"
    runs, found = results.read_runs(kept), results.read_evaluations(kept)
    assert list(runs) == ["both", "verifiable"]
    assert list(found) == ["base", "warm", "both", "verifiable"]
    text = results.section(runs, found, {}, "h200")
    # Means of the first and the last two of eight steps.
    assert "| reward | -0.85 → -0.25 | -1 → -1 |" in text
    assert "| `both` | 50% | 30% | 0% | 15% | 5% | 80% | 30.0 |" in text
    assert "8 steps in 240 s" in text
    assert "nats a token | 0.01 → 0.01 |" in text
    assert "one seed a condition, this is a demonstration" in text
    rows = [line for line in text.splitlines() if line.startswith("| `warm` |")]
    assert [row.split("|")[2:5] for row in rows] == [
        [" 1 ", " 8 ", rows[0].split("|")[4]],
        [" 2 ", " 8 ", rows[1].split("|")[4]],
    ]
    assert "25.0 %" in rows[0]
    assert "50.0 %" in rows[1]
    assert "| `both` less `warm` | 2 | 8 | +25.0" in text
    assert "| `warm` less `base` | 1 | 8 | +25.0" in text
    assert "| `both` less `verifiable` | 2 | 8 | +25.0" in text
    # Eight times as fast on half of the tasks, and a failure counts as 1.
    assert "2.83×" in rows[1]
    assert text.count("A note.") == 1


def test_checkpoints_on_the_validation_are_told_beside_the_warm_start(results: ModuleType, tmp_path: Path) -> None:
    found = folder(tmp_path)
    tried = found / "evaluate" / "validation"
    tried.mkdir()
    for name, right in (("warm", 4), ("both-5", 2)):
        one_turn = replace(evaluation(name, right), turns=1, suite="validation", notes=("Of one only.",))
        facts = {"evaluation": one_turn.to_dict(), "estimates": {}}
        (tried / f"validation-{name}.json").write_text(json.dumps(facts))
    results.keep([found], "h200")
    kept = tmp_path / "kept" / "h200"
    text = results.section(
        results.read_runs(kept), results.read_evaluations(kept), results.read_evaluations(kept / "validation"), "h200"
    )
    validation = text[text.index("The validation, by which") :]
    assert "8 tasks, members of families that were learned from, 5 answers each" in validation
    rows = [line for line in validation.splitlines() if line.startswith("| `")]
    assert rows[0].startswith("| `warm` | 8 | 50.0 % [")
    assert rows[0].endswith(" – |")
    assert rows[1].startswith("| `both-5` | 8 | 25.0 % [")
    assert "| -25.0 [" in rows[1]


def test_a_note_of_one_evaluation_is_told_as_its_own(results: ModuleType) -> None:
    found = {"warm": evaluation("warm", 4), "both": replace(evaluation("both", 4), notes=("A note.", "Unfinished."))}
    text = "\n".join(results.worth(found))
    assert "\n A note.\n" in text
    assert "\n `both`: Unfinished.\n" in text


def test_an_evaluation_with_times_goes_before_the_one_without(results: ModuleType, tmp_path: Path) -> None:
    found = folder(tmp_path)
    (found / "time").mkdir()
    (found / "time" / "warm.json").write_text(json.dumps({"evaluation": evaluation("warm", 8).to_dict()}))
    results.keep([found], "h200")
    kept = results.read_evaluations(tmp_path / "kept" / "h200")
    assert all(t.outcomes[0].correct for t in kept["warm"].tasks)


def test_the_section_replaces_the_one_before(
    results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "training.md"
    page.write_text("# Training\n\nBefore.\n")
    arguments = [
        "grpo_results.py",
        str(folder(tmp_path)),
        "--name",
        "h200",
        "--page",
        str(page),
        "--pictures",
        str(tmp_path),
    ]
    monkeypatch.setattr("sys.argv", arguments)
    results.main()
    once = page.read_text()
    assert once.startswith("# Training\n\nBefore.\n\n" + results.BEGIN.format("h200"))
    results.main()
    assert page.read_text() == once
    # Another run has a section of its own.
    arguments[3] = "later"
    results.main()
    assert page.read_text().startswith(once.rstrip() + "\n\n" + results.BEGIN.format("later"))
    both = page.read_text()
    arguments[3] = "h200"
    results.main()
    assert page.read_text() == both
    for what in ("reward", "correct"):
        picture = (tmp_path / results.picture_name("h200", what)).read_text()
        assert picture.count("<polyline") == 2


def test_conditions_are_compared_at_the_steps_that_both_have(results: ModuleType) -> None:
    both = [{"step": n, "correct@turn1": 0.5} for n in range(1, 5)]
    alone = [{"step": n, "correct@turn1": 0.5 + 0.1 * (n > 2)} for n in range(1, 9)]
    told = " ".join(results.on_the_same_tasks({"both": both, "verifiable": alone}))
    assert "`both` less `verifiable`, -5.0 points over the 4 steps that both have (-10.0 over the second half" in told
    assert "higher in 0, lower in 2" in told


def test_a_run_without_evaluations_is_told(results: ModuleType, tmp_path: Path) -> None:
    found = folder(tmp_path)
    for path in found.glob("*/*.json"):
        path.unlink()
    results.keep([found], "h200")
    text = results.section(results.read_runs(tmp_path / "kept" / "h200"), {}, {}, "h200")
    assert "Share of a step's time" in text
    assert "pass@1" not in text


def test_untimed_evaluations_have_no_speeds(results: ModuleType) -> None:
    warm = evaluation("warm", 4)
    tasks = tuple(replace(t, outcomes=tuple(replace(o, speedups={}) for o in t.outcomes)) for t in warm.tasks)
    text = "\n".join(results.worth({"warm": replace(warm, tasks=tasks)}))
    assert "| – | 0 |" in text
