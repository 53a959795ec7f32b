"""Reads and writes runs, trajectories, attempts and steps: the only place that speaks SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    RowMapping,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError, OperationalError

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.errors import StoreError
from cudaperf_agent.store.claims import claim, is_claimed
from cudaperf_agent.store.columns import unpack_ids, unpack_logprobs
from cudaperf_agent.store.engine import database_url, open_engine
from cudaperf_agent.store.ids import new_run_id
from cudaperf_agent.store.migrate import upgrade
from cudaperf_agent.store.models import AttemptRow, Base, RunRow, StepRow, TrajectoryRow
from cudaperf_agent.store.projection import attempt_columns, step_payload, whole_payload
from cudaperf_agent.store.records import (
    Run,
    RunEnd,
    RunStatus,
    RunSummary,
    Step,
    StoredAttempt,
    Tokens,
    Trajectory,
)
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.serialise import task_from_dict, task_to_dict

_SUMMARY = [getattr(RunRow, f.name) for f in fields(RunSummary)]
_ID_TRIES = 8
_LATEST = "latest"
_TRANSLATE = "translate"


class Store:
    """A database of runs. Methods are synchronous and short; threads may share one store.

    Writes are upserts by key, so that a repeated write changes nothing.

    Args:
        url: See `database_url`.

    Raises:
        StoreError: The database cannot be opened, is of a newer version, or (by methods) lacks what was asked for.
    """

    def __init__(self, url: str | None = None) -> None:
        self.url = database_url(url)
        self._engine = open_engine(self.url)
        upgrade(self._engine)

    @property
    def path(self) -> str:
        """The database file."""
        return str(self.url.database)

    def close(self) -> None:
        """Release the file."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Runs

    def create_run(
        self,
        task: Task,
        *,
        policy: str,
        backend: str,
        config: dict[str, Any],
        trajectories: int,
        turns: int,
        created: float,
        origin: str = _TRANSLATE,
        run_id: str | None = None,
    ) -> str:
        """Record a new run as running and return its id (`run_id`, or a new one).

        Raises:
            StoreError: `run_id` is taken.
        """
        values = {
            "origin": origin,
            "created": created,
            "status": RunStatus.RUNNING.value,
            "reason": "",
            "task_name": task.name,
            "task_path": task.path,
            "task_digest": task.digest,
            "task": task_to_dict(task),
            "policy": policy,
            "backend": backend,
            "config": config,
            "trajectories": trajectories,
            "turns": turns,
        }
        for _ in range(_ID_TRIES):
            chosen = run_id or new_run_id(created)
            try:
                with self._writing() as connection:
                    connection.execute(insert(RunRow).values(id=chosen, **values))
            except IntegrityError as error:
                if run_id:
                    raise StoreError(
                        f"there is a run {run_id} already", hint=f"Go on with it: cudaperf resume {run_id}"
                    ) from error
            else:
                return chosen
        raise StoreError("no free run id was found", hint="Check the machine's clock.")

    def end_run(self, run_id: str, end: RunEnd) -> None:
        """Record how a run ended."""
        values = asdict(end) | {"status": end.status.value}
        with self._writing() as connection:
            connection.execute(update(RunRow).where(RunRow.id == run_id).values(**values))

    def reopen_run(self, run_id: str) -> None:
        """Mark a run as running again, when it is resumed."""
        with self._writing() as connection:
            values = {"status": RunStatus.RUNNING.value, "finished": None, "reason": ""}
            connection.execute(update(RunRow).where(RunRow.id == run_id).values(**values))

    def list_runs(
        self,
        limit: int | None = 50,
        *,
        offset: int = 0,
        status: RunStatus | None = None,
        origin: str | None = None,
        task: str | None = None,
        policy: str | None = None,
    ) -> tuple[RunSummary, ...]:
        """Runs, newest first.

        Args:
            limit: At most so many; `None` for all.
            offset: Leave out so many of the newest.
            status, origin, policy: Only these.
            task: Only tasks whose name or path contains this text.
        """
        query = select(*_SUMMARY).order_by(RunRow.created.desc(), RunRow.id.desc()).limit(limit).offset(offset)
        for column, wanted in ((RunRow.status, status), (RunRow.origin, origin), (RunRow.policy, policy)):
            if wanted is not None:
                query = query.where(column == str(wanted))
        if task is not None:
            query = query.where(_about(task))
        return tuple(_summary(row) for row in self._all(query))

    def count_runs(self, *, task: str | None = None) -> dict[str, int]:
        """How many runs there are of each origin, by its name; `task` as in `list_runs`."""
        about = () if task is None else (_about(task),)
        query = select(RunRow.origin, func.count().label("runs")).where(*about).group_by(RunRow.origin)
        query = query.order_by(RunRow.origin)
        return {row.origin: row.runs for row in self._all(query)}

    def find_run(self, prefix: str) -> str:
        """The id that begins with `prefix`; ``latest`` is the newest translation's.

        Raises:
            StoreError: None does, or several do.
        """
        if prefix == _LATEST:
            return self._latest()
        wanted = prefix.strip().lower()
        query = select(RunRow.id).where(RunRow.id.startswith(wanted, autoescape=True)).order_by(RunRow.id).limit(6)
        found = [row.id for row in self._all(query)] if wanted else []
        if wanted in found:
            return wanted
        if not found:
            raise StoreError(f"there is no run {prefix!r}", where=self.path, hint="`cudaperf runs` lists them.")
        if len(found) > 1:
            shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
            raise StoreError(f"{prefix!r} fits several runs: {shown}", hint="Give more characters of the id.")
        return str(found[0])

    def _latest(self) -> str:
        newest = self.list_runs(1, origin=_TRANSLATE)
        if newest:
            return newest[0].id
        make = "cudaperf translate FILE.c"
        others = ", ".join(f"{origin} {count}" for origin, count in self.count_runs().items())
        if not others:
            raise StoreError("there are no runs yet", where=self.path, hint=f"Make one: {make}")
        raise StoreError(
            f"{_LATEST} is the newest run of {_TRANSLATE}, and there is none yet, only others ({others})",
            where=self.path,
            hint=f"Name one of those by its id, `cudaperf runs --origin all` lists them; or make one: {make}",
        )

    def get_run(self, run_id: str) -> Run:
        """One run with its task; `run_id` may be a unique prefix or ``latest``, as for `find_run`.

        Raises:
            StoreError: There is no such run, or its task cannot be read.
        """
        found = self.find_run(run_id)
        (row,) = self._all(select(*_SUMMARY, RunRow.task, RunRow.config).where(RunRow.id == found))
        return Run(_summary(row), task_from_dict(row.task), row.config)

    def delete_run(self, run_id: str) -> None:
        """Remove a run and everything of it."""
        with self._writing() as connection:
            connection.execute(delete(RunRow).where(RunRow.id == run_id))

    # Trajectories

    def save_trajectory(self, trajectory: Trajectory) -> None:
        """Insert or update one trajectory."""
        values = {f.name: getattr(trajectory, f.name) for f in fields(Trajectory)}
        values |= {"run_id": values.pop("run"), "status": trajectory.status.value}
        with self._writing() as connection:
            _upsert(connection, TrajectoryRow, values)

    def trajectories(self, run_id: str) -> tuple[Trajectory, ...]:
        """All trajectories of a run, in order."""
        query = select(TrajectoryRow.__table__).where(TrajectoryRow.run_id == run_id).order_by(TrajectoryRow.number)
        return tuple(_trajectory(row) for row in self._all(query))

    # Steps and attempts

    def save_step(self, step: Step) -> None:
        """Insert or update one finished step together with the columns of its attempt, in one transaction."""
        self.save_steps((step,))

    def save_steps(self, steps: Sequence[Step]) -> None:
        """As `save_step`, for several, in one transaction."""
        with self._writing() as connection:
            for step in steps:
                key = {"run_id": step.run, "trajectory": step.trajectory, "turn": step.turn}
                if columns := attempt_columns(step):
                    _upsert(connection, AttemptRow, key | columns)
                times = {"node": step.node, "started": step.started, "finished": step.finished}
                _upsert(connection, StepRow, key | times | {"payload": step_payload(step)})

    def steps(self, run_id: str, trajectory: int | None = None) -> tuple[Step, ...]:
        """Finished steps of a run, or of one trajectory, in the order in which they finished."""
        query = select(StepRow.__table__).where(StepRow.run_id == run_id)
        query = query.order_by(StepRow.finished, StepRow.trajectory, StepRow.turn, StepRow.started)
        if trajectory is not None:
            query = query.where(StepRow.trajectory == trajectory)
        rows = self._all(query)
        attempts = {(row["trajectory"], row["turn"]): row for row in self._attempt_rows(run_id, trajectory)}
        return tuple(_step(row, attempts.get((row.trajectory, row.turn))) for row in rows)

    def attempts(self, run_id: str, trajectory: int | None = None) -> tuple[StoredAttempt, ...]:
        """Attempts of a run, or of one trajectory, by trajectory and turn."""
        return tuple(_attempt(row) for row in self._attempt_rows(run_id, trajectory))

    def _attempt_rows(self, run_id: str, trajectory: int | None) -> list[RowMapping]:
        query = select(AttemptRow.__table__).where(AttemptRow.run_id == run_id)
        query = query.order_by(AttemptRow.trajectory, AttemptRow.turn)
        if trajectory is not None:
            query = query.where(AttemptRow.trajectory == trajectory)
        return [row._mapping for row in self._all(query)]

    # Who is at work

    def claim(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run while working on it; see `claims.claim`."""
        return claim(Path(self.path), run_id)

    def is_claimed(self, run_id: str) -> bool:
        """Whether a process is at work on the run; a run that is ``running`` without it was killed."""
        return is_claimed(Path(self.path), run_id)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except OperationalError as error:
            raise StoreError(
                f"the database cannot be written: {error.orig}",
                where=self.path,
                hint="Check free space and rights, and that no other program holds the file.",
            ) from error

    def _all(self, query: Executable) -> Sequence[Row[Any]]:
        try:
            with self._engine.connect() as connection:
                return connection.execute(query).all()
        except OperationalError as error:
            raise StoreError(f"the database cannot be read: {error.orig}", where=self.path) from error


def _upsert(connection: Connection, row: type[Base], values: dict[str, Any]) -> None:
    """Insert, or update the given columns of the row with the same key."""
    connection.execute(_upsert_statement(connection.dialect.name, row, tuple(values)), values)


@lru_cache(maxsize=256)
def _upsert_statement(dialect: str, row: type[Base], names: tuple[str, ...]) -> Executable:
    """The statement for these columns; SQLite and PostgreSQL spell it alike. Building it costs more than running it."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as dialect_insert
    else:
        from sqlalchemy.dialects.sqlite import insert as dialect_insert  # type: ignore[assignment]
    table = row.__table__
    assert isinstance(table, Table)
    keys = [column.name for column in table.primary_key]
    statement = dialect_insert(table)
    changed = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def _about(task: str) -> ColumnElement[bool]:
    return RunRow.task_name.contains(task, autoescape=True) | RunRow.task_path.contains(task, autoescape=True)


def _summary(row: Row[Any]) -> RunSummary:
    values = {f.name: getattr(row, f.name) for f in fields(RunSummary)}
    return RunSummary(**values | {"status": RunStatus(row.status)})


def _trajectory(row: Row[Any]) -> Trajectory:
    values = {f.name: getattr(row, f.name) for f in fields(Trajectory) if f.name != "run"}
    return Trajectory(run=row.run_id, **values | {"status": RunStatus(row.status)})


def _step(row: Row[Any], attempt: RowMapping | None) -> Step:
    payload = whole_payload(row.node, row.payload, attempt)
    return Step(row.run_id, row.trajectory, row.turn, row.node, row.started, row.finished, payload)


def _attempt(row: RowMapping) -> StoredAttempt:
    tokens = Tokens(unpack_ids(row["prompt_token_ids"]), unpack_ids(row["token_ids"]), unpack_logprobs(row["logprobs"]))
    return StoredAttempt(
        run=row["run_id"],
        trajectory=row["trajectory"],
        turn=row["turn"],
        messages=tuple(row["messages"] or ()),
        text=row["text"] or "",
        source=row["source"],
        source_key=row["source_key"],
        strategy=row["strategy"] or "",
        model=row["model"] or "",
        declined=row["declined"],
        finish_reason=row["finish_reason"] or "",
        status=row["status"] or "",
        usage=row["usage"] or {},
        verdict=Verdict.from_dict(row["verdict"]) if row["verdict"] else None,
        features=row["features"],
        hints=tuple(row["hints"] or ()),
        reward=row["reward"],
        feedback=row["feedback"] or "",
        hidden_verdict=Verdict.from_dict(row["hidden_verdict"]) if row["hidden_verdict"] else None,
        tokens=None if tokens == Tokens() else tokens,
    )
