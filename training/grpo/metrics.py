"""What a step's rollouts say: rates, rewards, diversity and alarms, as flat numbers for the log."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from training.grpo.rollouts import Rollout
from training.grpo.rows import Group, Turn
from training.grpo.step_time import ON_GPU
from training.rank_measures import spearman

_COMPILED = frozenset(
    {"correct", "wrong", "memory_error", "launch_error", "crash", "timeout", "unstable", "unsupported", "cheat"}
)
_FAST = (1, 2)
_LEAST_FOR_RANKS = 3


def rollout_metrics(rollout: Rollout, groups: Sequence[Group], turns: int) -> dict[str, float]:
    """The log's numbers about one step's rollouts; a number that cannot be told is left out.

    Args:
        rollout: As drawn.
        groups: With credit and advantages.
        turns: Of a whole trajectory.
    """
    rows = [t for g in groups for t in g.turns]
    found: dict[str, float] = {
        "rollout/rows": float(len(rows)),
        "rollout/errors": float(len(rollout.errors)),
        "rollout/left_group": _share(t.reward is None for t in rows),
        "rollout/truncated": _share(t.truncated for t in rows),
        "compile_rate": _share(t.status in _COMPILED for t in rows),
        "cheats": float(sum(t.status == "cheat" for t in rows)),
        "zero_variance_groups": _share(g.advantages.skipped for g in groups),
        "rows_with_advantage": _share(t.advantage != 0.0 for t in rows),
        "distinct_sources_per_group": _mean(
            [float(len({t.source_key for t in g.turns if t.source_key})) for g in groups]
        ),
    }
    lengths = [float(len(t.ids)) for t in rows]
    found |= {
        # By TRL's names for them.
        "completions/mean_length": _mean(lengths),
        "completions/max_length": max(lengths, default=math.nan),
        "completions/clipped_ratio": found["rollout/truncated"],
        "frac_reward_zero_std": found["zero_variance_groups"],
    }
    found |= _rates(rows, turns)
    found |= _rewards(rows)
    correlation = _rank_correlation(groups)
    if correlation is not None:
        found["rank_correlation"] = correlation
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _rates(rows: Sequence[Turn], turns: int) -> dict[str, float]:
    """Of trajectories: correct by each turn, fast_p at the end, and the turn of the first correct candidate."""
    by_trajectory: dict[tuple[str, int], list[Turn]] = defaultdict(list)
    for turn in rows:
        by_trajectory[turn.task, turn.trajectory].append(turn)
    trajectories = list(by_trajectory.values())
    found: dict[str, float] = {}
    for number in range(turns):
        found[f"correct@turn{number + 1}"] = _share(
            any(t.status == "correct" and t.turn <= number for t in members) for members in trajectories
        )
    timed = [t for t in rows if t.status == "correct" and _speedup(t) is not None]
    if timed:
        for p in _FAST:
            found[f"fast_{p}"] = _share(
                any(t.status == "correct" and (_speedup(t) or 0.0) > p for t in members) for members in trajectories
            )
        found["log2_speedup"] = _mean([math.log2(s) for t in timed if (s := _speedup(t))])
    used = [1 + min((t.turn for t in m if t.status == "correct"), default=turns - 1) for m in trajectories]
    found["turns_used"] = _mean([float(n) for n in used])
    return found


def _rewards(rows: Sequence[Turn]) -> dict[str, float]:
    scored = [t for t in rows if t.reward is not None]
    correct = [t for t in scored if t.parts.get("outcome") == "correct" and _speedup(t) is not None]
    right = [t for t in scored if t.parts.get("outcome") == "correct"]
    structural = [t for t in scored if t.parts.get("score") is not None]
    rewards = [t.reward for t in scored if t.reward is not None]
    return {
        "reward": _mean(rewards),
        "reward_std": float(np.std(rewards, ddof=1)) if len(rewards) > 1 else math.nan,
        "rewards/verifiable/mean": _mean([float(t.parts.get("verifiable", 0.0)) for t in scored]),
        "rewards/structural/mean": _mean([float(t.parts.get("structural", 0.0)) for t in scored]),
        "credit/mean": _mean([t.credit for t in scored if t.credit is not None]),
        "clipped/low": _share(t.parts.get("clipped") == "low" for t in correct),
        "clipped/high": _share(t.parts.get("clipped") == "high" for t in correct),
        "charged/work": _share(t.parts.get("excess", 1.0) > 1 for t in right),
        "clipped/structural_low": _share(t.parts.get("structural_clipped") == "low" for t in structural),
        "clipped/structural_high": _share(t.parts.get("structural_clipped") == "high" for t in structural),
    }


def _rank_correlation(groups: Sequence[Group]) -> float | None:
    """Mean within-group Spearman of the ranker's score with log S, over distinct timed sources: the hacking alarm."""
    found = []
    for group in groups:
        pairs = {
            t.source_key: (float(t.parts["score"]), math.log2(s))
            for t in group.turns
            if t.parts.get("outcome") == "correct" and t.parts.get("score") is not None and (s := _speedup(t))
        }
        scores, speeds = [a for a, _ in pairs.values()], [b for _, b in pairs.values()]
        if len(pairs) >= _LEAST_FOR_RANKS and len(set(scores)) > 1 and len(set(speeds)) > 1:
            found.append(float(spearman(np.array(scores), np.array(speeds))))
    return _mean(found) if found else None


def time_metrics(spent: Mapping[str, float]) -> dict[str, float]:
    """Shares of a step's time, and how long it took; GPU busy is generating, learning or timing."""
    total = sum(spent.values())
    if total <= 0:
        return {}
    shares = {f"time/{activity}": seconds / total for activity, seconds in spent.items()}
    return {**shares, "time/gpu_busy": sum(spent[a] for a in ON_GPU) / total, "time/step_seconds": total}


def _speedup(turn: Turn) -> float | None:
    """S, where the candidate was timed."""
    value = turn.parts.get("speedup")
    timed = turn.parts.get("baseline")
    return float(value) if timed and value and value > 0 else None


def _share(flags: Iterable[bool]) -> float:
    values = [bool(f) for f in flags]
    return sum(values) / len(values) if values else math.nan


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan
