"""`cudaperf serve`: vLLM's server with settings that fit refinement, recorded as the default endpoint while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.output import put, say
from cudaperf_agent.errors import BackendUnavailable, CudaPerfError, UsageError

if TYPE_CHECKING:
    from cudaperf_agent.policies.vllm_server import ServerConfig, VllmServer

_PROGRESS_SECONDS = 5.0
_TAIL_LINES = 25
_LINE = 110


def serve(
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Hugging Face name or folder; smollm2 is the one in the box.")
    ] = None,
    adapter: Annotated[
        Path | None, typer.Option(metavar="DIR", help="LoRA folder, served as `cudaperf` beside the bare model.")
    ] = None,
    tensor_parallel: Annotated[int | None, typer.Option(metavar="N", help="GPUs the model is spread over.")] = None,
    quantization: Annotated[
        str | None, typer.Option(metavar="NAME", help="vLLM's name of a quantisation, bitsandbytes for instance.")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(metavar="N", help="Longest sequence in tokens.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="NAME", help="Type of the weights.")] = None,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(metavar="N", help="Port to listen on.")] = None,
    start_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long it may take to start.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Make it the default endpoint while it runs.")
    ] = True,
    extra: Annotated[
        list[str] | None,
        typer.Option(metavar="ARGUMENT", help="Further argument for vLLM: --extra=--enforce-eager; repeat for more."),
    ] = None,
) -> int:
    """Serve a model with vLLM until Ctrl-C.

    Prefix caching and LoRA adapters are on, and the server gives token ids and log-probabilities. Once it answers its
    health check, its address is printed on stdout and written to the user's config.toml as the default endpoint, so
    that `cudaperf translate` uses it; at the end what was there before comes back. vLLM's own log goes to serve.log in
    the data folder.
    """
    from cudaperf_agent.policies.vllm_server import ServerConfig
    from cudaperf_agent.settings import load_settings

    flags = {
        "serve.model": model,
        "serve.adapter": adapter,
        "serve.tensor_parallel": tensor_parallel,
        "serve.quantization": quantization,
        "serve.max_model_len": max_model_len,
        "serve.dtype": dtype,
        "serve.host": host,
        "serve.port": port,
        "serve.start_timeout": start_timeout,
    }
    wanted = load_settings(flags).settings.serve
    values = wanted.model_dump(exclude={"start_timeout"})
    if wanted.adapter:
        values["adapter"] = wanted.adapter.expanduser().absolute()
    config = ServerConfig(**values, extra=tuple(extra or ()))
    check_port(config.host, config.port)
    _run(config, wanted.start_timeout, record=record)
    return 0


def check_port(host: str, port: int) -> None:
    """Find out early whether the port can be had.

    Raises:
        UsageError: It is in use, or may not be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"cannot listen on {host}:{port}: {reason}",
            where="--port",
            hint=f"another server may be running there; name another port: --port {port + 1}",
        ) from None


@dataclass(slots=True)
class _Log:
    """vLLM's own log: in a file, with its end kept for when the start fails."""

    file: IO[str]
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))

    def line(self, text: str) -> None:
        self.file.write(text + "\n")
        self.file.flush()
        if text.strip():
            self.tail.append(text)


def _run(config: ServerConfig, start_timeout: float, *, record: bool) -> None:
    from cudaperf_agent.execution.paths import config_dir, data_dir
    from cudaperf_agent.settings import USER_FILE
    from graph import loop

    path = data_dir() / "serve.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    user_file = config_dir() / USER_FILE
    stopping = _Stopping()

    def on_ready() -> None:
        put(config.url)
        say(f"serving {config.served_name} at {config.url}; Ctrl-C ends it")
        if record:
            _record(user_file, config)

    with path.open("w", encoding="utf-8") as file, _ends_by_signal():
        log = _Log(file)
        try:
            loop.run(_serve(config, start_timeout, log, stopping, on_ready), on_interrupt=stopping.set)
        except BackendUnavailable:
            for line in log.tail:
                say(f"  {line}")
            say(f"vLLM's whole log: {path}")
            raise
        except KeyboardInterrupt:
            say("stopped at once")
        finally:
            if record:
                _forget(user_file)


class _Stopping:
    """An event that a signal handler sets and the loop's coroutines wait for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early = False

    def set(self) -> None:
        self._early = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._early:
            return
        await self._event.wait()


async def _serve(
    config: ServerConfig, start_timeout: float, log: _Log, stopping: _Stopping, on_ready: Callable[[], None]
) -> None:
    from cudaperf_agent.policies.vllm_server import VllmServer

    server = VllmServer(config, on_line=log.line)
    stop = asyncio.create_task(stopping.wait())
    started = time.monotonic()
    starting = asyncio.create_task(_started(server, start_timeout))
    try:
        say(f"starting vLLM with {config.base_name}" + (f" and {config.adapter}" if config.adapter else ""))
        while not await _first(starting, stop, seconds=_PROGRESS_SECONDS):
            last = log.tail[-1] if log.tail else "no word from vLLM yet"
            say(f"{time.monotonic() - started:4.0f} s: {last[:_LINE]}")
        if stop.done():
            return
        starting.result()
        on_ready()
        ended = asyncio.create_task(server.wait())
        await _first(ended, stop)
        if not stop.done():
            raise BackendUnavailable(f"vLLM ended with status {ended.result()}", hint="see its log above")
    finally:
        say("stopping vLLM")
        stop.cancel()
        # A start that is under way is let go on to where there is a process that can be stopped.
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, CudaPerfError):
            await starting
        await server.stop()
        say("stopped")


async def _started(server: VllmServer, seconds: float) -> None:
    await server.start()
    await server.wait_ready(seconds)


async def _first(*tasks: asyncio.Task[Any], seconds: float | None = None) -> bool:
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


def _record(path: Path, config: ServerConfig) -> None:
    from cudaperf_agent.cli import user_file
    from cudaperf_agent.settings import load_settings

    try:
        user_file.record(path, "endpoint", {"url": config.url, "model": config.served_name})
        loaded = load_settings()
    except CudaPerfError as error:
        say(f"not recorded as the default endpoint: {error}")
        say(f"  use it by CUDAPERF_ENDPOINT__URL={config.url}")
        return
    say(f"recorded as the default endpoint in {path}")
    for key in ("endpoint.url", "endpoint.model"):
        origin = loaded.origins[key]
        if origin.layer != "user file":
            say(f"  but {key} is set by the {origin}, which comes first")


def _forget(path: Path) -> None:
    from cudaperf_agent.cli import user_file

    try:
        user_file.forget(path)
    except CudaPerfError as error:
        say(f"the default endpoint could not be taken back: {error}")


@contextlib.contextmanager
def _ends_by_signal() -> Iterator[None]:
    """Whoever stops the process in an orderly way, or closes its terminal, gets the orderly end of Ctrl-C."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
