"""The database is made and upgraded by the migrations alone, wherever the package is installed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from alembic import command
from cudaperf_agent.errors import StoreError
from cudaperf_agent.store.engine import database_url, open_engine
from cudaperf_agent.store.migrate import HEAD, alembic_config, migrations_dir, upgrade
from cudaperf_agent.store.models import Base
from cudaperf_agent.store.repository import Store

ROOT = Path(__file__).parents[2]


def test_the_migrations_make_what_the_models_say(tmp_path: Path) -> None:
    engine = open_engine(database_url(str(tmp_path / "a.sqlite")))
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    tables = set(inspect(engine).get_table_names())
    assert tables == {"runs", "trajectories", "attempts", "steps", "alembic_version"}
    assert inspect(engine).get_pk_constraint("steps")["constrained_columns"] == ["run_id", "trajectory", "turn", "node"]


def test_alembic_check_passes_from_the_command_line(tmp_path: Path) -> None:
    env = {**os.environ, "CUDAPERF_DATABASE_URL": str(tmp_path / "b.sqlite")}
    for arguments in (["upgrade", "head"], ["check"]):
        command_line = [sys.executable, "-m", "alembic.config", *arguments]
        done = subprocess.run(command_line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "No new upgrade operations" in done.stdout


def test_the_code_knows_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD
    assert migrations_dir() == ROOT / "alembic"
    assert not (ROOT / "alembic" / "__init__.py").exists()


def test_a_downgraded_database_is_upgraded_on_opening(tmp_path: Path) -> None:
    engine = open_engine(database_url(str(tmp_path / "c.sqlite")))
    upgrade(engine)
    with engine.connect() as connection:
        command.downgrade(alembic_config(connection), "base")
    assert "runs" not in inspect(engine).get_table_names()
    with Store(str(tmp_path / "c.sqlite")) as store:
        assert store.list_runs() == ()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    Store(str(path)).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer version") as caught:
        Store(str(path))
    assert "pip install --upgrade" in str(caught.value.hint)
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT version_num FROM alembic_version").fetchone() == ("9999",)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="another program"):
        Store(str(path))
    with sqlite3.connect(path) as raw:
        assert [r[0] for r in raw.execute("SELECT name FROM sqlite_master")] == ["bookmarks"]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    path.write_text("not a database, but long enough to be looked at " * 100)
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        Store(str(path))
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret@h/db", "sqlite://", "sqlite:///:memory:", "nonsense://", "a://b://"]
)
def test_only_sqlite_files_are_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_DATABASE_URL", url)
    with pytest.raises(StoreError) as caught:
        Store()
    assert caught.value.where == "CUDAPERF_DATABASE_URL"
    assert "secret" not in str(caught.value)


def test_the_environment_names_the_file_and_folders_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tmp_path / "deep" / "er" / "g.sqlite"
    monkeypatch.setenv("CUDAPERF_DATABASE_URL", f"sqlite:///{wanted}")
    with Store() as store:
        assert store.path == str(wanted)
    assert wanted.is_file()
    monkeypatch.delenv("CUDAPERF_DATABASE_URL")
    assert database_url().database == str(Path(os.environ["CUDAPERF_DATA_DIR"]) / "runs.sqlite")


def test_the_database_is_in_write_ahead_mode(tmp_path: Path) -> None:
    with Store(str(tmp_path / "h.sqlite")) as store, sqlite3.connect(store.path) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_many_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    code = "import sys; from cudaperf_agent.store.repository import Store; print(len(Store(sys.argv[1]).list_runs()))"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "i.sqlite")],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for process in started:
        out, err = process.communicate()
        assert (process.returncode, out) == (0, b"0\n"), err.decode()


def test_the_wheel_holds_the_migrations_and_works_away_from_the_checkout(tmp_path: Path) -> None:
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wheel = tmp_path / done.stdout.split()[-1]
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(installed)
    migrations = "cudaperf_agent/store/migrations"
    assert f"{migrations}/env.py" in names
    assert f"{migrations}/versions/0001_first_tables.py" in names
    assert not [n for n in names if n.startswith("alembic/") or "__pycache__" in n]
    code = (
        "import cudaperf_agent.store.migrate as m, cudaperf_agent.store.repository as r; "
        "print(m.migrations_dir()); print(r.Store().list_runs())"
    )
    env = {**os.environ, "PYTHONPATH": str(installed), "CUDAPERF_DATA_DIR": str(tmp_path / "data")}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert ran.stdout.splitlines() == [str(installed / migrations), "()"], ran.stderr
    assert (tmp_path / "data" / "runs.sqlite").is_file()
