"""The policy behind an OpenAI-compatible endpoint, a vLLM server among them, through langchain-core's chat models."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.policies.endpoint import probe

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_openai import ChatOpenAI

_T = TypeVar("_T")


MOST_TOKENS = 4096
"""Tokens of an answer where nothing else is said; thinking takes its share of them."""


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """An endpoint and how it is sampled; the documentation of each field is in `cudaperf_agent.settings_model`.

    Times are in seconds. `model` of `None` takes the first model that the endpoint lists, `max_tokens` of `None` is
    `MOST_TOKENS`. `logprobs` of `None` asks for none: who makes the policy looks whether the server gives them.
    """

    url: str
    model: str | None = None
    api_key: str | None = None
    temperature: float = 0.4
    top_p: float = 1.0
    max_tokens: int | None = None
    stream: bool = True
    logprobs: bool | None = None
    timeout: float = 300.0
    probe_timeout: float = 2.0
    retries: int = 4
    backoff: float = 0.5
    backoff_max: float = 30.0


class OpenAIPolicy:
    """Asks a chat model. It is bound to the event loop of its first call.

    A connection error, 429, 5xx or an answer outside the protocol is tried again with growing waits; after the last
    try it is a `BackendUnavailable`, as is at once what no repetition mends (a wrong key, an unknown model).
    """

    def __init__(self, config: EndpointConfig) -> None:
        """Connect to nothing yet."""
        self._config = config
        self._model_name = config.model
        self._chat: ChatOpenAI | None = None
        self._lock = asyncio.Lock()
        self._jitter = random.Random(config.url)

    @property
    def name(self) -> str:
        """``openai:MODEL``; ``openai`` while the endpoint has not been asked what it serves."""
        return f"openai:{self._model_name}" if self._model_name else "openai"

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """`request.n` completions; one is streamed to `request.on_token` if that is set.

        Raises:
            BackendUnavailable: The endpoint cannot be reached, refuses, or does not speak the protocol.
        """
        chat = await self._connected()
        seed = request.seed
        if request.n == 1 and self._config.stream:
            return [await self._retried(partial(self._streamed, chat, request, seed))]
        proposals: list[Proposal] = []
        while len(proposals) < request.n:
            # Some servers give one completion whatever `n` says; then the rest is asked for with other seeds.
            offset = len(proposals)
            wanted = request.n - offset
            own = None if seed is None else seed + offset
            proposals += (await self._retried(partial(self._generated, chat, request, own, wanted)))[:wanted]
        return proposals

    async def aclose(self) -> None:
        """Close the connections."""
        if self._chat is not None:
            await self._chat.root_async_client.close()
            self._chat = None

    async def _connected(self) -> ChatOpenAI:
        async with self._lock:
            if self._chat is None:
                if self._model_name is None:
                    self._model_name = await self._first_model()
                # The client takes a second to import: other trajectories go on meanwhile.
                self._chat = await asyncio.to_thread(_make_chat, self._config, self._model_name)
            return self._chat

    async def _first_model(self) -> str:
        config = self._config
        health = await probe(config.url, config.api_key, seconds=max(config.probe_timeout, 10.0))
        if not health.ok:
            raise self._unavailable(health.reason)
        if not health.models:
            raise self._unavailable("it serves no model")
        return health.models[0]

    def _unavailable(self, reason: str, hint: str | None = None) -> BackendUnavailable:
        return BackendUnavailable(
            f"the endpoint {self._config.url} is of no use: {reason}",
            where="endpoint.url",
            hint=hint or "start the server, set CUDAPERF_ENDPOINT__URL to the right address, or use --policy variants",
        )

    async def _streamed(self, chat: ChatOpenAI, request: ProposalRequest, seed: int | None) -> Proposal:
        collected = _Collected()
        async for chunk in chat.astream(_base_messages(request), seed=seed):
            text = str(chunk.text)
            collected.add(text, chunk.response_metadata, chunk.usage_metadata)
            if text and request.on_token:
                request.on_token(text)
        if not collected.finish_reason:
            raise ValueError("the stream ended before the answer did")
        return collected.proposal(self._model_name or "")

    async def _generated(self, chat: ChatOpenAI, request: ProposalRequest, seed: int | None, n: int) -> list[Proposal]:
        from langchain_core.outputs import ChatGeneration

        options: dict[str, Any] = {"n": n} if n > 1 else {}
        result = await chat.agenerate([_base_messages(request)], seed=seed, **options)
        proposals = []
        for index, generation in enumerate(result.generations[0]):
            if not isinstance(generation, ChatGeneration):
                raise TypeError("not a chat answer")
            collected = _Collected()
            # The usage is that of the whole call: counted once.
            usage = getattr(generation.message, "usage_metadata", None) if index == 0 else None
            collected.add(generation.text, generation.generation_info or {}, usage)
            proposals.append(collected.proposal(self._model_name or ""))
        if not proposals:
            raise ValueError("the answer held no choices")
        return proposals

    async def _retried(self, call: Callable[[], Awaitable[_T]]) -> _T:
        import openai

        config = self._config
        broken = _transport_error()
        failure, advice = "", None
        for attempt in range(config.retries + 1):
            wait = min(config.backoff * 2**attempt, config.backoff_max) * self._jitter.uniform(0.75, 1.25)
            try:
                return await call()
            except openai.APITimeoutError:
                failure, advice = f"no answer within {config.timeout:g} s", "raise endpoint.timeout"
            except openai.APIConnectionError as error:
                failure, advice = f"cannot connect ({error.__cause__ or error})", None
            except openai.APIStatusError as error:
                self._give_up_on(error)
                failure, advice = f"status {error.status_code}: {_said(error)}", None
                wait = _asked_wait(error, wait, config.backoff_max)
            except openai.APIError as error:
                failure, advice = _said(error), None
            except broken as error:
                failure, advice = f"the connection broke ({error or type(error).__name__})", None
            except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
                failure = f"its answer is not that of an OpenAI-compatible server ({str(error)[:200]})"
                advice = "check that the address ends in the API's version, as in http://localhost:8000/v1"
            if attempt < config.retries:
                await asyncio.sleep(wait)
        tries = f" (tried {config.retries + 1} times)" if config.retries else ""
        raise self._unavailable(failure + tries, advice)

    def _give_up_on(self, error: Any) -> None:
        """Raise for what no repetition mends."""
        code = error.status_code
        if code in (408, 409, 425, 429) or code >= 500:
            return
        hint = {
            401: "set the key: CUDAPERF_ENDPOINT__API_KEY",
            403: "set a key that may use this model: CUDAPERF_ENDPOINT__API_KEY",
            404: f"does it serve {self._model_name}? CUDAPERF_ENDPOINT__MODEL names the model, and the address ends in "
            "the API's version",
            400: "if the context is too short, lower prompt.max_tokens or endpoint.max_tokens, or set prompt.form = "
            '"compact"',
        }.get(code)
        raise self._unavailable(f"status {code}: {_said(error)}", hint) from None


@dataclass(slots=True)
class _Collected:
    text: str = ""
    finish_reason: str = ""
    usage: dict[str, int] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    def add(self, text: str, info: dict[str, Any], usage: Any) -> None:
        self.text += text
        self.finish_reason = info.get("finish_reason") or self.finish_reason
        if usage:
            self.usage = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
        if info.get("prompt_token_ids"):
            self.prompt_token_ids = tuple(info["prompt_token_ids"])
        self.token_ids += tuple(info.get("token_ids") or ())
        self.logprobs += tuple(float(t["logprob"]) for t in (info.get("logprobs") or {}).get("content") or ())

    def proposal(self, model: str) -> Proposal:
        return Proposal(
            self.text,
            finish_reason=self.finish_reason or "stop",
            model=model,
            prompt_token_ids=self.prompt_token_ids,
            token_ids=self.token_ids or None,
            logprobs=self.logprobs or None,
            usage=self.usage or {},
        )


def _base_messages(request: ProposalRequest) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[m.role](m.content) for m in request.messages]


def _said(error: Any) -> str:
    return " ".join(str(getattr(error, "message", error)).split())[:300]


def _asked_wait(error: Any, wait: float, longest: float) -> float:
    """What the server asks for in ``Retry-After``, if that is more than our own wait; never over `longest`."""
    try:
        asked = float(error.response.headers.get("retry-after", "0"))
    except ValueError:
        return wait
    return min(max(asked, wait), longest)


def _transport_error() -> type[Exception]:
    """What the client raises when a connection breaks amid a stream: of httpx, or of the fork that it is built on."""
    import openai

    for base in openai.DefaultAsyncHttpxClient.__mro__:
        package = base.__module__.partition(".")[0]
        if package.startswith("httpx"):
            found: type[Exception] = importlib.import_module(package).HTTPError
            return found
    raise BackendUnavailable(
        "the installed openai package has an HTTP client of an unknown kind",
        hint="pip install -U cudaperf-agent openai",
    )


def _make_chat(config: EndpointConfig, model: str) -> ChatOpenAI:
    import openai

    from cudaperf_agent.policies.chat_model import TokenChat

    extra: dict[str, Any] = {}
    if urlsplit(config.url).hostname != "api.openai.com":
        # Many servers know the older name only.
        extra["max_tokens"] = config.max_tokens or MOST_TOKENS
        if config.logprobs:
            extra["return_token_ids"] = True
    return TokenChat(
        base_url=config.url,
        model=model,
        # Never fall back to a key of the environment that was meant for another address.
        api_key=config.api_key or "none",  # type: ignore[arg-type]
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens or MOST_TOKENS,  # type: ignore[call-arg]
        logprobs=config.logprobs or None,
        timeout=config.timeout,
        stream_chunk_timeout=config.timeout,
        stream_usage=True,
        max_retries=0,
        # One of our own: the default one is shared between all chat models of the process, and so cannot be closed.
        http_async_client=openai.DefaultAsyncHttpxClient(timeout=config.timeout),
        use_responses_api=False,
        extra_body=extra or None,
    )
