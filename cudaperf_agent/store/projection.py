"""Which columns of an attempt a finished step fills, and how a step's payload is read back from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.store.columns import pack_ids, pack_logprobs
from cudaperf_agent.store.records import Step

COLUMNS: dict[str, tuple[str, ...]] = {
    "generate": (
        "messages", "text", "source", "source_key", "strategy", "model", "declined", "finish_reason", "usage",
    ),
    "assess": ("features", "hints", "reward"),
    "feedback": ("feedback",),
}  # fmt: skip
"""Payload keys that are columns of the attempt, by node: they are stored once, there, the rest with the step."""

VERDICT_NODES = ("compile", "test", "measure")
HIDDEN_NODES = ("hidden", "retime")
"""A chosen attempt on the hidden cases, then timed again."""
FINISH = "finish"


def attempt_columns(step: Step) -> dict[str, Any]:
    """The columns of ``attempts`` that `step` fills; empty for ``finish``."""
    payload = step.payload
    if step.node in VERDICT_NODES:
        return _verdict_columns(payload["verdict"])
    if step.node in HIDDEN_NODES:
        return {"hidden_verdict": payload["verdict"], "hidden_status": payload["verdict"]["status"]}
    values = {name: payload.get(name) for name in COLUMNS.get(step.node, ())}
    if step.node == "generate":
        if step.tokens:
            values["prompt_token_ids"] = pack_ids(step.tokens.prompt)
            values["token_ids"] = pack_ids(step.tokens.completion)
            values["logprobs"] = pack_logprobs(step.tokens.logprobs)
        if payload["stop"]:
            values["status"] = payload["stop"].partition(":")[0]
        if payload.get("verdict"):
            values |= _verdict_columns(payload["verdict"])
    if step.node == "assess":
        reward = payload.get("reward") or {}
        values |= {f"reward_{part}": reward.get(part) for part in ("total", "verifiable", "structural")}
    return values


def step_payload(step: Step) -> dict[str, Any]:
    """The part of the payload that is stored in the step's own row."""
    elsewhere = COLUMNS.get(step.node, ())
    return {name: value for name, value in step.payload.items() if name not in elsewhere}


def whole_payload(node: str, stored: Mapping[str, Any], attempt: Mapping[Any, Any] | None) -> dict[str, Any]:
    """The payload again, from the step's own row and its attempt's."""
    return {**{name: (attempt or {}).get(name) for name in COLUMNS.get(node, ())}, **stored}


def _verdict_columns(data: dict[str, Any]) -> dict[str, Any]:
    verdict = Verdict.from_dict(data)
    device, end_to_end = verdict.timing("device"), verdict.timing("end_to_end")
    speedup = verdict.speedups[0] if verdict.speedups else None
    return {
        "verdict": data,
        # A compiled candidate is not a correct one: whoever reads a run that stopped there must not take it for one.
        "status": "" if verdict.untested else verdict.status.value,
        "passed": verdict.passed,
        "total": verdict.total,
        "pass_rate": verdict.pass_rate,
        "device_seconds": device.median if device else None,
        "end_to_end_seconds": end_to_end.median if end_to_end else None,
        "speedup": speedup.value if speedup else None,
        "baseline": speedup.baseline if speedup else None,
    }
