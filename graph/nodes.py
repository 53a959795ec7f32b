"""The nodes: what each does, and how its finding changes the state.

``work`` may take long and is done once per (trajectory, turn, node) over all processes; ``apply`` is a pure function
of what it found, and is repeated whenever a resumed run passes the node again.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

from langgraph.runtime import Runtime

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.base import Message, Proposal, ProposalRequest
from cudaperf_agent.store.projection import FINISH, HIDDEN_NODES
from cudaperf_agent.store.records import Tokens
from graph.context import Assessment, Context
from graph.events import Event, EventKind
from graph.selection import excess, ranked
from graph.sources import source_key
from graph.state import PastTurn, State, attempts, plain, storable
from graph.steps import Found, run_step

REPEATED = "repeated"
_SEED_STRIDE = 1_000_003
_DRAW_STRIDE = 104_729
_SEEDS = 2**31


async def generate(state: State, runtime: Runtime[Context]) -> State:
    """Ask the policy for the turn's candidate."""
    context, turn = runtime.context, state["turn"]
    if (
        context.deadline is not None
        and context.deps.clock() >= context.deadline
        and (turn, "generate") not in context.finished
    ):
        return {"stop": "budget"}
    messages = context.deps.build_messages(context.task, attempts(state))
    told = [{"role": m.role, "content": m.content} for m in messages]

    async def work() -> Found:
        found = _received(await _propose(state, runtime, messages), context, state, told)
        for draw in range(1, context.config.redraws + 1):
            if found.payload["stop"] != REPEATED:
                break
            found = _received(await _propose(state, runtime, messages, draw), context, state, told)
            found.payload["redrawn"] = draw
        return found

    payload = await run_step(context, runtime.stream_writer, turn, "generate", work, messages=told)
    return {
        "source": payload["source"],
        "source_key": payload["source_key"],
        "verdict": payload.get("verdict"),
        "stop": payload["stop"],
        "steps": 1,
    }


async def compile_(state: State, runtime: Runtime[Context]) -> State:
    """Compile the candidate."""

    async def judge(context: Context, source: str) -> Verdict:
        return await context.deps.verifier.compile(context.task, source)

    return await _judged("compile", state, runtime, judge)


async def test(state: State, runtime: Runtime[Context]) -> State:
    """Run the visible cases."""

    async def judge(context: Context, source: str) -> Verdict:
        return await context.deps.verifier.test(context.task, source)

    return await _judged("test", state, runtime, judge)


async def measure(state: State, runtime: Runtime[Context]) -> State:
    """Time and profile a correct candidate, where that can be done."""
    verdict = Verdict.from_dict(state["verdict"] or {})

    async def judge(context: Context, source: str) -> Verdict:
        return await context.deps.verifier.measure(context.task, source, verdict)

    return await _judged("measure", state, runtime, judge)


async def assess(state: State, runtime: Runtime[Context]) -> State:
    """Compute features, hints and reward."""
    context = runtime.context

    async def work() -> Found:
        verdict = Verdict.from_dict(state["verdict"] or {})
        found = await asyncio.to_thread(context.deps.assess, context.task, state["source"] or "", verdict)
        return Found({"features": plain(found.features), "hints": plain(found.hints), "reward": plain(found.reward)})

    payload = await run_step(context, runtime.stream_writer, state["turn"], "assess", work)
    return {"assessment": payload, "steps": 1}


async def feedback(state: State, runtime: Runtime[Context]) -> State:
    """Write what the next turn reads, and decide whether there is one."""
    context, turn = runtime.context, state["turn"]
    assert state["verdict"] is not None
    data: dict[str, Any] = state["verdict"]

    async def work() -> Found:
        verdict = Verdict.from_dict(data)
        assessed = state["assessment"]
        assessment = Assessment(assessed.get("features"), tuple(assessed.get("hints") or ()), assessed.get("reward"))
        text = storable(context.deps.write_feedback(verdict, assessment))
        return Found({"feedback": text, "stop": _stop_after(verdict, turn, context)})

    payload = await run_step(context, runtime.stream_writer, turn, "feedback", work)
    past: PastTurn = {
        "turn": turn,
        "source": state["source"] or "",
        "source_key": state["source_key"] or "",
        "verdict": data,
        "feedback": payload["feedback"],
    }
    return {
        "history": [past],
        "turn": turn + 1,
        "source": None,
        "source_key": None,
        "verdict": None,
        "assessment": {},
        "stop": payload["stop"],
        "steps": 1,
    }


async def finish(state: State, runtime: Runtime[Context]) -> State:
    """Put the best attempt to the hidden cases and time it again; if it fails, the next best. Training skips that."""
    context, emit = runtime.context, runtime.stream_writer
    sources = {past["turn"]: past["source"] for past in state["history"]}
    order = ranked({past["turn"]: Verdict.from_dict(past["verdict"]) for past in state["history"]})

    async def passes(turn: int) -> bool:
        source = sources[turn]

        async def hidden() -> Found:
            verdict = await context.deps.verifier.test(context.task, source, hidden=True)
            return Found({"verdict": plain(verdict.to_dict())})

        async def retime() -> Found:
            verdict = await context.deps.verifier.measure(context.task, source, tested)
            return Found({"verdict": plain(verdict.to_dict())})

        tested = Verdict.from_dict((await run_step(context, emit, turn, HIDDEN_NODES[0], hidden))["verdict"])
        if not tested.correct:
            return False
        timed = Verdict.from_dict((await run_step(context, emit, turn, HIDDEN_NODES[1], retime))["verdict"])
        return timed.correct

    async def work() -> Found:
        best = order[0] if order and not context.config.hidden else None
        for turn in order if context.config.hidden else ():
            if await passes(turn):
                best = turn
                break
        return Found({"reason": state["stop"], "first_choice": order[0] if order else None, "best_turn": best})

    return {"outcome": await run_step(context, emit, state["turn"], FINISH, work), "steps": 1}


async def _propose(state: State, runtime: Runtime[Context], messages: tuple[Message, ...], draw: int = 0) -> Proposal:
    """The answer of the turn's seed; of another for a later `draw`, whose text is not shown piece by piece."""
    context, turn = runtime.context, state["turn"]
    loop = asyncio.get_running_loop()
    # The stream belongs to this node; tokens may come from a thread, or from another task that serves a batch.
    here = contextvars.copy_context()

    def tell(text: str) -> None:
        data, at = {"text": text}, context.deps.clock()
        runtime.stream_writer(Event(EventKind.TOKEN, context.run, at, context.trajectory, turn, "generate", data))

    def on_token(text: str) -> None:
        if threading.get_ident() == thread:
            here.run(tell, text)
        else:
            loop.call_soon_threadsafe(tell, text, context=here)

    thread = threading.get_ident()
    request = ProposalRequest(
        messages=messages,
        task=context.task,
        history=attempts(state),
        run=context.run,
        trajectory=context.trajectory,
        turn=turn,
        seed=(context.seed * _SEED_STRIDE + turn + draw * _DRAW_STRIDE) % _SEEDS,
        on_token=None if draw else on_token,
    )
    proposals = await context.deps.policy.propose(request)
    if not proposals:
        raise BackendUnavailable(f"policy {context.deps.policy.name} gave no answer")
    return proposals[0]


def _received(proposal: Proposal, context: Context, state: State, told: list[dict[str, str]]) -> Found:
    """A proposal as the payload of ``generate``."""
    text = storable(proposal.text)
    source, reason = proposal.source, ""
    if source is None and proposal.declined is None:
        parsed = context.deps.parse_answer(text, name=context.task.name, finish_reason=proposal.finish_reason)
        source, reason = parsed.source, parsed.reason
    source = storable(source) if source else None
    key = source_key(source) if source else None
    payload: dict[str, Any] = {
        "messages": told,
        "text": text,
        "source": source,
        "source_key": key,
        "strategy": proposal.strategy,
        "model": proposal.model,
        "declined": storable(proposal.declined) if proposal.declined is not None else None,
        "finish_reason": proposal.finish_reason,
        "usage": plain(proposal.usage),
        "stop": "",
    }
    if proposal.declined is not None:
        payload["stop"] = f"declined: {payload['declined']}"
    elif source is None:
        verdict = Verdict(Status.NO_CODE, reason or "the answer holds no code", backend=context.deps.verifier.backend)
        payload["verdict"] = plain(verdict.to_dict())
    elif not context.config.fixed_horizon and any(past["source_key"] == key for past in state["history"]):
        payload["stop"] = REPEATED
    return Found(payload, Tokens(proposal.prompt_token_ids, proposal.token_ids, proposal.logprobs))


async def _judged(node: str, state: State, runtime: Runtime[Context], judge: Any) -> State:
    context = runtime.context

    async def work() -> Found:
        verdict: Verdict = await judge(context, state["source"] or "")
        return Found({"verdict": plain(verdict.to_dict())})

    payload = await run_step(context, runtime.stream_writer, state["turn"], node, work)
    return {"verdict": payload["verdict"], "steps": 1}


def _stop_after(verdict: Verdict, turn: int, context: Context) -> str:
    if turn + 1 >= context.config.turns:
        return "turns"
    untimed = context.deps.verifier.backend != "gpu"
    if verdict.correct and untimed and not context.config.fixed_horizon:
        return "" if context.config.lean and excess(verdict) > 1 else "correct"
    return ""
