"""The ranker: inference against a plain computation, and every way in which an artefact can be broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER, Features
from cudaperf_agent.reward.structural import Layer, Ranker, load_ranker, save_ranker

COUNT = len(ORDER)


def make(kind: str = "mlp", seed: int = 0) -> Ranker:
    draw = np.random.default_rng(seed)
    sizes = [(64, COUNT), (32, 64), (1, 32)] if kind == "mlp" else [(1, COUNT)]
    layers = tuple(
        Layer(draw.normal(size=s), draw.normal(size=s[0]) if kind == "mlp" else np.zeros(s[0])) for s in sizes
    )
    return Ranker(kind, ORDER, draw.normal(size=COUNT), draw.uniform(0.5, 2, size=COUNT), 1.7, 3.0, layers, "d" * 64)


def vector(seed: int) -> dict[str, float]:
    return dict(zip(ORDER, np.random.default_rng(seed).normal(size=COUNT).tolist(), strict=True))


def by_hand(ranker: Ranker, values: dict[str, float]) -> float:
    hidden = []
    for at, name in enumerate(ranker.order):
        normal = (values[name] - ranker.mean[at]) / ranker.deviation[at]
        hidden.append(min(max(normal, -3.0), 3.0))
    for depth, layer in enumerate(ranker.layers):
        out = [
            sum(w * h for w, h in zip(row, hidden, strict=True)) + b
            for row, b in zip(layer.weight, layer.bias, strict=True)
        ]
        hidden = out if depth == len(ranker.layers) - 1 else [max(o, 0.0) for o in out]
    return float(hidden[0] / ranker.scale)


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_a_saved_ranker_scores_as_computed_by_hand(tmp_path: Path, kind: str) -> None:
    ranker = make(kind)
    save_ranker(ranker, tmp_path)
    loaded = load_ranker(tmp_path)
    assert (loaded.kind, loaded.order, loaded.data_digest) == (kind, ORDER, "d" * 64)
    assert len(loaded.digest) == 64
    for seed in range(5):
        assert loaded.score(Features(vector(seed))) == pytest.approx(by_hand(ranker, vector(seed)))


def test_normalised_features_are_clipped_to_three() -> None:
    ranker = make("linear")
    far = dict.fromkeys(ORDER, 1e9)
    near = {name: float(m + 3 * d) for name, m, d in zip(ORDER, ranker.mean, ranker.deviation, strict=True)}
    assert ranker.score(far) == pytest.approx(ranker.score(near))


def test_the_layout_is_that_of_safetensors_in_single_precision_too(tmp_path: Path) -> None:
    ranker = make("linear")
    save_ranker(ranker, tmp_path)
    raw = ranker.layers[0].weight.astype("<f4").tobytes()
    header = json.dumps(
        {"__metadata__": {"a": "b"}, "w0": {"dtype": "F32", "shape": [1, COUNT], "data_offsets": [0, len(raw)]}}
    ).encode()
    (tmp_path / "ranker.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + raw)
    assert load_ranker(tmp_path).score(vector(1)) == pytest.approx(ranker.score(vector(1)), rel=1e-5)


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "ranker.json"
    card = json.loads(path.read_text())
    change(card)
    path.write_text(json.dumps(card))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.pop("mean"), "lacks mean"),
        (lambda c: c.update(format=2), "format 2"),
        (lambda c: c.update(kind="tree"), "'tree'"),
        (lambda c: c.update(features=["coal"]), "other features"),
        (lambda c: c.update(features=list(reversed(ORDER))), "other features"),
        (lambda c: c.update(mean=[0.0]), "mean"),
        (lambda c: c.update(mean=["x"] * COUNT), "mean"),
        (lambda c: c.update(deviation=[0.0] * COUNT), "deviation"),
        (lambda c: c.update(scale=0), "scale"),
        (lambda c: c.update(clip=-1), "clip"),
    ],
)
def test_a_broken_card_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str) -> None:
    save_ranker(make(), tmp_path)
    edit(tmp_path, change)
    with pytest.raises(ConfigError, match=says) as caught:
        load_ranker(tmp_path)
    assert caught.value.where is not None
    assert "ranker.json" in caught.value.where
    assert caught.value.hint


def test_missing_cut_and_nonsense_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_ranker(tmp_path)
    save_ranker(make(), tmp_path)
    weights = tmp_path / "ranker.safetensors"
    good = weights.read_bytes()
    for bad in (b"", good[:4], good[:100], good[:-8], b"\xff" * 64, (2).to_bytes(8, "little") + b"[]"):
        weights.write_bytes(bad)
        with pytest.raises(ConfigError, match="weights"):
            load_ranker(tmp_path)
    weights.write_bytes(good)
    (tmp_path / "ranker.json").write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        load_ranker(tmp_path)


def test_shapes_that_do_not_follow_and_values_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    good = make()
    narrow = (good.layers[0], Layer(np.zeros((32, 60)), np.zeros(32)), good.layers[2])
    wide = (*good.layers[:2], Layer(np.zeros((2, 32)), np.zeros(2)))
    nan = (*good.layers[:2], Layer(np.full((1, 32), np.nan), np.zeros(1)))
    for layers, says in ((narrow, "shapes"), (wide, "2 scores"), (nan, "not finite"), (good.layers[:2], "lack w2")):
        save_ranker(Ranker("mlp", ORDER, good.mean, good.deviation, 1.0, 3.0, tuple(layers), "d"), tmp_path)
        with pytest.raises(ConfigError, match=says):
            load_ranker(tmp_path)


def test_no_heavy_library_is_needed() -> None:
    import subprocess
    import sys

    code = (
        "import sys, cudaperf_agent.reward.composite, cudaperf_agent.reward.structural\n"
        "print('torch' in sys.modules, 'clang' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
