"""From the name of a policy to the policy; `auto` takes the first of endpoint, local model and variants that serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from cudaperf_agent.errors import BackendUnavailable, UsageError
from cudaperf_agent.policies.base import Policy
from cudaperf_agent.policies.endpoint import EndpointHealth, probe
from cudaperf_agent.policies.ensemble import EnsemblePolicy
from cudaperf_agent.policies.local import LocalConfig, LocalPolicy, check_local
from cudaperf_agent.policies.model_spec import (
    SMALL_CONTEXT,
    local_missing,
    parse_spec,
    shipped_adapter,
    small_model,
    small_name,
)
from cudaperf_agent.policies.openai import MOST_TOKENS, EndpointConfig, OpenAIPolicy
from cudaperf_agent.policies.sampling import SamplingConfig
from cudaperf_agent.policies.scripted import ScriptedPolicy
from cudaperf_agent.policies.smollm2 import is_converted
from cudaperf_agent.policies.variants import VariantsPolicy
from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy, check_vllm

NAMES = (
    "auto",
    "variants",
    "openai[:MODEL]",
    "local[:FOLDER[+ADAPTER]]",
    "vllm[:MODEL[+ADAPTER]]",
    "ensemble[:POLICY]",
    "scripted:PATH",
)


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """What the policies are made of.

    Attributes:
        endpoint: The configured endpoint, if there is one; `logprobs` of `None` there asks vLLM servers only.
        local, vllm: The models in this process; their `model` and `adapter` serve where the name gives none.
        turns: Turns of a trajectory.
        module: Whether PyTorch modules are to be translated; the shipped adapter has learned C alone.
    """

    endpoint: EndpointConfig | None = None
    local: LocalConfig = field(default_factory=LocalConfig)
    vllm: VllmConfig = field(default_factory=VllmConfig)
    turns: int = 5
    module: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy and, where something was decided, one sentence on why this one.

    Attributes:
        policy: To be closed by the caller.
        note: For the user.
        wait: What the first answer waits for, where that takes seconds; for the user too.
        small: Whether it is a small model, which wants compact prompts.
        check: Finds out, in no time, whether it can propose; raises `BackendUnavailable` if a library, weights or an
            adapter are missing. A stored run that has ended is told again without them.
    """

    policy: Policy
    note: str = ""
    wait: str = ""
    small: bool = False
    check: Callable[[], None] = lambda: None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to say before the run."""
        return tuple(filter(None, (self.note, self.wait)))


async def choose_policy(name: str, config: PolicyConfig | None = None) -> Choice:
    """Make the policy of a name.

    Args:
        name: One of `NAMES`; also the `Policy.name` of any policy made here, so that a stored run can be resumed.
        config: What they are made of.

    Raises:
        UsageError: There is no such policy, or it lacks what it needs.
        BackendUnavailable: There is no model for the ensemble.
    """
    config = config or PolicyConfig()
    kind, colon, argument = name.partition(":")
    if kind == "auto" and not colon:
        return await _automatic(config)
    if kind == "variants" and not colon:
        return Choice(VariantsPolicy(turns=config.turns))
    if kind == "openai":
        return await _openai(config, argument)
    if kind == "scripted" and argument:
        return _scripted(argument)
    if kind == "local":
        return _local(config.local, argument)
    if kind == "vllm":
        return _vllm(config.vllm, argument)
    if kind == "ensemble" and not argument.startswith(("ensemble", "variants", "auto")):
        return await _ensemble(config, argument)
    raise UsageError(f"there is no policy `{name}`", where="--policy", hint=f"the policies are {', '.join(NAMES)}")


async def _automatic(config: PolicyConfig) -> Choice:
    found = await _some_model(config)
    if found.choice is not None and found.shipped:
        # The small model is right about two thirds of the time: what it fails at is the generator's, in the same run.
        both = EnsemblePolicy(found.choice.policy, turns=config.turns)
        return replace(found.choice, policy=both, note=f"{found.choice.note}; the variants help where it fails")
    if found.choice is not None:
        return found.choice
    return Choice(VariantsPolicy(turns=config.turns), f"policy auto takes the variants: {found.why_none}")


async def _ensemble(config: PolicyConfig, argument: str) -> Choice:
    if argument:
        choice = await choose_policy(argument, config)
    else:
        found = await _some_model(config)
        if found.choice is None:
            raise BackendUnavailable(
                f"the ensemble has no model: {found.why_none}",
                where="--policy",
                hint="start one with `cudaperf serve`, name one as in ensemble:local:FOLDER, or use --policy variants",
            )
        choice = found.choice
    note = choice.note.replace("policy auto takes", "the ensemble's model is")
    return replace(choice, policy=EnsemblePolicy(choice.policy, turns=config.turns), note=note)


@dataclass(frozen=True, slots=True)
class _Found:
    choice: Choice | None
    why_none: str = ""
    shipped: bool = False


async def _some_model(config: PolicyConfig) -> _Found:
    """The model that serves without being named, or why there is none."""
    if config.endpoint is None:
        reasons = ["no endpoint is configured"]
    else:
        health = await _probed(config.endpoint)
        if health.ok:
            choice = _served(config.endpoint, config.endpoint.model, health)
            return _Found(replace(choice, note=f"policy auto takes {choice.policy.name} at {config.endpoint.url}"))
        reasons = [f"the endpoint {config.endpoint.url} is not used ({health.reason})"]
    missing = local_missing(config.local.model)
    adapter = config.local.adapter
    shipped = adapter is not None and adapter == shipped_adapter()
    if missing is not None:
        reasons.append(f"no local model ({missing} is not installed)")
    elif adapter is None:
        # Measured: the bare small model writes nothing that compiles.
        reasons.append("no local model has an adapter (local.adapter)")
    elif shipped and config.module:
        reasons.append("the local model has learned C, not PyTorch")
    else:
        choice = _local(config.local, "")
        return _Found(replace(choice, note=f"policy auto takes {choice.policy.name}: {reasons[0]}"), shipped=shipped)
    return _Found(None, ", ".join(reasons))


async def _openai(config: PolicyConfig, model: str) -> Choice:
    endpoint = config.endpoint
    if endpoint is None:
        raise UsageError(
            "no endpoint is configured",
            where="endpoint.url",
            hint="CUDAPERF_ENDPOINT__URL=http://localhost:8000/v1, or url = … under [endpoint] in cudaperf.toml; "
            "`cudaperf serve` starts a server and records it",
        )
    return _served(endpoint, model or endpoint.model, await _probed(endpoint))


async def _probed(endpoint: EndpointConfig) -> EndpointHealth:
    return await probe(endpoint.url, endpoint.api_key, seconds=endpoint.probe_timeout)


def _served(endpoint: EndpointConfig, model: str | None, health: EndpointHealth) -> Choice:
    model = model or (health.models[0] if health.models else None)
    logprobs = health.vllm if endpoint.logprobs is None else endpoint.logprobs
    names = [name for name in (model, health.parents.get(model or "")) if name]
    small = any(small_name(name) for name in names)
    small = small or health.contexts.get(model or "", SMALL_CONTEXT + 1) <= SMALL_CONTEXT
    # What a small model has not said by then it repeats until the limit.
    longest = endpoint.max_tokens or (SamplingConfig().max_tokens if small else MOST_TOKENS)
    return Choice(OpenAIPolicy(replace(endpoint, model=model, logprobs=logprobs, max_tokens=longest)), small=small)


def _scripted(argument: str) -> Choice:
    return Choice(ScriptedPolicy.load(Path(argument).expanduser()))


def _local(config: LocalConfig, argument: str) -> Choice:
    if argument:
        spec = parse_spec(argument)
        config = replace(config, model=Path(spec.model) if spec.model else None, adapter=spec.adapter)
    small = small_model(str(config.model) if config.model else None)
    check = partial(check_local, config)
    return Choice(LocalPolicy(config), small=small, check=check, wait=_unpacking(config.model, check))


def _vllm(config: VllmConfig, argument: str) -> Choice:
    if argument:
        spec = parse_spec(argument)
        config = replace(config, model=spec.model, adapter=spec.adapter)
    small = small_model(config.model)
    check = partial(check_vllm, config)
    return Choice(VllmPolicy(config), small=small, check=check, wait=_unpacking(config.model, check))


def _unpacking(model: object, check: Callable[[], None]) -> str:
    """What there is to wait for before the first answer; nothing where there will be none, for want of a library."""
    if model is not None or is_converted():
        return ""
    try:
        check()
    except BackendUnavailable:
        return ""
    return "the first answer unpacks the weights of the small model, once (some 20 s)"
