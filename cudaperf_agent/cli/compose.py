"""The composition root: from settings to the parts of a run, and from a C or PyTorch file to a translation.

What the command line does, a program does in two lines::

    translation = translate(Source(Path("saxpy.c")))
    write_files(translation, Path("out"))  # of cudaperf_agent.cli.report
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudaperf_agent.errors import UsageError
from cudaperf_agent.settings_model import EndpointSettings, PromptSettings, Settings

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from cudaperf_agent.codegen.dropin import DropIn
    from cudaperf_agent.cuda.replay import Replay
    from cudaperf_agent.cuda.verdict import Trust, Verdict
    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.policies.auto import PolicyConfig
    from cudaperf_agent.policies.base import Policy
    from cudaperf_agent.policies.openai import EndpointConfig
    from cudaperf_agent.reward.composite import Reward
    from cudaperf_agent.store.repository import Store
    from cudaperf_agent.tasks.model import Task
    from cudaperf_agent.tasks.modules.spec import ModuleMode
    from graph.context import Assessment, Deps
    from graph.events import Event
    from graph.results import RunResult

    OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Source:
    """What to translate.

    Attributes:
        path: The C file, or the Python file with a PyTorch module; `None` for C text that came by standard input.
        text: Its text, where it is not to be read from `path`.
        entry: The function, where the file leaves it open.
        spec: A file that says what a ``cudaperf:`` comment could say.
        stdin_files: Example inputs for a file with ``main``.
        include_dirs, defines: As for the C compiler's ``-I`` and ``-D``.
        class_name, inputs: The module's class, and the shapes of its inputs where the file does not give any.
        mode: What a candidate for a module may call: ``pure-cuda`` or ``libraries-allowed``.
        dtypes: Element types that a module is tested in, where not in its own.
    """

    path: Path | None = None
    text: str | None = None
    entry: str | None = None
    spec: Path | None = None
    stdin_files: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    class_name: str | None = None
    inputs: str | None = None
    mode: ModuleMode = "pure-cuda"
    dtypes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """A run that has ended, and the files made of its best candidate.

    Attributes:
        task: What was translated, as far as it was understood.
        result: How the run ended.
        policy: Name of the policy.
        files: The linkable files; `None` if there is no correct candidate.
        sandbox: What confined the candidates, and what that does not cover.
    """

    task: Task
    result: RunResult
    policy: str
    files: DropIn | None
    sandbox: dict[str, Any]


def translate(source: Source, settings: Settings | None = None, *, on_event: OnEvent | None = None) -> Translation:
    """Translate a C file, from a program that is not asynchronous.

    Raises:
        CudaPerfError: The input is refused, or a backend is missing. That no candidate is correct is a result.
    """
    from cudaperf_agent.settings import load_settings
    from graph import loop

    return loop.run(translate_async(source, settings or load_settings().settings, on_event=on_event))


async def translate_async(
    source: Source,
    settings: Settings,
    *,
    on_event: OnEvent | None = None,
    say: Callable[[str], None] | None = None,
    control: RunControl | None = None,
    check: Callable[[Task], None] | None = None,
) -> Translation:
    """Understand the C, run the graph, make the files.

    Args:
        source: The C.
        settings: All settings.
        on_event: Called with every event of the run.
        say: Called with sentences for the user about decisions before the run.
        control: Its ``request_drain()`` ends the run after the node at work.
        check: Called with the task before anything costly is done; may raise.
    """
    from cudaperf_agent.cuda import emulator
    from graph.config import GraphConfig
    from graph.runner import run_task

    task = read_task(source)
    if check is not None:
        check(task)
    wanted = settings.translate
    tell = say or _ignore
    module = task.module is not None
    async with _parts(settings, wanted.policy, wanted.turns, wanted.seed, tell, module=module) as parts:
        parts.check()
        if parts.verifier.backend == "emulator" and not emulator.is_built():
            tell("the first test builds the CPU emulator, once for this version (some 20 s)")
        if task.module is not None:
            tell(f"{task.path}: running {task.name} to see what inputs it takes")
        else:
            tell(f"{task.path}: running the C of {task.name} under the sanitizers")
        task = await prepared(task, parts.verifier)
        config = GraphConfig(
            turns=wanted.turns, trajectories=wanted.trajectories, seed=wanted.seed, seconds=wanted.time_budget
        )
        result = await run_task(task, parts.deps, config, on_event=on_event, control=control)
        return _translation(task, result, parts)


async def resume_async(
    run_id: str,
    settings: Settings,
    *,
    policy: str | None = None,
    on_event: OnEvent | None = None,
    say: Callable[[str], None] | None = None,
    control: RunControl | None = None,
) -> Translation:
    """Go on with a stored run; its policy is made again by the name that the store knows, unless `policy` names it."""
    from graph.runner import resume_run

    with open_store(settings) as store:
        run = store.get_run(run_id)
    seed = int(run.config.get("seed", 0))
    async with _parts(settings, policy or run.summary.policy, run.summary.turns, seed, say or _ignore) as parts:
        result = await resume_run(run.summary.id, parts.deps, on_event=on_event, control=control)
        return _translation(run.task, result, parts)


async def verify_async(source: Source, candidate: str, settings: Settings) -> Verdict:
    """Judge a candidate by the visible and the hidden cases, and time it where there is a GPU."""
    from cudaperf_agent.codegen.dropin import candidate_of

    task = read_task(source)
    verifier = make_verifier(settings.translate.seed, settings.verify.trust)
    try:
        task = await prepared(task, verifier)
        candidate = candidate if task.module else candidate_of(task, candidate)
        verdict = await verifier.test(task, candidate)
        if verdict.correct:
            verdict = await verifier.test(task, candidate, hidden=True)
        return await verifier.measure(task, candidate, verdict) if verdict.correct else verdict
    finally:
        await verifier.aclose()


async def replay_async(source: Source, candidate: str, record: Mapping[str, Any]) -> Replay:
    """Make a verdict again, with the inputs that it was made with.

    Raises:
        UsageError: It is about another candidate or another task.
    """
    from cudaperf_agent.codegen.dropin import candidate_of
    from cudaperf_agent.cuda.replay import replay

    verifier = make_verifier(0)
    try:
        task = await prepared(read_task(source), verifier)
    finally:
        await verifier.aclose()
    return await replay(record, task, candidate if task.module else candidate_of(task, candidate))


def read_task(source: Source) -> Task:
    """Understand the C, or the Python, without running it.

    Raises:
        UsageError: A flag is for the other kind of file.
    """
    from cudaperf_agent.tasks.modules.find import is_module_file, load_module_task
    from cudaperf_agent.tasks.parse import load_task

    if source.path is not None and is_module_file(source.path):
        _refuse_flags(
            {"--entry": source.entry, "--spec": source.spec, "--stdin": source.stdin_files, "-I": source.include_dirs},
            "is for C files",
        )
        return load_module_task(
            source.path,
            source=source.text,
            class_name=source.class_name,
            inputs=source.inputs,
            mode=source.mode,
            dtypes=source.dtypes,
        )
    _refuse_flags(
        {"--class": source.class_name, "--inputs": source.inputs, "--dtype": source.dtypes},
        "is for PyTorch modules, in files that end in .py",
    )

    return load_task(
        source.path,
        source=source.text,
        entry=source.entry,
        spec=source.spec,
        stdin_files=source.stdin_files,
        include_dirs=source.include_dirs,
        defines=source.defines,
    )


def _refuse_flags(given: Mapping[str, object], why: str) -> None:
    flag = next((name for name, value in given.items() if value), None)
    if flag is not None:
        raise UsageError(f"{flag} {why}", where=flag, hint="Leave it out.")


async def prepared(task: Task, verifier: Verifier) -> Task:
    """Run the C under the sanitizers: settle extents, narrow inferred ranges, refuse declared undefined behaviour.

    A PyTorch module is run in the sandbox, to see what it takes and gives.
    """
    from cudaperf_agent.tasks.prepare import prepare

    if task.module is not None:
        return await verifier.modules.reference.described(task)
    return await prepare(task, wrap=verifier.place.sandbox.wrap)


def open_store(settings: Settings) -> Store:
    """The store that the settings name."""
    from cudaperf_agent.store.repository import Store

    return Store(settings.database_url)


def make_verifier(seed: int, trust: Trust = "suspicious") -> Verifier:
    """On the GPU where there is one, else on the emulator."""
    from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig

    return Verifier(VerifierConfig(seed=seed, trust=trust))


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


def assess(task: Task, source: str, verdict: Verdict) -> Assessment:
    """Features, hints and reward of a candidate."""
    from cudaperf_agent.features.extract import extract
    from cudaperf_agent.features.hints import hints
    from cudaperf_agent.reward.composite import score
    from cudaperf_agent.reward.structural import shipped_ranker
    from graph.context import Assessment

    if not source:
        reward = score(verdict, None, None)
        return Assessment(reward=_reward(reward))
    features = extract(source, entry=task.name)
    reward = score(verdict, features, shipped_ranker())
    told = {**features.values, "extended": features.extended, "missing": list(features.missing)}
    return Assessment(told, tuple(asdict(hint) for hint in hints(features)), _reward(reward))


def _reward(reward: Reward | None) -> dict[str, Any] | None:
    if reward is None:
        return None
    parts = {"total": reward.total, "verifiable": reward.verifiable.value, "structural": reward.structural}
    return {**parts, "preset": reward.preset, "flags": list(reward.flags)}


def write_feedback(verdict: Verdict, assessment: Assessment) -> str:
    """What the next turn reads."""
    from cudaperf_agent.policies.feedback import build_feedback

    return build_feedback(verdict, features=assessment.features, hints=assessment.hints)


@dataclass(frozen=True, slots=True)
class _Parts:
    deps: Deps
    verifier: Verifier
    policy: Policy
    check: Callable[[], None]


@asynccontextmanager
async def _parts(
    settings: Settings, policy_name: str, turns: int, seed: int, say: Callable[[str], None], *, module: bool = False
) -> AsyncIterator[_Parts]:
    from cudaperf_agent.policies.auto import choose_policy

    verifier = make_verifier(seed)
    try:
        choice = await choose_policy(policy_name, policy_config(settings, turns, module=module))
        try:
            for sentence in choice.sentences:
                say(sentence)
            with open_store(settings) as store:
                policy = taking_turns(choice.policy, verifier, settings)
                deps = make_deps(policy, verifier, store, settings.prompt, small=choice.small)
                yield _Parts(deps, verifier, choice.policy, choice.check)
        finally:
            await choice.policy.aclose()
    finally:
        await verifier.aclose()


def _translation(task: Task, result: RunResult, parts: _Parts) -> Translation:
    from cudaperf_agent.codegen.dropin import make_dropin
    from cudaperf_agent.codegen.modules.forms import module_files

    made = make_dropin if task.module is None else module_files
    files = made(task, result.best.source) if result.best else None
    sandbox = parts.verifier.place.sandbox
    told = {"name": sandbox.name, "covers": list(sandbox.covers), "misses": list(sandbox.misses)}
    return Translation(task, result, parts.policy.name, files, told)


def _ignore(_: str) -> None:
    pass


def read_text(path: Path, what: str) -> str:
    """The text of a file that the user named.

    Raises:
        UsageError: It cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not UTF-8 text", where=str(path), hint="name the source file") from None
    except OSError as error:
        raise UsageError(
            f"{what} cannot be read: {(error.strerror or str(error)).lower()}", where=str(path), hint="check the path"
        ) from None
