"""The first tables: runs, trajectories, attempts, steps."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("origin", sa.String(length=32), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("finished", sa.Float(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=False),
        sa.Column("task_path", sa.Text(), nullable=False),
        sa.Column("task_digest", sa.String(length=64), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("trajectories", sa.Integer(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("best_trajectory", sa.Integer(), nullable=True),
        sa.Column("best_turn", sa.Integer(), nullable=True),
        sa.Column("best_seconds", sa.Float(), nullable=True),
        sa.Column("best_speedup", sa.Float(), nullable=True),
        sa.Column("best_baseline", sa.Text(), nullable=True),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index("ix_runs_created", ["created"], unique=False)
        batch_op.create_index("ix_runs_origin_created", ["origin", "created"], unique=False)
        batch_op.create_index("ix_runs_task_digest", ["task_digest"], unique=False)

    op.create_table(
        "trajectories",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("finished", sa.Float(), nullable=True),
        sa.Column("first_choice", sa.Integer(), nullable=True),
        sa.Column("best_turn", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_trajectories_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_trajectories")),
    )
    op.create_table(
        "attempts",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("trajectory", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("messages", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("source_key", sa.String(length=64), nullable=True),
        sa.Column("strategy", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("declined", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.String(length=32), nullable=True),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("prompt_token_ids", sa.LargeBinary(), nullable=True),
        sa.Column("token_ids", sa.LargeBinary(), nullable=True),
        sa.Column("logprobs", sa.LargeBinary(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("passed", sa.Integer(), nullable=True),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("pass_rate", sa.Float(), nullable=True),
        sa.Column("device_seconds", sa.Float(), nullable=True),
        sa.Column("end_to_end_seconds", sa.Float(), nullable=True),
        sa.Column("speedup", sa.Float(), nullable=True),
        sa.Column("baseline", sa.Text(), nullable=True),
        sa.Column("features", sa.Text(), nullable=True),
        sa.Column("hints", sa.Text(), nullable=True),
        sa.Column("reward", sa.Text(), nullable=True),
        sa.Column("reward_total", sa.Float(), nullable=True),
        sa.Column("reward_verifiable", sa.Float(), nullable=True),
        sa.Column("reward_structural", sa.Float(), nullable=True),
        sa.Column("feedback", sa.Text(), nullable=True),
        sa.Column("hidden_status", sa.String(length=16), nullable=True),
        sa.Column("hidden_verdict", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id", "trajectory"],
            ["trajectories.run_id", "trajectories.number"],
            name=op.f("fk_attempts_run_id_trajectory"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "trajectory", "turn", name=op.f("pk_attempts")),
    )
    op.create_table(
        "steps",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("trajectory", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(length=16), nullable=False),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("finished", sa.Float(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "trajectory"],
            ["trajectories.run_id", "trajectories.number"],
            name=op.f("fk_steps_run_id_trajectory"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "trajectory", "turn", "node", name=op.f("pk_steps")),
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("steps")
    op.drop_table("attempts")
    op.drop_table("trajectories")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index("ix_runs_task_digest")
        batch_op.drop_index("ix_runs_origin_created")
        batch_op.drop_index("ix_runs_created")

    op.drop_table("runs")
