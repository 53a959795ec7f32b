"""A served model from start to end: progress, the default endpoint while it is up, and a clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cudaperf_agent.cli import user_file
from cudaperf_agent.cli.output import put, say
from cudaperf_agent.cli.signals import termination_interrupts
from cudaperf_agent.errors import BackendUnavailable, CudaPerfError
from cudaperf_agent.execution.paths import config_dir, data_dir
from cudaperf_agent.policies.vllm_server import ServerConfig, VllmServer, check_server
from cudaperf_agent.settings import USER_FILE, load_settings
from graph import loop

_PROGRESS_SECONDS = 5.0
_TAIL_LINES = 25
_LINE = 110


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


def run_server(config: ServerConfig, start_timeout: float, *, record: bool) -> None:
    """Start the server, say when it is up, and stop it at Ctrl-C or when the process is asked to end.

    Raises:
        BackendUnavailable: Something that it needs is missing, which is said before anything else; or it does not
            start, or ends by itself, and the end of its log has been shown.
    """
    check_server(config)
    path = data_dir() / "serve.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    recorded = config_dir() / USER_FILE
    stopping = _Stopping()

    def on_ready() -> None:
        put(config.url)
        say(f"serving {config.served_name} at {config.url}; Ctrl-C ends it")
        if record:
            _record(recorded, config)

    with path.open("w", encoding="utf-8") as file, termination_interrupts(hangup=True):
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
                _forget(recorded)


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
    try:
        user_file.forget(path)
    except CudaPerfError as error:
        say(f"the default endpoint could not be taken back: {error}")
