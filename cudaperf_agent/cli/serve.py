"""`cudaperf serve`: the options, and whether the port can be had; `cli.serving` runs the server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from cudaperf_agent.policies.vllm_server import ServerConfig
    from cudaperf_agent.settings_model import ServeSettings


def serve(
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Hugging Face name or folder; smollm2 is the one in the box.")
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="LoRA folder, served as `cudaperf` beside the bare model; none, shipped."),
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
    from cudaperf_agent.cli.serving import run_server
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
    config = server_config(wanted, tuple(extra or ()))
    check_port(config.host, config.port)
    run_server(config, wanted.start_timeout, record=record)
    return 0


def server_config(wanted: ServeSettings, extra: tuple[str, ...] = ()) -> ServerConfig:
    """What the server is started with; the shipped adapter goes with the small model, unless adapters are off."""
    from cudaperf_agent.policies.model_spec import chosen_adapter
    from cudaperf_agent.policies.smollm2 import NAME
    from cudaperf_agent.policies.vllm_server import SMALL_MODEL, ServerConfig

    model = SMALL_MODEL if wanted.model == NAME else wanted.model
    adapter = chosen_adapter(wanted.adapter, in_the_box=model == SMALL_MODEL and wanted.lora_rank > 0)
    return ServerConfig(
        **wanted.model_dump(exclude={"start_timeout", "model", "adapter"}),
        model=model,
        adapter=adapter.expanduser().absolute() if adapter else None,
        extra=extra,
    )


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
