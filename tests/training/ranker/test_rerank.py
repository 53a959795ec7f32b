"""Choosers among a policy's answers: a score that knows beats chance, one that does not, does not."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.structural import Layer, Ranker
from training.answer_groups import OWN, Group, RerankConfig, groups
from training.dataset.sampled import Candidate, read_candidates
from training.rerank import BEST, RANDOM, reranking_markdown, study
from training.score_drift import drift_markdown, score_drift

CONFIG = RerankConfig(shuffles=200)
SOURCE = """__global__ void k(int n, const float *x, float *y) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x)%s;
  if (i < n) y[i] = x[i];
}
extern "C" int copy_device(int n, const float *x, float *y, cudaStream_t s) {
  k<<<(n + 255) / 256, 256, 0, s>>>(n, x, y);
  return cudaGetLastError();
}
"""


def made(number: int, knows: float, seed: int = 0) -> Group:
    """Sixteen answers, a quarter wrong; the score is `knows` times what is asked, and noise."""
    rng = np.random.default_rng(1000 * seed + number)
    correct = rng.random(16) > 0.25
    correct[0] = True
    speed = np.where(correct, rng.normal(0, 1, 16), np.nan)
    value = np.where(correct, np.maximum(np.nan_to_num(speed), 0), 0.0)
    own = knows * (np.nan_to_num(speed) + 2 * correct) + rng.normal(0, 1, 16)
    return Group(f"f{number // 2}/{number % 2}", f"f{number // 2}", correct, value, speed, {OWN: own})


def test_a_score_that_knows_beats_chance_and_its_shuffles() -> None:
    result = study([made(i, 3.0) for i in range(24)], CONFIG)
    for measure in ("correct", "value", "speed"):
        apart = getattr(result.differences[RANDOM], measure)
        assert apart.low > 0, measure
        assert getattr(result.choosers[BEST], measure).value >= getattr(result.choosers[OWN], measure).value
        assert result.beaten[measure] == pytest.approx(1 / 201)
    assert result.choosers[RANDOM].speed is not None
    assert result.choosers[RANDOM].speed.value == pytest.approx(0, abs=1e-12)
    assert (result.tasks, result.families, result.answers) == (24, 12, 24 * 16)


def test_a_score_that_knows_nothing_is_chance() -> None:
    result = study([made(i, 0.0, seed=3) for i in range(24)], CONFIG)
    for measure in ("correct", "value", "speed"):
        apart = getattr(result.differences[RANDOM], measure)
        assert apart.low < 0 < apart.high, measure
        assert (result.beaten[measure] or 0) > 0.025


def test_without_times_only_correctness_is_told() -> None:
    untimed = [made(i, 1.0) for i in range(6)]
    for group in untimed:
        group.speed[:] = np.nan
        group.value[group.correct] = np.nan
    result = study(untimed, CONFIG)
    assert result.choosers[OWN].correct is not None
    assert result.choosers[RANDOM].order is not None
    assert result.choosers[OWN].value is result.choosers[OWN].speed is result.beaten["value"] is None
    assert "| score | " in reranking_markdown(result)
    for group in untimed[:2]:  # what is wrong throughout gives a speed of 0, but says so only beside times
        group.correct[:] = False
        group.value[:] = 0.0
    assert study(untimed, CONFIG).choosers[OWN].value is None
    with pytest.raises(ConfigError, match="answers with code"):
        study([], CONFIG)


def answers() -> list[Candidate]:
    """Six answers to a task, the k-th of stride k and k times 10 µs, the last wrong; and what does not count."""
    texts = [SOURCE % f" * {k}" for k in range(1, 7)]
    times = [1e-5 * k for k in range(1, 7)]
    rows = [
        Candidate(task="c/0", source=t, status="correct" if k < 5 else "wrong", seconds=s, naive=2e-5, phase="sampled",
                  trajectory=k)
        for k, (t, s) in enumerate(zip(texts, times, strict=True))
    ]  # fmt: skip
    rows.append(Candidate(task="c/0", source=None, status="no_code", phase="sampled", trajectory=6))
    rows.append(Candidate(task="c/0", source=texts[0], status="wrong", phase="sampled", turn=1))
    rows.append(Candidate(task="c/0", source=texts[0], status="wrong", phase="greedy"))
    return [*rows, Candidate(task="d/0", source=texts[0], status="correct", phase="sampled")]


def by_coalescing() -> Ranker:
    weight = np.zeros((1, len(ORDER)))
    weight[0, ORDER.index("coal")] = 1.0
    zeros, ones = np.zeros(len(ORDER)), np.ones(len(ORDER))
    return Ranker("linear", ORDER, zeros, ones, 1.0, 3.0, (Layer(weight, np.zeros(1)),), "0" * 64)


def test_answers_become_groups() -> None:
    (group,) = groups(answers(), by_coalescing())
    assert (group.task, group.family) == ("c/0", "c")
    assert group.correct.tolist() == [True] * 5 + [False]
    np.testing.assert_allclose(group.speed[:5], np.log2(2 / np.arange(1, 6)))
    np.testing.assert_allclose(group.value, [1, 0, 0, 0, 0, 0])
    assert np.isnan(group.speed[5])
    assert group.scores[OWN].argmax() == 0
    assert len(groups(answers(), by_coalescing(), config=RerankConfig(fewest=1))) == 2
    assert groups(answers(), by_coalescing(), config=RerankConfig(of=3)) == []
    (alone,) = groups([c.model_copy(update={"naive": None}) for c in answers()], by_coalescing(), {"c/0": 1e-5})
    np.testing.assert_allclose(alone.speed[:5], -np.log2(np.arange(1, 6)))


def test_the_command_prints_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [c.model_copy(update={"task": f"{f}/{m}"}) for f in "abcdef" for m in (0, 1) for c in answers()[:7]]
    path = tmp_path / "times.jsonl"
    path.write_text("".join(c.model_dump_json() + "\n" for c in rows))
    assert main(["ranker", "rerank", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("72 answers with code to 12 tasks of 6 families, 60 of them correct and timed")
    assert "| shuffled scores do as well (share) |" in text
    assert main(["ranker", "rerank", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["choosers"][OWN]["correct"]["value"] == 1
    path.write_text(rows[0].model_dump_json() + "\n")
    assert main(["ranker", "rerank", str(path)]) == EXIT_USAGE


def test_right_ahead_of_wrong_is_asked_of_all_answers() -> None:
    correct = np.array([True, True, False, False])
    group = Group("f/0", "f", correct, np.full(4, np.nan), np.full(4, np.nan), {OWN: np.array([3.0, 1.0, 1.0, 0.0])})
    sure = Group("g/0", "g", correct, np.full(4, np.nan), np.full(4, np.nan), {OWN: np.array([3.0, 2.0, 1.0, 0.0])})
    useless = Group("h/0", "h", ~correct | correct, np.zeros(4), np.full(4, np.nan), {OWN: np.arange(4.0)})
    result = study([group, *(replace(sure, task=f"g/{n}", family=f"g{n}") for n in range(4)), useless], CONFIG)
    own, apart = result.choosers[OWN].order, result.differences[RANDOM].order
    chance = result.choosers[RANDOM].order
    assert own is not None
    assert apart is not None
    assert chance is not None
    assert own.value == pytest.approx((3.5 / 4 + 4) / 5)  # a tie counts half; what has no wrong answer says nothing
    assert (apart.value, apart.low, apart.high) == pytest.approx((own.value - 0.5, own.low - 0.5, own.high - 0.5))
    assert chance.value == 0.5
    assert (result.telling["order"], result.telling["correct"], result.telling["value"]) == (5, 5, 0)


def test_repeated_answers_are_no_further_witnesses() -> None:
    def told(repeats: int, kind: bool) -> float:
        found = []
        for number in range(3):
            right = np.repeat([True, False], repeats)
            nan = np.full(right.size, np.nan)
            kinds = np.repeat(np.array([0, 1]), repeats) if kind else None
            found.append(Group(f"f{number}/0", f"f{number}", right, nan, nan, {OWN: right * 1.0}, kinds))
        return study(found, RerankConfig(shuffles=4000)).beaten["order"] or 0.0

    # Of each task two kernels, of which the right one is ahead: by chance in one of eight shuffles.
    assert told(1, kind=False) == pytest.approx(1 / 8, abs=0.02)
    assert told(6, kind=True) == pytest.approx(1 / 8, abs=0.02)
    assert told(6, kind=False) < 0.01


def test_phases_are_chosen_put_together_and_freed_of_repeats() -> None:
    texts = [SOURCE % f" * {k}" for k in range(1, 5)]
    rows = [Candidate(task="c/0", source=t, status="correct", phase="a/step-1") for t in texts]
    timed = {"task": "c/0", "status": "correct", "phase": "b/step-1", "seconds": 1e-5, "naive": 2e-5}
    rows += [Candidate(source=f"// again\n{t}", **timed) for t in texts[:3]]
    rows.append(Candidate(task="c/0", source="int x", status="compile_error", phase="b/step-1"))

    def sizes(**more: Any) -> list[tuple[int, int]]:
        found = groups(rows, by_coalescing(), config=RerankConfig(**more))
        return [(g.correct.size, int(np.isfinite(g.speed).sum())) for g in found]

    assert sizes() == [(4, 0)]
    assert sizes(phases=("b/*",)) == [(4, 3)]
    assert sizes(phases=("b/*",), compiled=True) == []
    assert sizes(phases=("b/*",), compiled=True, fewest=3) == [(3, 3)]
    assert sizes(together=True) == [(8, 3)]
    assert sizes(together=True, of=2, fewest=2) == [(4, 2)]  # of each phase
    assert sizes(together=True, distinct=True) == [(5, 3)]  # the timed one of two
    with pytest.raises(ConfigError, match=r"no first answer is of c/\*") as error:
        sizes(phases=("c/*",))
    assert error.value.hint == "phases: a/step-1, b/step-1"


def test_equal_choices_get_no_wild_interval() -> None:
    """What differs by rounding alone is the same, so that a studentised interval does not divide by it."""
    found = []
    for number in range(12):
        speed = np.full(5, 0.1 * number)
        if number < 2:
            speed[0] += 1.0
        correct = np.ones(5, dtype=np.bool_)
        own = np.zeros(5)
        found.append(Group(f"f{number}/0", f"f{number}", correct, np.maximum(speed, 0), speed, {OWN: own}))
    interval = study(found, CONFIG).choosers[OWN].speed
    assert interval is not None
    assert (interval.low, interval.high) == (0, 0)


def drifted(number: int, score: float, right: float, speed: float) -> Group:
    rng = np.random.default_rng(number)
    correct = rng.random(16) < right
    times = np.where(correct, speed + rng.normal(0, 0.1, 16), np.nan)
    value = np.where(correct, np.maximum(np.nan_to_num(times), 0), 0.0)
    scores = {OWN: score + rng.normal(0, 0.2, 16)}
    return Group(f"f{number}/0", f"f{number}", correct, value, times, scores)


def test_a_policy_that_pleases_the_score_alone_is_seen() -> None:
    pleasing = [drifted(n, 1.0, 0.5, 0.0) for n in range(12)]
    honest = [drifted(100 + n, 0.0, 0.8, 0.5) for n in range(12)]
    honest = [replace(g, task=p.task, family=p.family) for g, p in zip(honest, pleasing, strict=True)]
    drift = score_drift(pleasing, [*honest[1:], drifted(99, 5.0, 1.0, 9.0)])
    assert (drift.tasks, drift.families) == (11, 11)
    measures = {name: m for name, m in drift.measures.items() if m is not None}
    assert measures["score"].difference.low > 0.5
    assert measures["score of the correct"].difference.low > 0.5
    assert measures["correct"].difference.high < 0
    assert measures["log2 speed of the correct"].difference.value == pytest.approx(-0.5, abs=0.1)
    assert "| correct | 0." in drift_markdown(drift, "ours", "theirs")
    untimed = [replace(g, speed=np.full(16, np.nan)) for g in pleasing]
    assert score_drift(untimed, honest).measures["log2 speed of the correct"] is None
    with pytest.raises(ConfigError, match="no task in common"):
        score_drift(pleasing, [drifted(99, 0, 1, 0)])


def test_the_command_compares_two_phases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [c.model_copy(update={"task": f"{f}/0", "phase": p, "status": "correct" if p == "x" else "wrong"})
            for f in "abcdef" for p in "xy" for c in answers()[:5]]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(c.model_dump_json() + "\n" for c in rows))
    assert main(["ranker", "rerank", str(path), "--phase", "x", "--against", "y"]) == 0
    assert "| correct | 1.00 [" in capsys.readouterr().out
    assert main(["ranker", "rerank", str(path), "--phase", "x", "--against", "y", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["measures"]
    assert (found["score"]["difference"]["value"], found["correct"]["difference"]["value"]) == (0, 1)
    assert main(["ranker", "rerank", str(path), "--against", "y"]) == EXIT_USAGE
    assert "name that one with --phase" in capsys.readouterr().err


def test_answers_that_cannot_be_read_are_told_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = gzip.compress(b"\n" * 999)
    places = {
        "absent.jsonl": (None, "no such file or directory", "Check the name."),
        "plain.jsonl.gz": (b"{}", "no gzip file", "take the suffix .gz off"),
        "cut.jsonl.gz": (whole[:-9], "not a whole one", "copy it again"),
        "broken.jsonl.gz": (whole[:10] + b"\xff" * 9, "no gzip file", "copy it again"),
        "latin.jsonl": (b"\xe9", "not UTF-8 text", "one JSON object a line"),
        "empty.jsonl": (b"{}", "task Field required", "cudaperf dataset sampled"),
    }
    for name, (raw, told, remedy) in places.items():
        path = tmp_path / name
        if raw is not None:
            path.write_bytes(raw)
        assert main(["ranker", "rerank", str(path)]) == EXIT_USAGE
        shown = capsys.readouterr().err
        assert f"error: {path}:" in shown
        assert told in shown
        assert remedy in shown
        assert "Errno" not in shown
    assert main(["ranker", "rerank", str(tmp_path)]) == EXIT_USAGE
    assert "is a directory\n  This is a folder: name a file in it." in capsys.readouterr().err


def test_the_kept_answers_of_policies_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    kept = Path(__file__).parents[3] / "benchmarks" / "policy_kernels"
    runs = [c for c in read_candidates(kept / "runs.jsonl.gz") if c.turn == 0]
    assert [sum(c.phase == f"{name}/step-7" for c in runs) for name in ("both", "uncentred", "verifiable")] == [128] * 3
    assert main(["ranker", "rerank", str(kept / "evaluations.jsonl.gz"), "--phase", "warm"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("511 answers with code to 103 tasks of 77 families, 278 of them correct and timed")
