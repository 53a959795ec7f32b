"""The endpoint policy against a real server on the loopback address: the protocol, its failures, and the way back."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from chat_server import ChatServer, Plan, serving
from saxpy_task import saxpy

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.base import Message, Policy, ProposalRequest
from cudaperf_agent.policies.endpoint import probe
from cudaperf_agent.policies.openai import EndpointConfig, OpenAIPolicy

REQUEST = ProposalRequest((Message("system", "be good"), Message("user", "translate")), saxpy(), seed=3)


@asynccontextmanager
async def policy_of(server: ChatServer, **changes: Any) -> AsyncIterator[OpenAIPolicy]:
    config = EndpointConfig(server.url, backoff=0.001, backoff_max=0.01, retries=2, timeout=20.0)
    policy = OpenAIPolicy(replace(config, **changes))
    try:
        yield policy
    finally:
        await policy.aclose()


async def test_tokens_are_streamed_and_everything_is_kept() -> None:
    with serving("some answer") as server:
        async with policy_of(server, logprobs=True, temperature=0.6, top_p=0.9, max_tokens=99) as policy:
            pieces: list[str] = []
            (proposal,) = await policy.propose(replace(REQUEST, on_token=pieces.append))
    assert isinstance(policy, Policy)
    assert pieces == ["some ", "answer"]
    assert proposal.text == "some answer"
    assert proposal.finish_reason == "length"
    assert proposal.usage == {"prompt_tokens": 11, "completion_tokens": 2}
    assert proposal.token_ids == (100, 101)
    assert proposal.logprobs == (-1.0, -2.0)
    assert proposal.prompt_token_ids == (1, 2, 3)
    assert proposal.model == "small-model"
    sent = server.requests[0]
    assert sent["messages"] == [{"role": "system", "content": "be good"}, {"role": "user", "content": "translate"}]
    assert (sent["model"], sent["temperature"], sent["top_p"], sent["max_tokens"]) == ("small-model", 0.6, 0.9, 99)
    assert sent["seed"] == 3
    assert sent["return_token_ids"] is True


@pytest.mark.parametrize("honours_n", [True, False])
async def test_several_completions(honours_n: bool) -> None:
    with serving("text", honours_n=honours_n) as server:
        async with policy_of(server, model="mine", logprobs=True) as policy:
            proposals = await policy.propose(replace(REQUEST, n=3))
    assert len(proposals) == 3
    assert len(server.requests) == (1 if honours_n else 3)
    assert len({r["seed"] for r in server.requests}) == len(server.requests)
    if honours_n:
        assert [p.text for p in proposals] == ["text#0", "text#1", "text#2"]
        assert [p.token_ids for p in proposals] == [(0, 1), (1, 2), (2, 3)]
        assert [p.logprobs for p in proposals] == [(-0.5,), (-1.5,), (-2.5,)]
        assert [p.usage for p in proposals] == [{"prompt_tokens": 11, "completion_tokens": 21}, {}, {}]
        assert {p.finish_reason for p in proposals} == {"stop"}


PASSING = [429, 500, 503, "garbage", "html", "drop"]
ONLY_OF_STREAMS = ["not-json-stream", "empty-stream", "half-stream"]


@pytest.mark.parametrize(
    ("plan", "stream"),
    [*((p, s) for p in PASSING for s in (True, False)), *((p, True) for p in ONLY_OF_STREAMS)],
)
async def test_a_failure_that_passes_is_tried_again(plan: Plan, stream: bool) -> None:
    with serving(plan=[plan, plan]) as server:
        async with policy_of(server, stream=stream) as policy:
            (proposal,) = await policy.propose(REQUEST)
    assert proposal.text.startswith("hello world")
    assert len(server.requests) == 3


@pytest.mark.parametrize("plan", [429, 500, "garbage", "drop", "empty-stream"])
async def test_a_failure_that_stays_is_a_backend_error_with_a_remedy(plan: Plan) -> None:
    with serving(plan=[plan] * 9) as server:
        async with policy_of(server) as policy:
            with pytest.raises(BackendUnavailable, match="tried 3 times") as caught:
                await policy.propose(REQUEST)
    assert len(server.requests) == 3
    assert caught.value.exit_code == 3
    assert caught.value.hint


@pytest.mark.parametrize(("status", "word"), [(401, "API_KEY"), (404, "MODEL"), (400, "max_tokens")])
async def test_what_no_repetition_mends_fails_at_once(status: int, word: str) -> None:
    with serving(plan=[status]) as server:
        async with policy_of(server) as policy:
            with pytest.raises(BackendUnavailable, match=f"planned {status}") as caught:
                await policy.propose(REQUEST)
    assert len(server.requests) == 1
    assert word in (caught.value.hint or "")


async def test_the_wait_a_server_asks_for_is_kept_within_our_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def no_sleep(seconds: float) -> None:
        waits.append(seconds)

    with serving(plan=[429, 500, 500]) as server:
        server.retry_after = "7"
        async with policy_of(server, retries=3, backoff=1.0, backoff_max=5.0) as policy:
            await policy._connected()
            monkeypatch.setattr("cudaperf_agent.policies.openai.asyncio.sleep", no_sleep)
            await policy.propose(REQUEST)
    assert waits[0] == 5.0
    assert 1.5 <= waits[1] <= 2.5
    assert 3.0 <= waits[2] <= 5.0


async def test_the_key_goes_to_the_server_and_no_other_key_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-address")
    with serving(key="right") as server:
        async with policy_of(server, api_key="right") as policy:
            assert (await policy.propose(REQUEST))[0].text == "hello world"
        async with policy_of(server, model="m") as keyless:
            with pytest.raises(BackendUnavailable, match="wrong key"):
                await keyless.propose(REQUEST)


async def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        policy = OpenAIPolicy(EndpointConfig(url, retries=0))
        with pytest.raises(BackendUnavailable, match="refused") as caught:
            await policy.propose(REQUEST)
        assert "CUDAPERF_ENDPOINT__URL" in (caught.value.hint or "")
        assert not (await probe(url)).ok


async def test_the_probe_tells_what_is_served_or_why_not() -> None:
    with serving(key="right") as server:
        health = await probe(server.url, "right")
        assert (health.ok, health.models) == (True, ("small-model", "other"))
        denied = await probe(server.url + "/", "wrong")
        assert (denied.ok, "401" in denied.reason) == (False, True)
