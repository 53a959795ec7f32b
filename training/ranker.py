"""Trains the structural ranker s_ψ(φ̂): an 11-64-32-1 ReLU network, or the linear form, with the pairwise loss.

The loss is the mean of log(1 + exp(−(s(φ̂⁺) − s(φ̂⁻)))) over pairs of one task (`training.pairs`); tasks weigh equally.
φ̂ is standardised with the training split's μ and σ and clipped; what is saved divides scores by their pooled
within-task standard deviation on the validation split, so that a reward can use them. Splits are by family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.structural import Layer, Ranker
from training.dataset.table import EXTENDED, Table
from training.pairs import PairConfig, Pairs, make_pairs
from training.splits import split_of

Kind = Literal["mlp", "linear"]


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a ranker is trained.

    Attributes:
        kind: ``mlp`` (11-64-32-1) or ``linear`` (wᵀφ̂).
        hidden: Widths of the hidden layers [ours].
        pairs: Which pairs.
        extended: Add the extended set to the eleven (for comparison; such a ranker is not an artefact of the reward).
        clip: φ̂ is clipped to ± this.
        rate, linear_rate, decay: Of AdamW, for the network and for the linear form.
        epochs: At most; each is one step over all pairs.
        patience: Epochs without a better validation loss after which training stops.
        validation: Share of the families that are held out for it.
        seed: Of the split and of the weights.
    """

    kind: Kind = "mlp"
    hidden: tuple[int, int] = (64, 32)
    pairs: PairConfig = field(default_factory=PairConfig)
    extended: bool = False
    clip: float = 3.0
    rate: float = 5e-3
    linear_rate: float = 5e-2
    decay: float = 1e-3
    epochs: int = 400
    patience: int = 40
    validation: float = 0.15
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Trained:
    """A ranker and how it came to be.

    Attributes:
        ranker: Ready for `reward.structural.save_ranker`.
        epochs: Steps of the weights that were kept.
        loss: Their validation loss.
        pairs: Pairs trained on.
        families: Families trained on, and held out for validation.
    """

    ranker: Ranker
    epochs: int
    loss: float
    pairs: int
    families: tuple[tuple[str, ...], tuple[str, ...]]


def columns(table: Table, *, extended: bool) -> NDArray[np.float64]:
    """What a ranker reads: φ, or φ and the extended set."""
    return np.hstack([table.phi, table.extended]) if extended else table.phi


def learnable(table: Table) -> Table:
    """The rows that may be learned from: no unseen family, no member that is held out (`training.splits`)."""
    members = [int(task.rpartition("/")[2]) for task in table.task]
    splits = [split_of(str(family), member) for family, member in zip(table.family, members, strict=True)]
    return table.take(np.array([split == "train" for split in splits]))


def split_families(families: Sequence[str], share: float, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Families for training and for validation: at least one of each."""
    names = sorted(set(families))
    if len(names) < 2:
        raise ConfigError("a ranker needs at least two families of programs", hint="measure more of the data set")
    order = np.random.default_rng(seed).permutation(len(names))
    held = max(1, min(len(names) - 1, round(share * len(names))))
    validation = tuple(sorted(names[i] for i in order[:held]))
    return tuple(n for n in names if n not in validation), validation


def train(table: Table, config: TrainConfig | None = None) -> Trained:
    """Train on all families but some for validation.

    Raises:
        ConfigError: There are too few families, or no pair has a gap.
    """
    config = config or TrainConfig()
    families = split_families(list(table.family), config.validation, config.seed)
    training = table.take(np.isin(table.family, families[0]))
    validation = table.take(np.isin(table.family, families[1]))
    pairs, held = make_pairs(training, config.pairs), make_pairs(validation, config.pairs)
    if not pairs.better.size:
        raise ConfigError("no two variants of a task differ enough in speed", hint="measure more of the data set")
    raw = columns(training, extended=config.extended)
    mean, deviation = raw.mean(0), raw.std(0)
    deviation = np.where(
        deviation > 1e-9, deviation, 1.0
    )  # a feature that never varies says nothing, and harms nothing

    def standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.clip((values - mean) / deviation, -config.clip, config.clip), dtype=np.float64)

    other = standard(columns(validation, extended=config.extended))
    fitted = _fit(standard(raw), pairs, other, held, config)
    order = (*ORDER, *(f"x_{n}" for n in EXTENDED)) if config.extended else ORDER
    plain = Ranker(config.kind, order, mean, deviation, 1.0, config.clip, fitted.layers, table.digest)
    scale = within_task_deviation(plain.scores(columns(validation, extended=config.extended)), validation)
    ranker = Ranker(config.kind, order, mean, deviation, scale, config.clip, fitted.layers, table.digest)
    return Trained(ranker, fitted.epochs, fitted.loss, int(pairs.better.size), families)


def within_task_deviation(scores: NDArray[np.float64], table: Table) -> float:
    """Pooled standard deviation of scores around their task's mean; 1 where they do not vary."""
    squares, freedom = 0.0, 0
    for rows in table.tasks():
        squares += float(((scores[rows] - scores[rows].mean()) ** 2).sum())
        freedom += rows.size - 1
    deviation = float(np.sqrt(squares / freedom)) if freedom else 0.0
    return deviation if deviation > 1e-12 else 1.0


@dataclass(frozen=True, slots=True)
class _Fitted:
    layers: tuple[Layer, ...]
    epochs: int
    loss: float


def _fit(
    inputs: NDArray[np.float64], pairs: Pairs, other: NDArray[np.float64], held: Pairs, config: TrainConfig
) -> _Fitted:
    """Weights of the epoch with the least validation loss."""
    import torch
    from torch import nn

    # One thread: the matrices are tiny, and on a busy machine threads spend their time waiting for each other.
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    width = inputs.shape[1]
    if config.kind == "linear":
        network: nn.Module = nn.Sequential(nn.Linear(width, 1, bias=False))
    else:
        first, second = config.hidden
        network = nn.Sequential(
            nn.Linear(width, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, 1)
        )
    rate = config.linear_rate if config.kind == "linear" else config.rate
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=config.decay)

    def prepared(values: NDArray[np.float64], of: Pairs) -> list[torch.Tensor]:
        kinds = (torch.float32, torch.int64, torch.int64, torch.float32)
        arrays = (values, of.better, of.worse, of.weight)
        return [torch.as_tensor(a, dtype=k) for a, k in zip(arrays, kinds, strict=True)]

    def loss_of(values: torch.Tensor, better: torch.Tensor, worse: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        scores = network(values)[:, 0]
        return (nn.functional.softplus(scores[worse] - scores[better]) * weight).sum()

    mine, theirs = prepared(inputs, pairs), prepared(other, held)
    best, best_epoch = float("inf"), 0
    kept = {name: value.clone() for name, value in network.state_dict().items()}
    for epoch in range(1, config.epochs + 1):
        optimiser.zero_grad()
        loss = loss_of(*mine)
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            now = float(loss_of(*(theirs if held.better.size else mine)))
        if now < best - 1e-5:
            best, best_epoch = now, epoch
            kept = {name: value.clone() for name, value in network.state_dict().items()}
        elif epoch - best_epoch >= config.patience:
            break
    layers = []
    for name in sorted(n for n in kept if n.endswith("weight")):
        weight = kept[name].double().numpy()
        bias = kept.get(name.replace("weight", "bias"))
        layers.append(Layer(weight, np.zeros(weight.shape[0]) if bias is None else bias.double().numpy()))
    return _Fitted(tuple(layers), best_epoch, best)
