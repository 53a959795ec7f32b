"""What the graph itself costs per turn, with a policy and a verifier that take no time.

Run ``python benchmarks/graph_overhead.py``; aims: 6 ms a turn without checkpoints, 20 ms with. Every run writes its
store. Wall time counts; CPU time is shown beside it, since it says more where other programs share the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.policies.base import Attempt, Message, Proposal, ProposalRequest
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from graph.config import GraphConfig
from graph.context import Assessment, Deps
from graph.runner import run_task

TURNS = 5
SOURCE = "__global__ void k(float *x, int n)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n}\n" * 15


class InstantPolicy:
    """A new candidate of 60 lines at once."""

    name = "instant"

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        source = f"{SOURCE}int v{request.turn};\n"
        return [Proposal(source, source=source)]

    async def aclose(self) -> None:
        pass


class InstantVerifier:
    """Correct at once, with as many samples as a real timing has."""

    backend = "gpu"

    async def compile(self, task: Task, source: str) -> Verdict:
        return Verdict(Status.CORRECT)

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        return Verdict(Status.CORRECT, passed=20, total=20)

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        timings = tuple(Timing(kind, "n=1048576", (1e-5,) * 30) for kind in ("device", "end_to_end", "kernels"))
        speedups = (Speedup("c -O3", 10.0, 9.0, 11.0),)
        return Verdict(Status.CORRECT, passed=20, total=20, measured=True, timings=timings, speedups=speedups)

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class Parsed:
    """No answer needs parsing here."""

    source: str | None = None
    reason: str = ""


def parse_answer(text: str, *, name: str | None = None, finish_reason: str = "stop") -> Parsed:
    """Never called: the policy gives its source."""
    return Parsed()


def build_messages(task: Task, history: Sequence[Attempt] = ()) -> tuple[Message, ...]:
    """A prompt of usual length."""
    return (Message("system", "s" * 2000), Message("user", "u" * 4000))


def assess(task: Task, source: str, verdict: Verdict) -> Assessment:
    """Eleven features and a reward."""
    features = {f"f{n}": float(n) for n in range(11)}
    return Assessment(features, ({"message": "m", "line": 1},), {"total": 1.0, "verifiable": 1.0, "structural": 0.0})


def write_feedback(verdict: Verdict, assessment: Assessment) -> str:
    """A feedback of usual length."""
    return "f" * 1000


@dataclass(frozen=True)
class Cost:
    """Seconds of one run."""

    wall: float
    cpu: float


async def cost_of_run(folder: Path, trajectories: int, checkpointing: bool) -> Cost:
    """One run in a new store, whose making does not count."""
    with Store(str(folder / "runs.sqlite")) as store:
        deps = Deps(
            policy=InstantPolicy(),
            verifier=InstantVerifier(),
            store=store,
            build_messages=build_messages,
            parse_answer=parse_answer,
            assess=assess,
            write_feedback=write_feedback,
            checkpoints=folder / "checkpoints.sqlite",
        )
        config = GraphConfig(turns=TURNS, trajectories=trajectories, checkpointing=checkpointing)
        task = Task("k", "function", "void k(void) { }\n", "k.c")
        wall, cpu = time.perf_counter(), time.process_time()
        result = await run_task(task, deps, config)
        cost = Cost(time.perf_counter() - wall, time.process_time() - cpu)
    assert len(result.attempts) == trajectories * TURNS
    return cost


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs per row; the median is shown")
    parser.add_argument("--trajectories", type=int, nargs="+", default=[1, 16, 128])
    given = parser.parse_args()
    columns = f"{'s a run':>8} {'ms a turn':>10} {'CPU ms a turn':>14} {'turns/s':>8}"
    print(f"{'trajectories':>12} {'checkpoints':>12} {columns}")
    for trajectories in given.trajectories:
        for checkpointing in (False, True):
            costs = []
            for _ in range(given.repeat + 1):
                with tempfile.TemporaryDirectory() as folder:
                    costs.append(asyncio.run(cost_of_run(Path(folder), trajectories, checkpointing)))
            wall = statistics.median(c.wall for c in costs[1:])  # the first one warms up imports and caches
            cpu = statistics.median(c.cpu for c in costs[1:])
            turns = trajectories * TURNS
            row = f"{trajectories:>12} {'yes' if checkpointing else 'no':>12} {wall:>8.3f} {1e3 * wall / turns:>10.2f}"
            print(f"{row} {1e3 * cpu / turns:>14.2f} {turns / wall:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
