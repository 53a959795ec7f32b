"""Choosers among a policy's answers: a score that knows beats chance, one that does not, does not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.structural import Layer, Ranker
from training.dataset.sampled import Candidate
from training.rerank import BEST, OWN, RANDOM, Group, RerankConfig, groups, reranking_markdown, study

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
    assert result.choosers[OWN].value is result.choosers[OWN].speed is result.beaten["value"] is None
    assert "| score | " in reranking_markdown(result)
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
