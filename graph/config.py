"""How a run is carried out: the numbers of the graph, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cudaperf_agent.errors import ConfigError


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """Stored with the run, so that a resumed run goes on as it began.

    Attributes:
        turns: Most turns of a trajectory.
        trajectories: Independent trajectories of the task.
        concurrency: Most trajectories at work at once.
        seed: Trajectory i samples with seed + i.
        redraws: A source that an earlier turn had already is drawn again, by other seeds, so many times before it ends
            the trajectory. A policy that always answers alike costs so many calls more, once.
        fixed_horizon: Go on to the last turn whatever happens, as training needs (there, stopping early would be
            profitable, since rewards can be negative); only a policy that declines ends sooner.
        lean: Where nothing is timed, go on past a correct candidate that does more work than is ordinary (`cuda.work`),
            while there are turns: it is right, and far slower than need be.
        hidden: Put the best attempt to the hidden cases at the end and time it again. Training does without, and its
            best attempt stands by the visible cases.
        seconds: After so many seconds no new turn begins, and what is best so far is finished; `None` for no limit.
        batch_seconds: How long a policy that takes batches waits for more requests to gather.
        batch_size: Most requests of one batch.
        checkpointing: Whether the graph's state is saved after every node. The store alone can resume a run too,
            by going through its finished steps again.
    """

    turns: int = 5
    trajectories: int = 1
    concurrency: int = 128
    seed: int = 0
    redraws: int = 2
    fixed_horizon: bool = False
    lean: bool = False
    hidden: bool = True
    seconds: float | None = None
    batch_seconds: float = 0.002
    batch_size: int = 256
    checkpointing: bool = True

    def __post_init__(self) -> None:
        for name in ("turns", "trajectories", "concurrency", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}", where=name)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GraphConfig:
        """The inverse of `to_dict`; what this version does not know is left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})
