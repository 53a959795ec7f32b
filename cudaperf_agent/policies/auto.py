"""From the name of a policy to the policy; `auto` looks for an endpoint that answers and else takes the variants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Policy
from cudaperf_agent.policies.endpoint import probe
from cudaperf_agent.policies.openai import EndpointConfig, OpenAIPolicy
from cudaperf_agent.policies.scripted import ScriptedPolicy
from cudaperf_agent.policies.variants import VariantsPolicy

NAMES = ("auto", "variants", "openai[:MODEL]", "local[:FOLDER[+ADAPTER]]", "scripted:PATH")


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy and, where something was decided, one sentence on why this one.

    Attributes:
        policy: To be closed by the caller.
        note: For the user.
        small: Whether it is a small model, which wants compact prompts.
    """

    policy: Policy
    note: str = ""
    small: bool = False


async def choose_policy(name: str, *, endpoint: EndpointConfig | None = None, turns: int = 5) -> Choice:
    """Make the policy of a name.

    Args:
        name: One of `NAMES`; also the `Policy.name` of any policy made here, so that a stored run can be resumed.
        endpoint: The configured endpoint, if there is one.
        turns: Turns of a trajectory.

    Raises:
        UsageError: There is no such policy, or it lacks what it needs.
    """
    kind, _, argument = name.partition(":")
    if kind == "auto" and not argument:
        return await _automatic(endpoint, turns)
    if kind == "variants" and not argument:
        return Choice(VariantsPolicy(turns=turns))
    if kind == "openai":
        if endpoint is None:
            raise UsageError(
                "no endpoint is configured",
                where="endpoint.url",
                hint="CUDAPERF_ENDPOINT__URL=http://localhost:8000/v1, or url = … under [endpoint] in cudaperf.toml",
            )
        return Choice(OpenAIPolicy(replace(endpoint, model=argument or endpoint.model)))
    if kind == "scripted" and argument:
        return _scripted(argument)
    if kind == "local":
        return _local(argument)
    raise UsageError(f"there is no policy `{name}`", where="--policy", hint=f"the policies are {', '.join(NAMES)}")


async def _automatic(endpoint: EndpointConfig | None, turns: int) -> Choice:
    variants = VariantsPolicy(turns=turns)
    if endpoint is None:
        return Choice(variants)
    health = await probe(endpoint.url, endpoint.api_key, seconds=endpoint.probe_timeout)
    if not health.ok:
        return Choice(variants, f"the endpoint {endpoint.url} is not used: {health.reason}; taking the variants")
    model = endpoint.model or (health.models[0] if health.models else None)
    return Choice(OpenAIPolicy(replace(endpoint, model=model)))


def _scripted(argument: str) -> Choice:
    return Choice(ScriptedPolicy.load(Path(argument).expanduser()))


def _local(argument: str) -> Choice:
    from cudaperf_agent.policies.local import LocalConfig, LocalPolicy
    from cudaperf_agent.policies.smollm2 import NAME

    folder, _, adapter = argument.partition("+")
    model = Path(folder).expanduser() if folder and folder != NAME else None
    config = LocalConfig(model=model, adapter=Path(adapter).expanduser() if adapter else None)
    return Choice(LocalPolicy(config), small=True)
