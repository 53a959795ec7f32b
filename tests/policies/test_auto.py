"""The name of a policy decides; `auto` takes endpoint, local model with adapter or variants, and says why."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import serving

from cudaperf_agent.cli.parts import policy_config
from cudaperf_agent.errors import BackendUnavailable, UsageError
from cudaperf_agent.policies import auto
from cudaperf_agent.policies.auto import PolicyConfig, choose_policy
from cudaperf_agent.policies.local import LocalConfig
from cudaperf_agent.policies.model_spec import shipped_adapter
from cudaperf_agent.policies.openai import EndpointConfig
from cudaperf_agent.policies.vllm import VllmConfig
from cudaperf_agent.settings import load_settings


async def name_of(name: str, endpoint: EndpointConfig | None = None) -> str:
    choice = await choose_policy(name, PolicyConfig(endpoint))
    await choice.policy.aclose()
    return choice.policy.name


@pytest.fixture(params=[None, "torch"])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """What the local extra lacks."""
    monkeypatch.setattr(auto, "local_missing", lambda model: request.param)
    return request.param


async def test_auto_without_any_model_takes_the_variants_and_says_why(missing: str | None) -> None:
    choice = await choose_policy("auto")
    assert choice.policy.name == "variants"
    assert "takes the variants" in choice.note
    assert "no endpoint is configured" in choice.note
    assert ("torch is not installed" if missing else "no local model has an adapter") in choice.note


async def test_auto_takes_a_local_model_with_an_adapter_where_it_can_run(missing: str | None, tmp_path: Path) -> None:
    choice = await choose_policy("auto", PolicyConfig(local=LocalConfig(adapter=tmp_path)))
    wanted = "variants" if missing else f"local:smollm2-135m-instruct+{tmp_path}"
    assert choice.policy.name == wanted
    assert wanted in choice.note
    await choice.policy.aclose()


async def test_auto_takes_the_adapter_that_is_shipped(
    missing: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shipped = shipped_adapter()
    settings = load_settings(environ={}, files=False).settings
    choice = await choose_policy("auto", policy_config(settings, 5))
    # What the small model fails at is the generator's, in the same run.
    wanted = f"ensemble:local:smollm2-135m-instruct+{shipped}"
    assert choice.policy.name == ("variants" if missing else wanted)
    assert missing or "the variants help where it fails" in choice.note
    assert choice.small is not bool(missing)
    await choice.policy.aclose()
    for flags, module, why in (
        ({"local.adapter": "none"}, False, "no local model has an adapter"),
        # It belongs to the model in the box alone, and has learned C alone.
        ({"local.model": tmp_path}, False, "no local model has an adapter"),
        ({}, True, "has learned C, not PyTorch"),
    ):
        settings = load_settings(flags, environ={}, files=False).settings
        other = await choose_policy("auto", policy_config(settings, 5, module=module))
        assert other.policy.name == "variants"
        assert (f"{missing} is not installed" if missing else why) in other.note


async def test_local_and_vllm_have_the_shipped_adapter_unless_told_otherwise(tmp_path: Path) -> None:
    shipped = shipped_adapter()
    assert shipped is not None
    for kind in ("local", "vllm"):
        for flags, wanted in (
            ({}, f"{kind}:smollm2-135m-instruct+{shipped}"),
            ({f"{kind}.adapter": "none"}, f"{kind}:smollm2-135m-instruct"),
            ({f"{kind}.adapter": str(tmp_path)}, f"{kind}:smollm2-135m-instruct+{tmp_path}"),
            ({f"{kind}.model": str(tmp_path)}, f"{kind}:{tmp_path}"),
        ):
            config = policy_config(load_settings(flags, environ={}, files=False).settings, 5)
            choice = await choose_policy(kind, config)
            assert choice.policy.name == wanted
            # The same again, whatever the settings say by then.
            assert (await choose_policy(wanted)).policy.name == wanted


async def test_auto_takes_an_endpoint_that_answers_before_a_local_model(tmp_path: Path) -> None:
    with serving() as server:
        config = PolicyConfig(EndpointConfig(server.url), LocalConfig(adapter=tmp_path))
        choice = await choose_policy("auto", config)
        assert choice.policy.name == "openai:small-model"
        assert server.url in choice.note
        assert await name_of("auto", EndpointConfig(server.url, model="mine")) == "openai:mine"


async def test_auto_says_why_it_does_not_take_an_endpoint() -> None:
    with serving(key="right") as server:
        choice = await choose_policy("auto", PolicyConfig(EndpointConfig(server.url, api_key="wrong")))
    assert choice.policy.name == "variants"
    assert server.url in choice.note
    assert "401" in choice.note


async def test_every_policy_can_be_made_again_from_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "a.md").write_text("answer")
    odd = tmp_path / "models" / "c++" / "small+fast"
    odd.mkdir(parents=True)
    endpoint = EndpointConfig("http://127.0.0.1:9/v1", model="org/model:tag")
    names = [
        "variants",
        f"scripted:{tmp_path / 'script'}",
        "openai",
        "openai:other",
        "local",
        "vllm",
        "vllm:Qwen/Qwen3-8B",
    ]
    names += [f"{kind}:{odd}{adapter}" for kind in ("local", "vllm") for adapter in ("", f"+{odd}")]
    names += ["local:smollm2-135m-instruct+adapter", "ensemble:openai", f"ensemble:local:{odd}+{odd}"]
    for name in names:
        made = await name_of(name, endpoint)
        assert await name_of(made, endpoint) == made
        assert "+" not in name.replace(str(odd), "") or made.count("+") >= name.count("+")
    assert await name_of(f"vllm:{odd}+{odd}") == f"vllm:{odd}+{odd}"
    assert await name_of("openai:other", endpoint) == "openai:other"


async def test_a_bare_name_takes_model_and_adapter_of_the_settings(tmp_path: Path) -> None:
    config = PolicyConfig(
        local=LocalConfig(model=tmp_path, adapter=tmp_path), vllm=VllmConfig(model="Qwen/Qwen3-8B", adapter=tmp_path)
    )
    for name, wanted in (("local", f"local:{tmp_path}+{tmp_path}"), ("vllm", f"vllm:Qwen/Qwen3-8B+{tmp_path}")):
        assert (await choose_policy(name, config)).policy.name == wanted
    # What the name says, it says in full: no adapter of the settings comes on top of another model.
    assert (await choose_policy("vllm:Qwen/Qwen3-14B", config)).policy.name == "vllm:Qwen/Qwen3-14B"
    assert (await choose_policy("local:smollm2-135m-instruct", config)).policy.name == "local:smollm2-135m-instruct"


async def test_small_models_are_told_by_context_parent_and_name(tmp_path: Path) -> None:
    with serving() as server:
        server.models = [
            {"id": "Qwen/Qwen3-8B", "owned_by": "vllm", "max_model_len": 40960},
            {"id": "big-adapter", "owned_by": "vllm", "parent": "Qwen/Qwen3-8B"},
            {"id": "smollm2-135m-instruct", "owned_by": "vllm", "max_model_len": 32768},
            {"id": "cudaperf", "owned_by": "vllm", "parent": "smollm2-135m-instruct"},
            {"id": "short", "owned_by": "vllm", "max_model_len": 8192},
        ]
        small = {
            entry["id"]: (await choose_policy(f"openai:{entry['id']}", PolicyConfig(EndpointConfig(server.url)))).small
            for entry in server.models
        }
    assert small == {
        "Qwen/Qwen3-8B": False,
        "big-adapter": False,
        "smollm2-135m-instruct": True,
        "cudaperf": True,
        "short": True,
    }
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 40960}')
    assert not (await choose_policy(f"local:{tmp_path}")).small
    assert (await choose_policy("local")).small
    assert not (await choose_policy("vllm:Qwen/Qwen3-30B-A3B")).small
    assert (await choose_policy("vllm:Qwen/Qwen3-0.6B")).small


async def test_token_ids_are_asked_of_vllm_only_unless_the_settings_say_otherwise() -> None:
    from test_openai import REQUEST

    with serving() as server:
        for owner, setting, wanted in (
            ("vllm", None, True),
            ("someone", None, False),
            ("someone", True, True),
            ("vllm", False, False),
        ):
            server.models = [{"id": "m", "owned_by": owner}]
            choice = await choose_policy("openai", PolicyConfig(EndpointConfig(server.url, logprobs=setting)))
            await choice.policy.propose(REQUEST)
            await choice.policy.aclose()
            assert bool(server.requests[-1].get("return_token_ids")) is wanted
            assert bool(server.requests[-1].get("logprobs")) is wanted


@pytest.mark.parametrize(
    "name",
    ["magic", "", "variants:x", "auto:x", "auto:", "scripted", "scripted:", "ensemble:variants", "ensemble:ensemble"],
)
async def test_other_names_are_refused_with_the_list(name: str) -> None:
    with pytest.raises(UsageError, match="no policy") as caught:
        await choose_policy(name)
    assert "variants" in (caught.value.hint or "")


async def test_openai_needs_an_endpoint() -> None:
    with pytest.raises(UsageError) as caught:
        await choose_policy("openai")
    assert "CUDAPERF_ENDPOINT__URL" in (caught.value.hint or "")


async def test_the_ensemble_needs_a_model(missing: str | None) -> None:
    with pytest.raises(BackendUnavailable, match="no endpoint is configured"):
        await choose_policy("ensemble")
    with serving() as server:
        assert await name_of("ensemble", EndpointConfig(server.url)) == "ensemble:openai:small-model"


@pytest.mark.parametrize(("name", "library"), [("local", "torch"), ("ensemble:local", "torch"), ("vllm", "vllm")])
async def test_a_missing_library_is_told_before_anything_about_weights(
    name: str, library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path))  # nothing is unpacked yet
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == library else found(name, *a))
    choice = await choose_policy(name)
    assert choice.sentences == ()
    with pytest.raises(BackendUnavailable, match=f"^{library} is not installed") as caught:
        choice.check()
    extra = "vllm" if library == "vllm" else "local"
    assert f'pip install "cudaperf-agent[{extra}]"' in str(caught.value.hint)
    await choice.policy.aclose()
