"""The name of a policy decides; `auto` takes an endpoint that answers, else the variants, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import serving

from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.auto import choose_policy
from cudaperf_agent.policies.openai import EndpointConfig


async def name_of(name: str, endpoint: EndpointConfig | None = None) -> str:
    choice = await choose_policy(name, endpoint=endpoint)
    await choice.policy.aclose()
    return choice.policy.name


async def test_auto_without_an_endpoint_takes_the_variants_silently() -> None:
    choice = await choose_policy("auto")
    assert (choice.policy.name, choice.note) == ("variants", "")


async def test_auto_takes_an_endpoint_that_answers() -> None:
    with serving() as server:
        assert await name_of("auto", EndpointConfig(server.url)) == "openai:small-model"
        assert await name_of("auto", EndpointConfig(server.url, model="mine")) == "openai:mine"


async def test_auto_says_why_it_does_not_take_an_endpoint() -> None:
    with serving(key="right") as server:
        choice = await choose_policy("auto", endpoint=EndpointConfig(server.url, api_key="wrong"))
    assert choice.policy.name == "variants"
    assert server.url in choice.note
    assert "401" in choice.note


async def test_every_policy_can_be_made_again_from_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("answer")
    endpoint = EndpointConfig("http://127.0.0.1:9/v1", model="org/model:tag")
    for name in ("variants", f"scripted:{tmp_path}", "openai"):
        made = await name_of(name, endpoint)
        assert await name_of(made, endpoint) == made
    assert await name_of("openai:other", endpoint) == "openai:other"


@pytest.mark.parametrize("name", ["magic", "", "variants:x", "auto:x", "scripted", "scripted:"])
async def test_other_names_are_refused_with_the_list(name: str) -> None:
    with pytest.raises(UsageError, match="no policy") as caught:
        await choose_policy(name)
    assert "variants" in (caught.value.hint or "")


async def test_openai_needs_an_endpoint() -> None:
    with pytest.raises(UsageError) as caught:
        await choose_policy("openai")
    assert "CUDAPERF_ENDPOINT__URL" in (caught.value.hint or "")
