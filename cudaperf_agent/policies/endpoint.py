"""Whether an OpenAI-compatible endpoint is there, and what it serves: asked without any client library."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """What an endpoint answered to ``GET /models``.

    Attributes:
        url: The base URL that was asked.
        ok: Whether it answered as the protocol says.
        models: Names of the models it serves.
        reason: Why it is not ok, one phrase.
        vllm: Whether it says that it is vLLM, which can give token ids and log-probabilities.
        contexts: By model, its longest sequence in tokens, where the server tells.
        parents: By adapter, the name of the model that it belongs to, where the server tells.
    """

    url: str
    ok: bool
    models: tuple[str, ...] = ()
    reason: str = ""
    vllm: bool = False
    contexts: Mapping[str, int] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # A redirect would carry the key along to wherever it points.
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


async def probe(url: str, api_key: str | None = None, *, seconds: float = 2.0) -> EndpointHealth:
    """Ask an endpoint for its models.

    Args:
        url: Base URL with the version.
        api_key: Sent as a bearer token.
        seconds: How long to wait for each step of the answer.
    """
    return await asyncio.to_thread(probe_now, url, api_key, seconds=seconds)


def probe_now(url: str, api_key: str | None = None, *, seconds: float = 2.0) -> EndpointHealth:
    """`probe` for callers without an event loop."""
    request = urllib.request.Request(f"{url.rstrip('/')}/models", headers={"Accept": "application/json"})
    if api_key:
        request.add_header("Authorization", f"Bearer {api_key}")
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            data: Any = json.loads(answer.read(4_000_000))
    except urllib.error.HTTPError as error:
        return EndpointHealth(url, False, reason=f"it answers with status {error.code}")
    except urllib.error.URLError as error:
        return EndpointHealth(url, False, reason=_plain(error.reason))
    except TimeoutError:
        return EndpointHealth(url, False, reason=f"no answer within {seconds:g} s")
    except (OSError, http.client.HTTPException) as error:
        return EndpointHealth(url, False, reason=_plain(error))
    except ValueError:
        return EndpointHealth(url, False, reason="it answers with something that is not JSON")
    entries = data.get("data") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        return EndpointHealth(url, False, reason="its answer is not that of an OpenAI-compatible server")
    models = {str(entry["id"]): entry for entry in entries if isinstance(entry, dict) and "id" in entry}
    parents = {name: entry["parent"] for name, entry in models.items() if isinstance(entry.get("parent"), str)}
    lengths = {name: models.get(parents.get(name, name), {}).get("max_model_len") for name in models}
    return EndpointHealth(
        url,
        True,
        tuple(models),
        vllm=any(entry.get("owned_by") == "vllm" for entry in models.values()),
        contexts={name: length for name, length in lengths.items() if isinstance(length, int)},
        parents=parents,
    )


def _plain(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return text[:1].lower() + text[1:] if text else type(reason).__name__
