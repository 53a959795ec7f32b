"""A ranker tested on kernels of another origin: what it learns carries over; families of the test are not learned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_data import synthetic
from test_ranker_commands import parquet

import training.transfer_eval as module
from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from training.dataset.sampled import sampled_table
from training.dataset.table import Table
from training.rank_measures import Scores
from training.ranker import TrainConfig
from training.ranker_eval import EvalConfig
from training.transfer_eval import evaluate_transfer, transfer_markdown

CONFIG = EvalConfig(folds=3, train=TrainConfig(kind="linear"))
PLAIN = """__global__ void k(int n, const float *x, float *y) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x)%s;
  if (i < n) y[i] = x[i];
}
extern "C" int copy_device(int n, const float *x, float *y, cudaStream_t s) {
  k<<<(n + 255) / 256, 256, 0, s>>>(n, x, y);
  return cudaGetLastError();
}
"""


def other(table: Table) -> Table:
    """The same table as tasks of other names, a family each."""
    return replace(
        table, task=np.char.add("hand_", table.task), family=np.char.add("hand_", table.task),
        strategy=np.array([str(i) for i in range(len(table))]),
    )  # fmt: skip


def test_what_was_learned_orders_kernels_of_another_origin_and_controls_do_not() -> None:
    training, test = synthetic(families=6, tasks=2), other(synthetic(families=4, tasks=3, seed=5))
    report = evaluate_transfer(training, test, CONFIG)
    ranker, inverted = report.scorers["ranker"], report.scorers["labels inverted"]
    assert ranker.rho is not None
    assert inverted.rho is not None
    assert ranker.rho.value > 0.8
    assert inverted.rho.value < -0.8
    assert ranker.rho.units == report.families == 12  # clustered by task
    assert report.folds == 1
    assert report.scorers["strategy lookup"].rho is not None
    assert report.scorers["strategy lookup"].rho.value == 0  # no label is known
    assert ranker.within_strategy is None
    text = transfer_markdown(report, training, "hand-written tasks")
    assert text.startswith("120 kernels of 12 hand-written tasks, scored by what was trained on 120 variants")
    assert "unseen strategies" not in text


def test_families_of_the_test_set_are_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    training = synthetic(families=6, tasks=2)
    shared = synthetic(families=4, tasks=2, seed=9)  # f00 to f03, which the training table has, too
    seen: list[tuple[set[str], set[str]]] = []

    def spy(learned: Table, scored: Table) -> Scores:
        seen.append((set(learned.family), set(scored.family)))
        return np.asarray(scored.phi.sum(1))

    monkeypatch.setattr(module, "scorers", lambda config: {"ranker": spy, "other": spy})
    evaluate_transfer(training, shared, CONFIG)
    assert len(seen) == 6  # two scorers, three folds
    assert all(not learned & scored for learned, scored in seen)
    assert set().union(*(scored for _, scored in seen)) == {"f00", "f01", "f02", "f03"}


def test_a_test_set_without_differences_or_with_every_family_is_refused() -> None:
    training = synthetic(families=3, tasks=2)
    flat = other(replace(training, gain=np.zeros(len(training))))
    with pytest.raises(ConfigError, match="differ in speed"):
        evaluate_transfer(training, flat, CONFIG)
    with pytest.raises(ConfigError, match="nearly all families"):
        evaluate_transfer(synthetic(families=2, tasks=2), synthetic(families=2, tasks=2, seed=3), CONFIG)


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def sampled(task: str = "axpy_shift/0") -> list[dict[str, Any]]:
    """Six distinct kernels of a task, the k-th of stride k takes k times 10 µs."""
    return [{"task": task, "source": PLAIN % f" * {k}", "status": "correct", "seconds": 1e-5 * k} for k in range(1, 7)]


def test_sampled_kernels_become_rows_with_features_and_gains(tmp_path: Path) -> None:
    rows = sampled()
    noise = [{**rows[0], "seconds": 1.0}, {**rows[1], "status": "wrong"}, {**rows[1], "source": "x", "seconds": None}]
    path = lines(tmp_path / "sampled.jsonl", [*rows, *noise])
    table = sampled_table(path, {"axpy_shift/0": 2e-5})
    assert len(table) == 6  # the second text of the same kernel, the wrong and the untimed one are left out
    np.testing.assert_allclose(table.gain, np.log2(2 / np.arange(1, 7)))
    assert set(table.family) == {"axpy_shift"}
    assert np.unique(table.phi, axis=0).shape[0] > 1
    alone: Mapping[str, float] = {}
    np.testing.assert_allclose(sampled_table(path, alone).gain, np.log2(3.5 / np.arange(1, 7)))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}\n", ":1"), ('\n{"task": "a", "source": "", "status": "correct", "seconds": -1}\n', ":2: .*seconds"),
     ('{"task": "a", "source": "", "status": "wrong"}\n', "correct and timed")],
)  # fmt: skip
def test_a_bad_file_of_sampled_kernels_is_said_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        sampled_table(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        sampled_table(tmp_path / "none.jsonl")


def test_the_command_tests_on_either_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = parquet(synthetic(families=6, tasks=2), tmp_path / "variants.parquet")
    command = ["ranker", "eval", "--data", str(data), "--kind", "linear"]
    assert main([*command, "--transfer"]) == EXIT_USAGE
    assert "transfer.parquet" in capsys.readouterr().err
    parquet(other(synthetic(families=2, tasks=3, seed=5)), tmp_path / "transfer.parquet")
    assert main([*command, "--transfer", "--json", "--svg", str(tmp_path / "a.svg")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 60
    assert report["scorers"]["ranker"]["rho"]["value"] > 0.8
    assert (tmp_path / "a.svg").read_text().count("<circle") >= 60
    file = lines(tmp_path / "sampled.jsonl", sampled("one/0") + sampled("two/0"))
    assert main([*command, "--sampled", str(file)]) == 0
    assert capsys.readouterr().out.startswith("12 kernels of 2 families, scored by what was trained on 120 variants")
    assert main([*command, "--sampled", str(file), "--transfer"]) == EXIT_USAGE
