"""vLLM's own OpenAI server as a child process: started with settings that fit refinement, watched, stopped cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.smollm2 import NAME, check_smollm2, smollm2_folder

SMALL_MODEL = "smollm2"
"""What ``--model`` says for the model in the box."""


_GONE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How the server is started.

    Attributes:
        model: Hugging Face name or folder, or ``smollm2`` for the model in the box.
        adapter: LoRA folder served under the name ``cudaperf`` beside the bare model.
        host, port: Where it listens.
        tensor_parallel: GPUs the model is spread over.
        quantization: vLLM's name of a quantisation, ``bitsandbytes`` for instance.
        max_model_len: Longest sequence; `None` is the model's own, or what the GPU's memory holds if that is less.
        lora_rank: Largest rank of an adapter that may be loaded while it runs.
        dtype: Of the weights; ``auto`` is the model's own.
        extra: Further arguments for ``vllm serve``, as they are.
    """

    model: str = SMALL_MODEL
    adapter: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    tensor_parallel: int = 1
    quantization: str | None = None
    max_model_len: int | None = None
    lora_rank: int = 64
    dtype: str = "auto"
    extra: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Base URL of the OpenAI-compatible interface, as seen from this machine."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """The server's address as seen from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def served_name(self) -> str:
        """Model name that requests give: the adapter's if there is one."""
        return "cudaperf" if self.adapter else self.base_name

    @property
    def base_name(self) -> str:
        """Name of the bare model."""
        return NAME if self.model == SMALL_MODEL else self.model


def check_server(config: ServerConfig) -> None:
    """Find out quickly whether the server can be started.

    Raises:
        BackendUnavailable: vLLM or the small model's weights are not installed, or the adapter's folder holds none.
    """
    if config.adapter and not (config.adapter / "adapter_config.json").exists():
        raise BackendUnavailable(f"{config.adapter} is no peft adapter (it has no adapter_config.json)")
    _program()
    if config.model == SMALL_MODEL:
        check_smollm2()


def command(config: ServerConfig) -> list[str]:
    """The command line of the server.

    Raises:
        BackendUnavailable: vLLM is not installed, or the small model's weights are not.
    """
    start = _program()
    model = str(smollm2_folder()) if config.model == SMALL_MODEL else config.model
    line = [*start, model, "--served-model-name", config.base_name, "--host", config.host, "--port", str(config.port)]
    line += ["--dtype", config.dtype, "--tensor-parallel-size", str(config.tensor_parallel)]
    line += ["--enable-prefix-caching", "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"]
    line += ["--max-model-len", str(config.max_model_len or "auto")]
    if config.quantization:
        line += ["--quantization", config.quantization]
    if config.lora_rank:
        line += ["--enable-lora", "--max-lora-rank", str(config.lora_rank)]
    if config.adapter:
        line += ["--lora-modules", f"cudaperf={config.adapter}"]
    return [*line, *config.extra]


def _program() -> list[str]:
    """What to write before the model: vLLM of this Python if it is there, else the one on the path."""
    if importlib.util.find_spec("vllm") is not None:
        try:
            importlib.metadata.version("vllm")
        except importlib.metadata.PackageNotFoundError:
            # The distribution for CPUs has another name, for want of which `vllm serve` ends at once.
            return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model"]
        return [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]
    program = shutil.which("vllm")
    if program is None:
        raise BackendUnavailable("vLLM is not installed", hint='Install it with: pip install "cudaperf-agent[vllm]"')
    return [program, "serve"]


class VllmServer:
    """A running server. `start`, `wait_ready`, then `wait` until it ends or `stop` it."""

    def __init__(self, config: ServerConfig, *, on_line: Callable[[str], None]) -> None:
        self.config = config
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process; its log goes line by line to `on_line`.

        Raises:
            BackendUnavailable: As `check_server`.
        """
        check_server(self.config)
        line = await asyncio.to_thread(command, self.config)
        self._process = await asyncio.create_subprocess_exec(
            *line,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "VLLM_NO_USAGE_STATS": "1"},
            start_new_session=True,
            limit=1 << 22,
        )
        self._reader = asyncio.create_task(self._read())

    async def wait_ready(self, seconds: float, *, poll: float = 0.5) -> None:
        """Return once the server answers its health check.

        Raises:
            BackendUnavailable: It ended first, or `seconds` went by.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        while not await asyncio.to_thread(healthy, self.config):
            if self._process is None or self._process.returncode is not None:
                code = self._process.returncode if self._process else None
                raise BackendUnavailable(
                    f"vLLM ended with status {code} before it was ready", hint="See its log above."
                )
            if asyncio.get_running_loop().time() > deadline:
                await self.stop()
                raise BackendUnavailable(
                    f"vLLM was not ready after {seconds:.0f} s",
                    hint="Raise --start-timeout, or try --extra=--enforce-eager.",
                )
            await asyncio.sleep(poll)

    async def wait(self) -> int:
        """Its exit status, once it ends."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self, *, grace: float = 15.0) -> None:
        """Ask it to end, then make it: no worker of it stays behind."""
        process = self._process
        if process is None:
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            if process.returncode is None:
                _signal_group(process.pid, number)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), grace)
        _signal_group(process.pid, signal.SIGKILL)
        await process.wait()
        # The workers hold the GPU's memory until they are gone.
        with contextlib.suppress(TimeoutError, ProcessLookupError):
            async with asyncio.timeout(_GONE_SECONDS):
                while True:
                    os.killpg(process.pid, 0)
                    await asyncio.sleep(_GONE_SECONDS / 50)
        if self._reader:
            await asyncio.wait([self._reader], timeout=2)
            self._reader.cancel()

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            self._on_line(raw.decode("utf-8", "replace").rstrip())


def healthy(config: ServerConfig, *, seconds: float = 2.0) -> bool:
    """Whether the server says it is up."""
    try:
        with urllib.request.urlopen(f"{config.root}/health", timeout=seconds) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
