"""Generated tokens per second of a policy, and what one translation costs, at given numbers of concurrent trajectories.

A trajectory has five turns with the prompts of real refinement, from the handed C files; every verdict is a compile
error, so that no trajectory ends early, and nothing is compiled or run: what is measured is generation alone::

    python benchmarks/policy.py local --at 1,8
    python benchmarks/policy.py vllm --at 1,128 --out results.jsonl

The cost of a translation is the time of the whole machine for one trajectory: wall time over trajectories.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.verdict import Diagnostic, Status, Verdict
from cudaperf_agent.policies.auto import PolicyConfig, choose_policy
from cudaperf_agent.policies.base import Attempt, Policy, ProposalRequest
from cudaperf_agent.policies.feedback import build_feedback
from cudaperf_agent.policies.local import LocalConfig
from cudaperf_agent.policies.openai import EndpointConfig
from cudaperf_agent.policies.parse_answer import parse_answer
from cudaperf_agent.policies.prompts import PromptConfig, build_messages
from cudaperf_agent.policies.sampling import SamplingConfig
from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from graph.batching import BatchingPolicy, BatchPolicy
from training.beside_engine import CAPTURE_SIZES

CASES = Path(__file__).parents[1] / "tests" / "cases" / "c"
FAILED = Verdict(
    Status.COMPILE_ERROR, "1 error", diagnostics=(Diagnostic("error", 'identifier "idx" is undefined', 4, 9),)
)
FULL_SHARE = 0.9


@dataclass(slots=True)
class Drawn:
    """Completions as (start, end, tokens), in seconds since the beginning."""

    spans: list[tuple[float, float, int]] = field(default_factory=list)
    prompt_tokens: int = 0
    ended: list[float] = field(default_factory=list)


async def trajectory(policy: Policy, task: Task, number: int, turns: int, compact: bool, drawn: Drawn) -> None:
    """One search of so many turns."""
    config = PromptConfig.compact() if compact else PromptConfig()
    history: list[Attempt] = []
    for turn in range(turns):
        request = ProposalRequest(
            build_messages(task, history, config=config), task, tuple(history), trajectory=number, turn=turn, seed=1
        )
        begun = time.perf_counter()
        (proposal,) = await policy.propose(request)
        drawn.spans.append((begun, time.perf_counter(), proposal.usage.get("completion_tokens", 0)))
        drawn.prompt_tokens += proposal.usage.get("prompt_tokens", 0)
        source = parse_answer(proposal.text, name=task.name, finish_reason=proposal.finish_reason).source or ""
        history.append(Attempt(turn, source, FAILED, build_feedback(FAILED)))
    drawn.ended.append(time.perf_counter())


def while_full(drawn: Drawn, concurrent: int, begun: float) -> float:
    """Tokens per second until a tenth of the trajectories has ended; a completion is spread evenly over its time."""
    until = sorted(drawn.ended)[int((1 - FULL_SHARE) * (concurrent - 1))]
    tokens = sum(n * max(min(end, until) - start, 0.0) / max(end - start, 1e-9) for start, end, n in drawn.spans)
    return tokens / (until - begun)


async def measure(policy: Policy, tasks: Sequence[Task], concurrent: int, turns: int, compact: bool) -> dict[str, Any]:
    """All trajectories at once, to their ends."""
    drawn = Drawn()
    begun = time.perf_counter()
    runs = (trajectory(policy, tasks[i % len(tasks)], i, turns, compact, drawn) for i in range(concurrent))
    if isinstance(policy, BatchPolicy):
        front = BatchingPolicy(policy, seconds=0.02, size=concurrent)
        runs = (trajectory(front, tasks[i % len(tasks)], i, turns, compact, drawn) for i in range(concurrent))
    await asyncio.gather(*runs)
    wall = time.perf_counter() - begun
    tokens = sum(n for _, _, n in drawn.spans)
    return {
        "policy": policy.name,
        "concurrent": concurrent,
        "turns": turns,
        "wall_s": round(wall, 2),
        "generated_tokens": tokens,
        "prompt_tokens": drawn.prompt_tokens,
        "tokens_per_s": round(tokens / wall, 1),
        "tokens_per_s_while_full": round(while_full(drawn, concurrent, begun), 1),
        "seconds_per_translation": round(wall / concurrent, 3),
        "tokens_per_translation": round(tokens / concurrent, 1),
    }


async def main(args: argparse.Namespace) -> None:
    """Measure each level of concurrency, one line of JSON each."""
    names = [p for p in sorted(CASES.glob("*.c")) if not args.task or p.stem in args.task.split(",")]
    tasks = [load_task(path) for path in names]
    sampling = SamplingConfig(temperature=args.temperature, max_tokens=args.max_tokens)
    endpoint = EndpointConfig(args.url, temperature=args.temperature, max_tokens=args.max_tokens, stream=False)
    config = PolicyConfig(
        endpoint if args.url else None,
        LocalConfig(sampling=sampling, device=args.device, batch=max(args.at)),
        # The numbers of `training.grpo.config` where they matter: an engine of the same ones starts from its cache.
        VllmConfig(
            lora_rank=32,
            dtype=args.dtype,
            max_model_len=4096,
            max_sequences=max(256, *args.at),
            eager=args.eager,
            capture_sizes=CAPTURE_SIZES,
            sampling=sampling,
        ),
    )
    choice = await choose_policy(args.policy, config)
    begun = time.perf_counter()
    try:
        await measure(choice.policy, tasks[:1], 1, 1, choice.small)
        emit(args, {"start_s": round(time.perf_counter() - begun, 1), "policy": args.policy})
        for concurrent in args.at:
            result = await measure(choice.policy, tasks, concurrent, args.turns, choice.small)
            if args.price:
                result["dollars_per_translation"] = result["seconds_per_translation"] * args.price / 3600
            emit(args, {**result, "machine": platform.processor() or platform.machine(), "label": args.label})
        if args.unseeded and isinstance(choice.policy, VllmPolicy):
            for name, drawn in {
                "unseeded": replace(sampling, seeded=False),
                "unseeded, all tokens": replace(sampling, seeded=False, top_p=1.0),
            }.items():
                choice.policy.use_sampling(drawn)
                result = await measure(choice.policy, tasks, max(args.at), args.turns, choice.small)
                emit(args, {**result, "label": f"{args.label} {name}"})
    finally:
        await choice.policy.aclose()


def emit(args: argparse.Namespace, row: dict[str, Any]) -> None:
    """A line on stdout and in the file, at once."""
    line = json.dumps(row)
    print(line, flush=True)
    if args.out:
        with args.out.open("a") as file:
            file.write(line + "\n")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", help="as for --policy: local, vllm:FOLDER+ADAPTER, openai, …")
    parser.add_argument("--at", type=lambda s: [int(n) for n in s.split(",")], default=[1], help="1,128")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--task", help="stems of the C files, all by default")
    parser.add_argument("--max-tokens", type=int, default=1400)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--url", help="endpoint for openai")
    parser.add_argument(
        "--unseeded", action="store_true", help="vLLM: the most at once again, without seeds, then without top_p"
    )
    parser.add_argument("--price", type=float, help="dollars per hour of the machine")
    parser.add_argument("--label", default="")
    parser.add_argument("--out", type=Path, help="file to add the lines to")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(arguments()))
