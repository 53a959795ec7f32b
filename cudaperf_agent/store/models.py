"""The tables: runs, their trajectories, the attempts of each trajectory, and the finished steps of each attempt."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Float, ForeignKeyConstraint, Index, Integer, LargeBinary, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from cudaperf_agent.store.columns import Json

# Named constraints, so that later migrations can alter them on any database.
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Declarative base with portable column types."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy's own protocol)
        str: Text,
        int: Integer,
        float: Float,
        bool: Boolean,
        bytes: LargeBinary,
        dict[str, Any]: Json,
        list[Any]: Json,
    }


class RunRow(Base):
    """One run: a task, a policy and a number of trajectories. Times are Unix seconds."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_created", "created"),
        Index("ix_runs_origin_created", "origin", "created"),
        Index("ix_runs_task_digest", "task_digest"),
    )

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    origin: Mapped[str] = mapped_column(String(32))
    created: Mapped[float]
    finished: Mapped[float | None]
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str]
    task_name: Mapped[str]
    task_path: Mapped[str]
    task_digest: Mapped[str] = mapped_column(String(64))
    policy: Mapped[str]
    backend: Mapped[str] = mapped_column(String(16))
    trajectories: Mapped[int]
    turns: Mapped[int]
    best_trajectory: Mapped[int | None]
    best_turn: Mapped[int | None]
    best_seconds: Mapped[float | None]
    best_speedup: Mapped[float | None]
    best_baseline: Mapped[str | None]
    # Long values last: a listing does not have to read past them.
    config: Mapped[dict[str, Any]]
    task: Mapped[dict[str, Any]]


class TrajectoryRow(Base):
    """One trajectory of a run, `number` counting from 0."""

    __tablename__ = "trajectories"
    __table_args__ = (ForeignKeyConstraint(["run_id"], ["runs.id"], ondelete="CASCADE"),)

    run_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    seed: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str]
    error: Mapped[dict[str, Any] | None]
    started: Mapped[float]
    finished: Mapped[float | None]
    first_choice: Mapped[int | None]
    best_turn: Mapped[int | None]


class AttemptRow(Base):
    """One turn of a trajectory, filled in as its steps finish."""

    __tablename__ = "attempts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["run_id", "trajectory"], ["trajectories.run_id", "trajectories.number"], ondelete="CASCADE"
        ),
    )

    run_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    trajectory: Mapped[int] = mapped_column(primary_key=True)
    turn: Mapped[int] = mapped_column(primary_key=True)
    # generate
    messages: Mapped[list[Any] | None]
    text: Mapped[str | None]
    source: Mapped[str | None]
    source_key: Mapped[str | None] = mapped_column(String(64))
    strategy: Mapped[str | None]
    model: Mapped[str | None]
    declined: Mapped[str | None]
    finish_reason: Mapped[str | None] = mapped_column(String(32))
    usage: Mapped[dict[str, Any] | None]
    prompt_token_ids: Mapped[bytes | None]
    token_ids: Mapped[bytes | None]
    logprobs: Mapped[bytes | None]
    # compile, test, measure: the verdict so far
    status: Mapped[str | None] = mapped_column(String(16))
    verdict: Mapped[dict[str, Any] | None]
    passed: Mapped[int | None]
    total: Mapped[int | None]
    pass_rate: Mapped[float | None]
    device_seconds: Mapped[float | None]
    end_to_end_seconds: Mapped[float | None]
    speedup: Mapped[float | None]
    baseline: Mapped[str | None]
    # assess
    features: Mapped[dict[str, Any] | None]
    hints: Mapped[list[Any] | None]
    reward: Mapped[dict[str, Any] | None]
    reward_total: Mapped[float | None]
    reward_verifiable: Mapped[float | None]
    reward_structural: Mapped[float | None]
    # feedback
    feedback: Mapped[str | None]
    # hidden cases, of chosen attempts only
    hidden_status: Mapped[str | None] = mapped_column(String(16))
    hidden_verdict: Mapped[dict[str, Any] | None]


class StepRow(Base):
    """A finished step: what a resumed run must not do again. `payload` is what the attempt's columns lack."""

    __tablename__ = "steps"
    __table_args__ = (
        ForeignKeyConstraint(
            ["run_id", "trajectory"], ["trajectories.run_id", "trajectories.number"], ondelete="CASCADE"
        ),
    )

    run_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    trajectory: Mapped[int] = mapped_column(primary_key=True)
    turn: Mapped[int] = mapped_column(primary_key=True)
    node: Mapped[str] = mapped_column(String(16), primary_key=True)
    started: Mapped[float]
    finished: Mapped[float]
    payload: Mapped[dict[str, Any]]
