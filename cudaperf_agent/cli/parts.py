"""The composition root: from settings to the parts of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from cudaperf_agent.settings_model import EndpointSettings, PromptSettings, Settings

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verdict import Trust
    from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
    from cudaperf_agent.policies.auto import PolicyConfig
    from cudaperf_agent.policies.base import Policy
    from cudaperf_agent.policies.openai import EndpointConfig
    from cudaperf_agent.store.repository import Store
    from cudaperf_agent.tasks.model import Task
    from graph.context import Deps


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made with, as long as it is at work.

    Attributes:
        deps: Of the graph.
        verifier: Who judges.
        policy: Who proposes, as it was chosen: `deps` may hold it with turns at the device.
        check: Raises where the policy can't do without something that is missing.
    """

    deps: Deps
    verifier: Verifier
    policy: Policy
    check: Callable[[], None]


@asynccontextmanager
async def run_parts(
    settings: Settings,
    policy_name: str,
    turns: int,
    seed: int,
    say: Callable[[str], None],
    *,
    module: bool = False,
    emulator: bool = False,
    config: VerifierConfig | None = None,
) -> AsyncIterator[Parts]:
    """Make the parts, and close them.

    Args:
        settings: All settings.
        policy_name: As the user gives it; ``auto`` too.
        turns: Of a trajectory.
        seed: Of the test inputs.
        say: Called with sentences for the user about the choice of the policy.
        module: Whether a PyTorch module is translated.
        emulator: Whether candidates are tested on the emulator also where there is a GPU.
        config: Numbers of the verifier.
    """
    from cudaperf_agent.policies.auto import choose_policy

    verifier = make_verifier(seed, emulator=emulator, config=config)
    try:
        choice = await choose_policy(policy_name, policy_config(settings, turns, module=module))
        try:
            for sentence in choice.sentences:
                say(sentence)
            with open_store(settings) as store:
                policy = taking_turns(choice.policy, verifier, settings)
                deps = make_deps(policy, verifier, store, settings.prompt, small=choice.small)
                yield Parts(deps, verifier, choice.policy, choice.check)
        finally:
            await choice.policy.aclose()
    finally:
        await verifier.aclose()


def open_store(settings: Settings) -> Store:
    """The store that the settings name."""
    from cudaperf_agent.store.repository import Store

    return Store(settings.database_url)


def make_verifier(
    seed: int, *, emulator: bool = False, trust: Trust = "suspicious", config: VerifierConfig | None = None
) -> Verifier:
    """On the GPU where there is one, else (or where it is asked for) on the emulator."""
    from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig

    numbers = replace(config or VerifierConfig(), seed=seed, trust=trust)
    return Verifier(numbers, gpu=None if emulator else "auto")


def endpoint_config(endpoint: EndpointSettings) -> EndpointConfig | None:
    """The configured endpoint, if there is one."""
    from cudaperf_agent.policies.openai import EndpointConfig

    if endpoint.url is None:
        return None
    values = endpoint.model_dump(exclude={"api_key"})
    return EndpointConfig(**values, api_key=endpoint.api_key.get_secret_value() if endpoint.api_key else None)


def policy_config(settings: Settings, turns: int, *, module: bool = False) -> PolicyConfig:
    """What the policies are made of; `module` says that PyTorch modules are to be translated."""
    from cudaperf_agent.policies.auto import PolicyConfig
    from cudaperf_agent.policies.local import LocalConfig
    from cudaperf_agent.policies.model_spec import chosen_adapter
    from cudaperf_agent.policies.sampling import SamplingConfig
    from cudaperf_agent.policies.vllm import VllmConfig

    drawn = {"temperature", "top_p", "max_tokens"}
    other = drawn | {"adapter"}
    local, vllm = settings.local, settings.vllm
    return PolicyConfig(
        endpoint_config(settings.endpoint),
        LocalConfig(
            **local.model_dump(exclude=other),
            adapter=chosen_adapter(local.adapter, in_the_box=local.model is None),
            sampling=SamplingConfig(**local.model_dump(include=drawn)),
        ),
        VllmConfig(
            **vllm.model_dump(exclude=other),
            adapter=chosen_adapter(vllm.adapter, in_the_box=vllm.model is None and vllm.lora_rank > 0),
            sampling=SamplingConfig(**vllm.model_dump(include=drawn)),
        ),
        turns,
        module,
    )


def taking_turns(policy: Policy, verifier: Verifier, settings: Settings) -> Policy:
    """The policy; where its model may be on the GPU that calls are timed on, one that never generates meanwhile."""
    from graph.device_turns import with_device_turns

    if verifier.backend != "gpu" or not may_generate_here(policy.name, settings.endpoint):
        return policy
    return with_device_turns(policy, lambda: verifier.place.alone(cpu=False))


def may_generate_here(policy: str, endpoint: EndpointSettings) -> bool:
    """Whether a policy of this name may use the GPU of this machine; a server elsewhere does not."""
    from urllib.parse import urlsplit

    kind = policy.removeprefix("ensemble:").partition(":")[0]
    host = urlsplit(endpoint.url or "").hostname or ""
    near = host in ("localhost", "::1") or host.startswith("127.")
    return kind in ("local", "vllm") or (kind == "openai" and near)


def make_deps(policy: Policy, verifier: Verifier, store: Store, prompt: PromptSettings, *, small: bool) -> Deps:
    """The graph's dependencies; `small` decides the prompt's form where the settings leave it open."""
    from cudaperf_agent.policies.examples import SHIPPED, ExamplePool
    from cudaperf_agent.policies.parse_answer import parse_answer
    from cudaperf_agent.policies.prompts import PromptConfig, build_messages
    from graph.assessing import assess, write_feedback
    from graph.context import Deps

    compact = small if prompt.form == "auto" else prompt.form == "compact"
    config = PromptConfig.compact() if compact else PromptConfig(total=prompt.max_tokens)
    pool = None
    if prompt.examples != "none" and not compact:
        pool = ExamplePool.load(SHIPPED if isinstance(prompt.examples, str) else prompt.examples)
    return Deps(
        policy=policy,
        verifier=verifier,
        store=store,
        build_messages=partial(build_messages, config=config, selector=pool),
        parse_answer=parse_answer,
        assess=assess,
        write_feedback=write_feedback,
    )


def tell_of_building(verifier: Verifier, say: Callable[[str], None]) -> None:
    """Say what the first test waits for, where the emulator that it needs is not built yet."""
    from cudaperf_agent.cuda import emulator

    if verifier.backend == "emulator" and not emulator.is_built():
        say("the first test builds the CPU emulator, once for this version (some 20 s)")


async def prepared(task: Task, verifier: Verifier) -> Task:
    """Run the C under the sanitizers: settle extents, narrow inferred ranges, refuse declared undefined behaviour.

    A PyTorch module is run in the sandbox, to see what it takes and gives.
    """
    from cudaperf_agent.tasks.prepare import prepare

    if task.module is not None:
        return await verifier.modules.reference.described(task)
    return await prepare(task, wrap=verifier.place.sandbox.wrap)
