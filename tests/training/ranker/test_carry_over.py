"""Two sets compared: what varies in one alone, what changes its sign, and what is far from what was learned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_data import synthetic
from test_ranker_commands import parquet

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from training.carry_over import CarryConfig, compare_sets, comparison_markdown
from training.ranker import TrainConfig
from training.structures import structures, structures_markdown

CONFIG = CarryConfig(train=TrainConfig(kind="linear"))
OCC, COAL, KERNELS, OPS = (ORDER.index(n) for n in ("occ", "coal", "kernels", "ops"))


def test_what_differs_is_said_by_feature() -> None:
    training, other = synthetic(families=10, tasks=2), synthetic(families=12, tasks=2, seed=5)
    phi = other.phi.copy()
    phi[:, OCC] = 0.5 - phi[:, OCC]  # its sign is another there
    phi[:, KERNELS] = np.arange(len(other)) % 3
    phi[:, OPS] += 1000
    result = compare_sets(training, replace(other, phi=phi), CONFIG)
    by_name = {f.name: f for f in result.features}
    assert (by_name["kernels"].varies, by_name["kernels"].varies_there) == (0, 1)
    assert by_name["kernels"].rho is None
    assert by_name["kernels"].rho_there is not None
    occ, coal = by_name["occ"], by_name["coal"]
    assert occ.rho is not None
    assert occ.rho_there is not None
    assert occ.rho.low > 0 > occ.rho_there.high
    assert occ.held.value > 0 > coal.held.value  # without the one the order is better, without the other worse
    assert by_name["ops"].clipped == 1
    assert result.far == 1
    assert result.apart == 4 < result.apart_there
    text = comparison_markdown(result)
    assert text.count("\n| ") == len(ORDER) + 1
    assert "100% of the kernels by hand are farther" in text


def test_a_set_like_the_other_is_not_far() -> None:
    training = synthetic(families=6, tasks=2)
    result = compare_sets(training, synthetic(families=4, tasks=3, seed=5), CONFIG)
    assert result.far < 0.3
    assert result.rho.value > 0.8
    flat = replace(training, gain=np.zeros(len(training)))
    with pytest.raises(ConfigError, match="enough timed kernels"):
        compare_sets(training, flat, CONFIG)


def test_structures_are_counted() -> None:
    plain = {"source": "__global__ void k() {}", "kernels": 1.0}
    rich = {
        "source": "__global__ void __launch_bounds__(64) k(const float4 *__restrict__ p)\n{\n    __shared__ int s[4];\n"
        "    float mine[4];\n    __syncthreads();\n}",
        "kernels": 3.0,
    }
    found = structures([plain, rich])
    has = {"two launches or more", "three launches or more", "shared memory", "barriers of a block", "vector types",
           "arrays of a thread", "launch bounds", "`__restrict__`"}  # fmt: skip
    assert {name for name, share in found.items() if share == 0.5} == has
    assert all(share in (0, 0.5) for share in found.values())
    assert "| shared memory | 0.00 | 1.00 |" in structures_markdown({"a": [plain], "b": [rich]})
    with pytest.raises(ConfigError, match="no sources"):
        structures([])


def test_the_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = parquet(synthetic(families=6, tasks=2), tmp_path / "variants.parquet")
    parquet(synthetic(families=2, tasks=3, seed=5), tmp_path / "transfer.parquet")
    assert main(["ranker", "compare", "--data", str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [f["name"] for f in report["features"]] == list(ORDER)
    assert report["rows_there"] == 60
    assert report["structures"]["families"]["two launches or more"] == 0
    assert main(["ranker", "compare", "--data", str(data)]) == 0
    assert capsys.readouterr().out.startswith("Two variants of a task differ in")
