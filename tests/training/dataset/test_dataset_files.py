"""What the commands of the data set do to files that are there: nothing is lost that was not theirs to lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.cli.main import main
from cudaperf_agent.store.repository import Store
from tests.store.store_samples import GENERATED, new_run, step


@pytest.mark.parametrize("words", [["build", "--task", "activation/0"], ["stats"], ["export"]])
@pytest.mark.parametrize("text", ["# notes\nthe last line has no end", '{"other": 1}\n'])
def test_another_file_is_no_built_data_set_and_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    (tmp_path / "notes").write_text(text)
    (tmp_path / "measured").mkdir()
    measured = [] if words[0] == "build" else ["--measured", str(tmp_path / "measured")]
    assert main(["dataset", *words, "--built", str(tmp_path / "notes"), *measured]) == 2
    assert "this is no built data set" in capsys.readouterr().err
    assert (tmp_path / "notes").read_text() == text


def test_an_export_of_runs_loses_none_of_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="the training extra is not installed")
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    monkeypatch.setenv("CUDAPERF_DATABASE_URL", url)
    with Store(url) as store:
        first, second = new_run(store, origin="grpo"), new_run(store, origin="eval")
        for run in (first, second):
            store.save_step(step(run, "generate", GENERATED, 0))
    export = ["dataset", "export", "--runs", "--out", str(tmp_path / "out")]
    for again in range(2):
        assert main(export) == 0, again
        assert "2 runs, 2 turns" in capsys.readouterr().out
    whole = (tmp_path / "out" / "runs.parquet").read_bytes()
    for origin, says in (("grpo", f"1 of the runs that are there, such as {second}"), ("grop", "2 of the runs")):
        assert main([*export, "--origin", origin]) == 2
        assert says in capsys.readouterr().err
        assert (tmp_path / "out" / "runs.parquet").read_bytes() == whole
    assert main([*export, "--origin", "grpo", "--replace"]) == 0
    assert "1 runs, 1 turns" in capsys.readouterr().out
    (tmp_path / "out" / "runs.parquet").write_text("something else")
    assert main(export) == 2
    assert "this is no export of runs" in capsys.readouterr().err
