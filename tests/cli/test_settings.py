"""Settings come from layers, and each says where it came from."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import ROOT, Cli

from cudaperf_agent.errors import ConfigError, UsageError
from cudaperf_agent.execution.paths import config_dir
from cudaperf_agent.settings import READ_ELSEWHERE, environment_name, load_settings, setting_keys


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def user_file(text: str) -> Path:
    config_dir().mkdir(parents=True, exist_ok=True)
    path = config_dir() / "config.toml"
    path.write_text(text)
    return path


def test_each_layer_beats_the_one_below(project: Path) -> None:
    keys = ("turns", "trajectories", "seed", "policy")
    user = user_file(
        "[translate]\n" + "".join(f"{k} = {v}\n" for k, v in zip(keys, (1, 2, 3, '"variants"'), strict=True))
    )
    (project / "cudaperf.toml").write_text("# mine\n[translate]\nturns = 2\ntrajectories = 4\nseed = 5\n")
    environ = {"CUDAPERF_TRANSLATE__TURNS": "3", "CUDAPERF_TRANSLATE__TRAJECTORIES": "6"}
    loaded = load_settings({"translate.turns": 4, "translate.seed": None}, environ=environ)
    translate = loaded.settings.translate
    assert (translate.turns, translate.trajectories, translate.seed, translate.policy) == (4, 6, 5, "variants")
    assert {k: str(loaded.origins[f"translate.{k}"]) for k in keys} == {
        "turns": "flag (--turns)",
        "trajectories": "environment (CUDAPERF_TRANSLATE__TRAJECTORIES)",
        "seed": f"project file ({project / 'cudaperf.toml'}:5)",
        "policy": f"user file ({user}:5)",
    }
    assert str(loaded.origins["translate.time_budget"]) == "default"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("[translate]\nturns = 9\n", 2, "translate.turns"),
        ("[translate]\n\nturn = 1\n", 3, "did you mean `translate.turns`"),
        ("translate.turns = 1\ntranslate.bad = 1\n", 2, "translate.bad"),
        ("[translation]\nx = 1\n", 2, "translation.x"),
        ("[translate]\nturns = \n", 2, "TOML"),
        ("display = 'loud'\n", 1, "display"),
        ("[endpoint]\nurl = 'localhost'\n", 2, "endpoint.url"),
        ("translate = 3\n", 1, "translate"),
    ],
)
def test_a_bad_file_gives_line_and_remedy(project: Path, text: str, line: int, word: str) -> None:
    (project / "cudaperf.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={})
    assert caught.value.where == f"{project / 'cudaperf.toml'}:{line}"
    assert word in str(caught.value)
    assert caught.value.hint


def test_an_empty_section_and_an_empty_variable_are_nothing(project: Path) -> None:
    (project / "cudaperf.toml").write_text("[translate]\n")
    assert load_settings(environ={"CUDAPERF_TRANSLATE__TURNS": ""}).settings.translate.turns == 5


def test_wrong_variables_and_flags_are_named(project: Path) -> None:
    with pytest.raises(ConfigError, match="CUDAPERF_TRANSLATE__TURN ") as unknown:
        load_settings(environ={"CUDAPERF_TRANSLATE__TURN": "3"})
    assert "CUDAPERF_TRANSLATE__TURNS" in (unknown.value.hint or "")
    with pytest.raises(ConfigError) as bad:
        load_settings(environ={"CUDAPERF_TRANSLATE__TURNS": "many"})
    assert bad.value.where == "CUDAPERF_TRANSLATE__TURNS"
    with pytest.raises(UsageError) as flag:
        load_settings({"translate.turns": 0}, environ={})
    assert flag.value.where == "--turns"


def test_a_project_file_cannot_send_the_user_s_key_elsewhere(project: Path) -> None:
    (project / "cudaperf.toml").write_text("[endpoint]\nurl = 'http://evil.example/v1'\n")
    with pytest.raises(ConfigError, match="API key"):
        load_settings(environ={"CUDAPERF_ENDPOINT__API_KEY": "secret"})
    trusted = {"CUDAPERF_ENDPOINT__API_KEY": "secret", "CUDAPERF_ENDPOINT__URL": "http://mine.example/v1"}
    assert load_settings(environ=trusted).settings.endpoint.url == "http://mine.example/v1"


def test_a_project_file_cannot_have_candidates_believed(project: Path) -> None:
    (project / "cudaperf.toml").write_text("[verify]\ntrust = 'own'\n")
    with pytest.raises(ConfigError, match="to be believed"):
        load_settings(environ={})
    for said in ({"CUDAPERF_VERIFY__TRUST": "own"}, {}):
        flags = {} if said else {"verify.trust": "own"}
        assert load_settings(flags, environ=said).settings.verify.trust == "own"
    (project / "cudaperf.toml").write_text("[verify]\ntrust = 'suspicious'\n")
    assert load_settings(environ={}).settings.verify.trust == "suspicious"


def test_every_setting_is_documented() -> None:
    assert [key for key, text in setting_keys().items() if not text.endswith((".", "`"))] == []


def test_every_variable_that_the_code_reads_is_known() -> None:
    import re

    known = set(READ_ELSEWHERE) | {environment_name(key) for key in setting_keys()}
    read = set()
    for folder in ("cudaperf_agent", "graph", "training", "tui"):
        for path in (ROOT / folder).rglob("*.py"):
            read |= set(re.findall(r"environ(?:\.get\(|\[)\s*[\"'](CUDAPERF_\w+)", path.read_text()))
            read |= set(re.findall(r"getenv\(\s*[\"'](CUDAPERF_\w+)", path.read_text()))
    assert read <= known


def test_config_show(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "cudaperf.toml").write_text("[translate]\nturns = 2\n")
    monkeypatch.setenv("CUDAPERF_ENDPOINT__API_KEY", "very-secret")
    done = cli("config", "show")
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert f"project file ({project / 'cudaperf.toml'}:2)" in rows["translate.turns"]
    assert "environment (CUDAPERF_ENDPOINT__API_KEY)" in rows["endpoint.api_key"]
    shown = cli("config", "show", "--json")
    assert shown.json["settings"]["translate.turns"] == {
        "value": 2,
        "layer": "project file",
        "place": f"{project / 'cudaperf.toml'}:2",
    }
    assert "very-secret" not in done.out + shown.out


def test_config_show_reports_a_bad_file(cli: Cli, project: Path) -> None:
    (project / "cudaperf.toml").write_text("[translate]\nturn = 2\n")
    done = cli("config", "show", "--json")
    assert done.code == 2
    assert done.json["error"]["kind"] == "configuration"
    assert done.json["error"]["where"].endswith("cudaperf.toml:2")
