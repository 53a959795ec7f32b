"""`cudaperf serve` with a stand-in for vLLM's program: what it is told, what is recorded, and how everything ends.

The real server is tested by tests/policies/test_vllm_server.py, where vLLM is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cli_process import ROOT, Cli

from cudaperf_agent.cli.serve import server_config
from cudaperf_agent.execution.paths import config_dir, data_dir
from cudaperf_agent.policies.model_spec import shipped_adapter
from cudaperf_agent.policies.vllm_server import ServerConfig
from cudaperf_agent.settings_model import ServeSettings

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is not None, reason="the real vLLM is installed, which comes before a stand-in"
)

STAND_IN = """#!{python}
import http.server, json, os, sys
folder = {folder!r}
json.dump({{"argv": sys.argv[1:], "pid": os.getpid(), "lora": os.environ.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING")}},
          open(folder + "/seen.json", "w"))
print("the stand-in speaks", flush=True)
if {fails}:
    sys.exit("no GPU at all")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if self.path == "/die":
            os._exit(9)
    def log_message(self, *_): pass
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Serving:
    """A started `cudaperf serve`."""

    def __init__(self, folder: Path, *options: str, fails: bool = False) -> None:
        self.folder, self.port = folder, free_port()
        program = folder / "vllm"
        program.write_text(STAND_IN.format(python=sys.executable, folder=str(folder), fails=fails))
        program.chmod(0o755)
        command = [sys.executable, "-m", "cudaperf_agent.cli.main", "serve", "--port", str(self.port), *options]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def seen(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / "seen.json").read_text())
        return found

    def until(self, word: str) -> str:
        """What it says up to a line with this word."""
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if word in line:
                return said
        raise AssertionError(said)

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def alive(pid: object) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and bool(Path(f"/proc/{pid}/cmdline").read_bytes())


USER_TEXT = '# mine\n[endpoint]\nurl = "http://old/v1"  # the old one\n'


@pytest.fixture
def user_file() -> Path:
    path = config_dir() / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(USER_TEXT)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_the_default_endpoint_while_it_runs_and_ends_cleanly(
    tmp_path: Path, user_file: Path, number: signal.Signals
) -> None:
    serving = Serving(tmp_path, "--model", "org/model", "--max-model-len", "4096", "--extra=--seed", "--extra=7")
    serving.until("recorded as the default endpoint")
    recorded = tomllib.loads(user_file.read_text())["endpoint"]
    assert recorded == {"url": f"http://127.0.0.1:{serving.port}/v1", "model": "org/model"}
    argv = serving.seen["argv"]
    assert isinstance(argv, list)
    assert argv[:2] == ["serve", "org/model"]
    assert argv[-2:] == ["--seed", "7"]
    assert {"--enable-prefix-caching", "--enable-lora", "4096", "processed_logprobs"} <= set(argv)
    assert serving.seen["lora"] == "1"
    serving.process.send_signal(number)
    code, out, err = serving.ended()
    assert (code, out) == (0, f"http://127.0.0.1:{serving.port}/v1\n"), err
    assert "stopped" in err
    assert user_file.read_text() == USER_TEXT
    assert not alive(serving.seen["pid"])
    assert "the stand-in speaks" in (data_dir() / "serve.log").read_text()


@pytest.mark.slow
def test_a_server_that_does_not_start_is_an_error_with_the_end_of_its_log(tmp_path: Path, user_file: Path) -> None:
    code, out, err = Serving(tmp_path, "--model", "org/model", fails=True).ended()
    assert (code, out) == (3, "")
    assert "no GPU at all" in err
    assert "ended with status 1 before it was ready" in err
    assert str(data_dir() / "serve.log") in err
    assert user_file.read_text() == USER_TEXT


@pytest.mark.slow
def test_a_server_that_dies_later_is_an_error_and_forgotten(tmp_path: Path, user_file: Path) -> None:
    serving = Serving(tmp_path, "--model", "org/model")
    serving.until("recorded as the default endpoint")
    with socket.create_connection(("127.0.0.1", serving.port), timeout=10) as connection:
        connection.sendall(b"GET /die HTTP/1.0\r\n\r\n")
    code, _, err = serving.ended()
    assert code == 3
    assert "vLLM ended with status 9" in err
    assert user_file.read_text() == USER_TEXT


@pytest.mark.slow
def test_on_request_nothing_is_recorded(tmp_path: Path, user_file: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    serving = Serving(tmp_path, "--model", "org/model", "--no-record", "--adapter", str(adapter))
    serving.until("serving cudaperf at")
    assert user_file.read_text() == USER_TEXT
    argv = serving.seen["argv"]
    assert isinstance(argv, list)
    assert f"cudaperf={adapter}" in argv
    serving.process.terminate()
    assert serving.ended()[0] == 0


def test_the_small_model_is_served_with_the_shipped_adapter(tmp_path: Path) -> None:
    def made(**values: object) -> ServerConfig:
        return server_config(ServeSettings.model_validate(values))

    for model in ("smollm2", "smollm2-135m-instruct"):
        config = made(model=model)
        assert (config.adapter, config.served_name) == (shipped_adapter(), "cudaperf")
        assert config.base_name == "smollm2-135m-instruct"
        assert config.adapter is not None
        assert config.lora_rank >= json.loads((config.adapter / "adapter_config.json").read_text())["r"]
    assert made().adapter == shipped_adapter()
    for values in ({"adapter": "none"}, {"model": "org/model"}, {"lora_rank": 0}):
        assert made(**values).adapter is None
    assert made(model="org/model", adapter=str(tmp_path)).adapter == tmp_path


def test_a_port_in_use_is_said_at_once(cli: Cli) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = cli("serve", "--port", str(port))
    assert done.code == 2
    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in done.err
    assert f"--port {port + 1}" in done.err


def test_without_vllm_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli("serve", "--port", str(free_port()), "--model", "org/model")
    assert done.code == 3
    assert "cudaperf-agent[vllm]" in done.err
    assert "starting" not in done.err
    assert "serve.log" not in done.err
    assert not (config_dir() / "config.toml").exists()


@pytest.mark.parametrize("option", [("--adapter", "/nowhere"), ("--port", "0"), ("--max-model-len", "12")])
def test_wrong_options_are_named(
    cli: Cli, option: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli("serve", *(("--port", str(free_port())) if option[0] != "--port" else ()), *option)
    assert done.code in (2, 3)
    assert option[0] in done.err or option[1] in done.err
