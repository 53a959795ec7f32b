"""The structural reward's ranker: inference of a small network from a versioned artefact, with numpy alone.

An artefact is a folder of two files. ``ranker.json`` holds ``format`` (1), ``kind`` (``mlp`` or ``linear``),
``features`` (names in order), ``mean`` and ``deviation`` (μ and σ of the training split), ``scale`` (pooled within-task
standard deviation of raw scores on the validation split), ``clip`` (of φ̂) and ``data_digest`` (SHA-256 of the training
data). ``ranker.safetensors`` holds float32 or float64 tensors: ``w0 b0 w1 b1 w2 b2`` of an 11-64-32-1 ReLU network,
each ``w`` of shape (outputs, inputs), or ``w0`` of shape (1, 11) for the linear form wᵀ(φ − μ)/σ, which needs no bias.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER, Features

FORMAT = 1
_CARD, _WEIGHTS = "ranker.json", "ranker.safetensors"
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_LAYERS = {"mlp": 3, "linear": 1}
_HEADER_LIMIT = 1 << 20
_RETRAIN = "train it again, or take the artefact that ships with this version"


@dataclass(frozen=True, slots=True)
class Layer:
    """One affine layer: `weight` of shape (outputs, inputs), `bias` of shape (outputs,)."""

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranker:
    """s_ψ(φ̂), standardised: larger is predicted faster within one task; differences of tasks mean nothing.

    Attributes:
        kind: ``mlp`` or ``linear``.
        order: Names of the features.
        mean, deviation: μ and σ, shape (features,).
        scale: What raw scores are divided by.
        clip: φ̂ is clipped to ± this.
        layers: Affine layers with ReLU between them.
        data_digest: SHA-256 of the training data.
        digest: Identity of this artefact, for the store.
    """

    kind: str
    order: tuple[str, ...]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    scale: float
    clip: float
    layers: tuple[Layer, ...]
    data_digest: str
    digest: str = ""

    def score(self, features: Features | Mapping[str, float]) -> float:
        """The standardised score of one candidate."""
        values = features.values if isinstance(features, Features) else features
        return float(self.scores(np.array([[values[name] for name in self.order]], dtype=np.float64))[0])

    def scores(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised scores of vectors of shape (candidates, features), shape (candidates,)."""
        hidden = np.clip((vectors - self.mean) / self.deviation, -self.clip, self.clip)
        for at, layer in enumerate(self.layers):
            hidden = hidden @ layer.weight.T + layer.bias
            if at < len(self.layers) - 1:
                hidden = np.maximum(hidden, 0.0)
        result: NDArray[np.float64] = hidden[:, 0] / self.scale
        return result


SHIPPED = Path(__file__).with_name("ranker")
"""The ranker that comes with the package; how it was made and how good it is: ``docs/ranker.md``."""


@cache
def shipped_ranker() -> Ranker:
    """The ranker that comes with the package.

    Raises:
        ConfigError: The installation lacks it, or holds another's file.
    """
    return load_ranker(SHIPPED)


def load_ranker(folder: Path) -> Ranker:
    """Load an artefact.

    Raises:
        ConfigError: A file is missing or broken, or the artefact is of another format or other features.
    """
    import hashlib

    card_path, weights_path = folder / _CARD, folder / _WEIGHTS
    try:
        card_bytes, weight_bytes = card_path.read_bytes(), weights_path.read_bytes()
    except OSError as failure:
        raise ConfigError(
            "the ranker cannot be read",
            where=str(failure.filename or folder),
            hint=f"a ranker is {_CARD} and {_WEIGHTS}",
        ) from failure
    card = _read_card(card_bytes, card_path)
    order = tuple(card["features"])
    layers = _layers(_read_tensors(weight_bytes, weights_path), str(card["kind"]), len(order), weights_path)
    return Ranker(
        kind=str(card["kind"]),
        order=order,
        mean=_vector(card["mean"], len(order), "mean", card_path),
        deviation=_positive(_vector(card["deviation"], len(order), "deviation", card_path), "deviation", card_path),
        scale=float(_positive(np.array([card["scale"]], dtype=np.float64), "scale", card_path)[0]),
        clip=float(_positive(np.array([card["clip"]], dtype=np.float64), "clip", card_path)[0]),
        layers=layers,
        data_digest=str(card["data_digest"]),
        digest=hashlib.sha256(card_bytes + weight_bytes).hexdigest(),
    )


def save_ranker(ranker: Ranker, folder: Path) -> None:
    """Write an artefact that `load_ranker` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    card = {
        "format": FORMAT,
        "kind": ranker.kind,
        "features": list(ranker.order),
        "mean": ranker.mean.tolist(),
        "deviation": ranker.deviation.tolist(),
        "scale": ranker.scale,
        "clip": ranker.clip,
        "data_digest": ranker.data_digest,
    }
    tensors: dict[str, NDArray[np.float64]] = {}
    for at, layer in enumerate(ranker.layers):
        tensors[f"w{at}"] = layer.weight
        if ranker.kind == "mlp":
            tensors[f"b{at}"] = layer.bias
    header: dict[str, Any] = {}
    body = b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor, dtype="<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / _CARD).write_text(json.dumps(card, indent=1) + "\n")
    (folder / _WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + body)


def _read_card(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        card = json.loads(raw)
    except ValueError as failure:
        raise ConfigError(f"the ranker's card is not JSON: {failure}", where=str(path), hint=_RETRAIN) from failure
    needed = {"format", "kind", "features", "mean", "deviation", "scale", "clip", "data_digest"}
    missing = sorted(needed - card.keys()) if isinstance(card, dict) else sorted(needed)
    if missing:
        raise ConfigError(f"the ranker's card lacks {', '.join(missing)}", where=str(path), hint=_RETRAIN)
    if card["format"] != FORMAT:
        raise ConfigError(
            f"the ranker is of format {card['format']}, this version reads {FORMAT}", where=str(path), hint=_RETRAIN
        )
    if card["kind"] not in _LAYERS:
        raise ConfigError(f"the ranker's kind is {card['kind']!r}, not mlp or linear", where=str(path), hint=_RETRAIN)
    names = card["features"]
    if not isinstance(names, list) or tuple(names) != ORDER:
        raise ConfigError(
            f"the ranker was trained on other features: {names}", where=str(path), hint=f"expected {', '.join(ORDER)}"
        )
    return dict(card)


def _read_tensors(raw: bytes, path: Path) -> dict[str, NDArray[np.float64]]:
    """Tensors of a safetensors file (its documented layout: u64 header length, JSON header, data)."""
    try:
        length = int.from_bytes(raw[:8], "little")
        if len(raw) < 8 or length > min(len(raw) - 8, _HEADER_LIMIT):
            raise ValueError("its header is cut off")
        header = json.loads(raw[8 : 8 + length])
        body = raw[8 + length :]
        found = {}
        for name, about in header.items():
            if name == "__metadata__":
                continue
            start, end = about["data_offsets"]
            dtype = _DTYPES[about["dtype"]]
            shape = tuple(int(n) for n in about["shape"])
            if not 0 <= start <= end <= len(body) or end - start != dtype.itemsize * int(
                np.prod(shape, dtype=np.int64)
            ):
                raise ValueError(f"tensor {name} is cut off")
            found[name] = np.frombuffer(body[start:end], dtype=dtype).reshape(shape).astype(np.float64)
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise ConfigError(f"the ranker's weights are broken: {failure}", where=str(path), hint=_RETRAIN) from failure
    return found


def _layers(tensors: dict[str, NDArray[np.float64]], kind: str, inputs: int, path: Path) -> tuple[Layer, ...]:
    layers = []
    width = inputs
    for at in range(_LAYERS[kind]):
        weight = tensors.get(f"w{at}")
        if weight is None:
            raise ConfigError(f"the ranker's weights lack w{at}", where=str(path), hint=_RETRAIN)
        bias = tensors.get(f"b{at}", np.zeros(weight.shape[0])) if kind == "linear" else tensors.get(f"b{at}")
        if bias is None:
            raise ConfigError(f"the ranker's weights lack b{at}", where=str(path), hint=_RETRAIN)
        if weight.ndim != 2 or weight.shape[1] != width or bias.shape != (weight.shape[0],):
            raise ConfigError(
                f"w{at} and b{at} have shapes {weight.shape} and {bias.shape}, which do not follow {width} inputs",
                where=str(path),
                hint=_RETRAIN,
            )
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise ConfigError(f"w{at} or b{at} holds values that are not finite", where=str(path), hint=_RETRAIN)
        layers.append(Layer(weight, bias))
        width = weight.shape[0]
    if width != 1:
        raise ConfigError(f"the ranker gives {width} scores, not one", where=str(path), hint=_RETRAIN)
    return tuple(layers)


def _vector(values: Sequence[float], length: int, name: str, path: Path) -> NDArray[np.float64]:
    try:
        vector = np.array(values, dtype=np.float64)
    except (ValueError, TypeError) as failure:
        raise ConfigError(f"the ranker's {name} is not a list of numbers", where=str(path), hint=_RETRAIN) from failure
    if vector.shape != (length,) or not np.isfinite(vector).all():
        raise ConfigError(f"the ranker's {name} is not {length} finite numbers", where=str(path), hint=_RETRAIN)
    return vector


def _positive(vector: NDArray[np.float64], name: str, path: Path) -> NDArray[np.float64]:
    if not (np.isfinite(vector).all() and (vector > 0).all()):
        raise ConfigError(f"the ranker's {name} must be positive", where=str(path), hint=_RETRAIN)
    return vector
