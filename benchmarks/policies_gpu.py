"""Several policies of one model on one suite, by one engine: vLLM starts once, and answers for all of them at once.

    python benchmarks/policies_gpu.py --out FOLDER warm=shipped both=FOLDER/adapter verifiable=FOLDER/adapter base=none
        [--suite own-c] [--limit 60] [--n 5] [--turns 5] [--seconds 240] [--engine vllm]

Each policy is an evaluation of its own in the data folder (``CUDAPERF_DATA_DIR``), tested on the emulator with all
processors; a stopped one is gone on with by the same command. FOLDER/NAME.json has its facts, written again whenever
five more tasks are done. Times come after, with the engine gone: ``cudaperf eval time NAME…``. The base model gets
fewer tokens an answer (``--base-tokens``): it never ends one. Policies go on side by side, so that no processor is idle
while one's last trajectories are waited for; the bare model comes after them, alone. ``--engine local`` holds one
adapter, and takes all in turn.

``--validate NAME=FOLDER…`` also tries those adapters on the suite ``validation``, one turn each, and says which one is
right most often (the first of those that are): FOLDER/validation/choice.json, and its weights as they would ship in
FOLDER/chosen-adapter.tar. If it is none of the policies that are evaluated it is evaluated too, as ``chosen``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from langgraph.runtime import RunControl  # noqa: E402

from cudaperf_agent.cli.parts import make_deps, open_store  # noqa: E402
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig  # noqa: E402
from cudaperf_agent.policies.base import Policy  # noqa: E402
from cudaperf_agent.policies.local import LocalConfig, LocalPolicy  # noqa: E402
from cudaperf_agent.policies.model_spec import chosen_adapter  # noqa: E402
from cudaperf_agent.policies.sampling import SamplingConfig  # noqa: E402
from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy  # noqa: E402
from cudaperf_agent.settings import load_settings  # noqa: E402
from cudaperf_agent.store.repository import Store  # noqa: E402
from training.beside_engine import CAPTURE_SIZES, SPARED_PROCESSORS, judging_jobs  # noqa: E402
from training.evaluation.ahead import TasksAhead  # noqa: E402
from training.evaluation.collect import collect  # noqa: E402
from training.evaluation.drive import DriveConfig, drive  # noqa: E402
from training.evaluation.estimates import estimate  # noqa: E402
from training.evaluation.facts import Evaluation  # noqa: E402
from training.evaluation.kernel_times import KernelTimes  # noqa: E402
from training.evaluation.plan import Plan, Plans, Settings, check_same, new_plan  # noqa: E402
from training.evaluation.suites.find import find_suite  # noqa: E402
from training.sft.phases import say  # noqa: E402

WRITE_EVERY = 5
"""Finished tasks between two writings of an evaluation's facts."""

Adapters = dict[str, Path | None]


@dataclass(frozen=True, slots=True)
class Order:
    """What policies are put to: the suite and its first tasks, trajectories a task, turns; and where facts go."""

    suite: str
    limit: int | None
    n: int
    turns: int
    seeds: int
    out: Path

    def settings(self, policy: str) -> Settings:
        """Of a policy's evaluation."""
        return Settings(self.suite, policy, self.n, self.turns, self.seeds, self.limit)


def adapters(given: list[str]) -> Adapters:
    """NAME=FOLDER, NAME=shipped or NAME=none, in the order given; the bare model last."""
    found: Adapters = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise SystemExit(f"{text}: NAME=FOLDER, NAME=shipped or NAME=none")
        folder = (
            None
            if value == "none"
            else chosen_adapter("shipped" if value == "shipped" else Path(value), in_the_box=True)
        )
        if value != "none" and (folder is None or not (folder / "adapter_config.json").exists()):
            raise SystemExit(f"{value} is no adapter")
        found[name] = folder
    return dict(sorted(found.items(), key=lambda pair: pair[1] is None))


def make_policy(args: argparse.Namespace, policies: int) -> VllmPolicy | LocalPolicy:
    """The engine, not yet started; of so many policies with adapters."""
    sampling = sampling_of(args, bare=False)
    if args.engine == "local":
        return LocalPolicy(LocalConfig(sampling=sampling, batch=args.batch))
    sizes = tuple(size for size in CAPTURE_SIZES if size <= args.sequences)
    return VllmPolicy(
        VllmConfig(
            lora_rank=args.rank if policies else 0,
            adapters_at_once=max(1, policies),
            dtype=args.dtype,
            memory_share=args.memory_share,
            max_model_len=args.context,
            max_sequences=args.sequences,
            capture_sizes=sizes,
            eager=args.eager,
            sampling=sampling,
        )
    )


def sampling_of(args: argparse.Namespace, *, bare: bool) -> SamplingConfig:
    """How a policy answers; the bare model in fewer tokens."""
    return SamplingConfig(args.temperature, args.top_p, args.base_tokens if bare else args.max_tokens)


async def evaluate(
    name: str,
    adapter: Path | None,
    policy: Policy,
    verifier: Verifier,
    ahead: TasksAhead,
    store: Store,
    order: Order,
    args: argparse.Namespace,
    until: float,
) -> bool:
    """One evaluation, as far as the time allows; whether it is complete."""
    sampling = sampling_of(args, bare=adapter is None)
    suite = (await asyncio.to_thread(find_suite, order.suite)).limited(order.limit)
    settings = order.settings(f"{args.engine}:{name}")
    plans = Plans()
    plan = plans.load(name)
    if plan is None:
        # Folders of adapters differ from machine to machine; the evaluation's name says which one it was.
        told = f"{args.engine}:smollm2-135m-instruct" + (f"+{name}" if adapter is not None else "")
        notes = (*suite.notes, f"Answers of at most {sampling.max_tokens} tokens at temperature {args.temperature:g}.")
        plan = new_plan(name, settings, suite, told, verifier.backend, notes)
        plans.save(plan)
    else:
        check_same(plan, settings, suite, plan.policy, verifier.backend)
    began, finished = time.monotonic(), 0

    def told_line(text: str) -> None:
        nonlocal finished
        finished += 1
        say(f"{name} {text}")
        if finished % WRITE_EVERY == 0:
            write(order.out, store, plans, plan)

    control = RunControl()

    def stop() -> None:
        # What is at work ends its step, and its task is gone on with next time; this may be all there is time for.
        write(order.out, store, plans, plan)
        control.request_drain()

    stopping = asyncio.get_running_loop().call_later(max(0.0, until - time.monotonic()), stop)
    deps = make_deps(policy, verifier, store, load_settings().settings.prompt, small=True)
    config = DriveConfig(at_once=args.tasks_at_once, at_once_batched=args.tasks_at_once)
    progress = await drive(
        suite, plan, plans, deps, prepare=ahead.prepared, config=config, say=told_line, control=control
    )
    stopping.cancel()
    say(f"{name}: {progress.done} of {progress.of} tasks in {time.monotonic() - began:.1f} s")
    write(order.out, store, plans, plan)
    return progress.complete


def write(out: Path, store: Store, plans: Plans, plan: Plan) -> None:
    """The facts so far, as `cudaperf eval report NAME --json` has them; whole or not at all."""
    found = collect(store, plan, KernelTimes.load(plans.folder))
    facts = {
        "evaluation": found.to_dict(),
        "estimates": {group: estimate(found, group).to_dict() for group in found.groups},
    }
    new = out / f".{plan.name}.new"
    new.write_text(json.dumps(facts), encoding="utf-8")
    new.replace(out / f"{plan.name}.json")


async def run(args: argparse.Namespace) -> int:
    """All evaluations; 0 where each is complete."""
    until = time.monotonic() + args.seconds
    wanted, candidates = adapters(args.policies), adapters(args.validate)
    trained = {folder for folder in (*wanted.values(), *candidates.values()) if folder is not None}
    engine = make_policy(args, len(trained))
    # Beside vLLM: its two processes must not wait for compilers and tests.
    jobs = judging_jobs(args.spare if args.engine == "vllm" else 0)
    verifier = Verifier(VerifierConfig(remembered_tasks=1024, compile_jobs=jobs, run_jobs=jobs), gpu=None)
    ahead = TasksAhead(verifier.place.sandbox.wrap)
    order = Order(args.suite, args.limit, args.n, args.turns, args.seeds, args.out)
    trial = Order("validation", args.validation_limit, args.validation_n, 1, 1, args.out / "validation")
    orders = [order, trial] if candidates else [order]
    for each in orders:
        each.out.mkdir(parents=True, exist_ok=True)
    ahead.start([i.load for o in orders for i in find_suite(o.suite).limited(o.limit).items], say)
    try:
        with open_store(load_settings().settings) as store:
            # One policy an adapter, or the engine would hold it twice.
            policies: dict[Path | None, Policy] = {}

            async def one(name: str, folder: Path | None, order: Order) -> bool:
                sampling = sampling_of(args, bare=folder is None)
                if isinstance(engine, LocalPolicy) or folder is None:
                    policies[folder] = engine
                    engine.use_adapter(folder)
                    engine.use_sampling(sampling)
                elif folder not in policies:
                    policies[folder] = engine.beside(folder, sampling)
                return await evaluate(name, folder, policies[folder], verifier, ahead, store, order, args, until)

            todo = [(f"validation-{name}", folder, trial) for name, folder in candidates.items()]
            todo += [(name, folder, order) for name, folder in wanted.items()]
            if isinstance(engine, VllmPolicy):
                began = time.monotonic()
                await engine.start()
                say(f"the engine is up after {time.monotonic() - began:.1f} s")
            beside = [job for job in todo if isinstance(engine, VllmPolicy) and job[1] is not None]
            whole = all(await asyncio.gather(*(one(*job) for job in beside)))
            for job in todo:
                if job not in beside:
                    whole &= await one(*job)
            if candidates:
                chosen = with_chosen(wanted, candidates, trial.out).get("chosen")
                if chosen is not None and chosen not in wanted.values():
                    whole &= await one("chosen", chosen, order)
    finally:
        await engine.aclose()
        await verifier.aclose()
    return 0 if whole else 1


def with_chosen(wanted: Adapters, candidates: Adapters, folder: Path) -> Adapters:
    """The policies, and as ``chosen`` the best candidate if it is none of them; the choice is written down."""
    rights = {name: right_by_task(folder / f"validation-{name}.json") for name in candidates}
    common = set.intersection(*(set(found) for found in rights.values()))
    if not common:
        say("no task of the validation was done by all candidates: none is chosen")
        return wanted
    shares = {name: sum(found[key] for key in common) / len(common) for name, found in rights.items()}
    best = max(shares, key=lambda name: shares[name])
    same = next((name for name, folder in wanted.items() if folder == candidates[best]), "chosen")
    told = {"chosen": best, "evaluated_as": same, "tasks": len(common), "pass@1": shares}
    (folder / "choice.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    say(f"chosen by {len(common)} tasks of the validation: {best}; pass@1 {shares}")
    if (adapter := candidates[best]) is not None:
        pack_adapter(adapter, folder.parent / "chosen-adapter.tar")
    return wanted if same in wanted else {same: candidates[best], **wanted}


def pack_adapter(adapter: Path, into: Path) -> None:
    """An adapter's weights in bfloat16 and its configuration, as ``adapter/…`` in a .tar; whole or not at all."""
    from training.grpo.callbacks import halve_weights

    new = into.with_name(f"{into.name}.new")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "adapter_model.safetensors"
        halve_weights(adapter / weights.name, weights)
        with tarfile.open(new, "w") as tar:
            tar.add(weights, f"adapter/{weights.name}")
            tar.add(adapter / "adapter_config.json", "adapter/adapter_config.json")
    new.replace(into)


def right_by_task(path: Path) -> dict[str, float]:
    """Share of the trajectories that are right, by task that is finished."""
    if not path.exists():
        return {}
    found = Evaluation.from_dict(json.loads(path.read_text(encoding="utf-8"))["evaluation"])
    done = [t for t in found.tasks if len(t.outcomes) == found.n * found.seeds]
    return {t.key: sum(o.correct for o in t.outcomes) / len(t.outcomes) for t in done}


def main(argv: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("policies", nargs="+", metavar="NAME=ADAPTER")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--suite", default="own-c")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--n", type=int, default=5)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--validate", nargs="*", default=[], metavar="NAME=ADAPTER", help="which of these to choose")
    parser.add_argument("--validation-n", type=int, default=3, help="answers to each of its tasks")
    parser.add_argument("--validation-limit", type=int, help="its first tasks")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=240.0, help="start of the engine included")
    parser.add_argument(
        "--spare", type=int, default=SPARED_PROCESSORS, help="processors not used by compilers and tests beside vLLM"
    )
    parser.add_argument("--engine", choices=("vllm", "local"), default="vllm")
    parser.add_argument("--tasks-at-once", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--max-tokens", type=int, default=900)
    parser.add_argument("--base-tokens", type=int, default=400)
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16, help="answers drawn together by the local engine")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--memory-share", type=float, default=0.5)
    parser.add_argument("--eager", action="store_true")
    args = parser.parse_args(argv)
    return asyncio.run(run(args))


if __name__ == "__main__":
    # The engine's worker reads this: a child that is forked from a process with threads may hang.
    os.environ.setdefault("VLLM_WORKER_MULTIPROCESSING_METHOD", "spawn")
    sys.exit(main())
