"""Writes the store's trajectories as Parquet, one row per turn: enough to study or train on without another run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.store.records import RunSummary, StoredAttempt, Tokens
from cudaperf_agent.store.repository import Store

_PARTS = ("total", "verifiable", "structural", "score", "speedup")


@dataclass(frozen=True, slots=True)
class ExportedRuns:
    """What was written."""

    runs: int
    turns: int


def write_runs(
    store: Store, path: Path, *, origin: str | None = None, runs: Sequence[str] | None = None
) -> ExportedRuns:
    """Write the turns of runs, oldest run first; one run is in memory at a time.

    A turn's status is its verdict's, ``declined`` or ``repeated``; ``unfinished`` where no case was run yet.

    Args:
        store: Where they are.
        path: The Parquet file; its folder is made.
        origin: Only runs of this origin (``grpo``).
        runs: Only these ids.

    Raises:
        BackendUnavailable: pyarrow is not installed.
        StoreError: The store cannot be read.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise BackendUnavailable(
            "pyarrow is not installed", hint='Install it with: pip install "cudaperf-agent[training]"'
        ) from error
    schema = _schema(arrow)
    wanted = set(runs) if runs is not None else None
    found = [r for r in reversed(store.list_runs(None, origin=origin)) if wanted is None or r.id in wanted]
    path.parent.mkdir(parents=True, exist_ok=True)
    turns = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for run in found:
            rows = list(_rows(run, store.attempts(run.id)))
            turns += len(rows)
            if rows:
                writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
    return ExportedRuns(len(found), turns)


def _rows(run: RunSummary, attempts: Sequence[StoredAttempt]) -> Iterator[dict[str, Any]]:
    for attempt in attempts:
        tokens = attempt.tokens or Tokens()
        reward = attempt.reward or {}
        yield {
            "run": run.id,
            "origin": run.origin,
            "created": run.created,
            "task": run.task_name,
            "task_path": run.task_path,
            "task_digest": run.task_digest,
            "policy": attempt.model or run.policy,
            "backend": run.backend,
            "trajectory": attempt.trajectory,
            "turn": attempt.turn,
            "prompt": json.dumps(list(attempt.messages)),
            "completion": attempt.text,
            "source": attempt.source,
            "source_key": attempt.source_key,
            "finish_reason": attempt.finish_reason,
            "status": turn_status(attempt),
            "pass_rate": attempt.verdict.pass_rate if attempt.verdict else None,
            "feedback": attempt.feedback,
            "prompt_token_ids": tokens.prompt,
            "token_ids": tokens.completion,
            "logprobs": tokens.logprobs,
            **{f"reward_{name}": reward.get(name) for name in _PARTS},
        }


def turn_status(attempt: StoredAttempt) -> str:
    """As stored; ``unfinished`` where the turn stopped before a case was run, whatever older versions made of that."""
    untested = attempt.verdict is not None and attempt.verdict.untested
    if attempt.status and not (untested and attempt.status == Status.CORRECT):
        return attempt.status
    return "declined" if attempt.declined else "unfinished"


def _schema(arrow: Any) -> Any:
    text, whole, number = arrow.string(), arrow.int32(), arrow.float64()
    columns = {
        "run": text, "origin": text, "created": number, "task": text, "task_path": text, "task_digest": text,
        "policy": text, "backend": text, "trajectory": whole, "turn": whole, "prompt": text, "completion": text,
        "source": text, "source_key": text, "finish_reason": text, "status": text, "pass_rate": number,
        "feedback": text, "prompt_token_ids": arrow.list_(whole), "token_ids": arrow.list_(whole),
        "logprobs": arrow.list_(arrow.float32()), **{f"reward_{name}": number for name in _PARTS},
    }  # fmt: skip
    return arrow.schema(list(columns.items()))
