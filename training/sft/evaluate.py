"""What a warm-started adapter is worth: held-out members and unseen families through the graph, judged for real.

Beside training, everything slow is prepared while it runs, then the adapter is awaited. For an adapter that is there:

    python -m training.sft.evaluate --out FOLDER --adapter shipped --phases five,samples --seconds 200

Every candidate is kept with its verdict as it comes, and counted from there: the same command goes on where it was
stopped, and a phase that was cut short tells of how many tasks it has a result.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cudaperf_agent.policies.sampling import SamplingConfig
from training.beside_engine import CAPTURE_SIZES, SPARED_PROCESSORS, judging_jobs
from training.sft.phases import PHASES, Entry, Evaluation, EvaluationConfig, Switchable, say


async def evaluate(arguments: argparse.Namespace, config: EvaluationConfig) -> dict[str, Any]:
    """Prepare, wait for the adapter, run, and tell its card."""
    from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
    from cudaperf_agent.policies.model_spec import shipped_adapter
    from cudaperf_agent.store.repository import Store

    started = time.monotonic()
    policy = _policy(arguments)
    jobs = judging_jobs(SPARED_PROCESSORS if arguments.engine == "vllm" else 0)
    verifier = Verifier(VerifierConfig(remembered_tasks=1024, compile_jobs=jobs, run_jobs=jobs), gpu=None)
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/evaluation.sqlite") as store:
        work = Evaluation(policy, verifier, store, arguments.out, config, started + arguments.seconds)
        try:
            work.go_on()
            entries = await work.prepare()
            say(f"{len(entries)} tasks prepared")
            await _warm(policy, entries)
            say("the engine is up")
            await work.run_base(entries)
            adapter: Path | None = arguments.adapter
            if adapter == Path("shipped"):
                adapter = shipped_adapter()
            while adapter and not (adapter / "adapter_model.safetensors").exists():
                if time.monotonic() > work.until:
                    say("no adapter came")
                    return {}
                await asyncio.sleep(config.wait_step)
            if adapter:
                policy.use_adapter(adapter)
                # The card of what ships is written from what is kept of the results.
                work.adapter = adapter if arguments.adapter != Path("shipped") else None
            return await work.run(entries)
        finally:
            await policy.aclose()
            await verifier.aclose()


async def _warm(policy: Switchable, entries: Sequence[Entry]) -> None:
    """One short answer, so that the engine is up before the adapter is there."""
    from cudaperf_agent.policies.base import ProposalRequest
    from cudaperf_agent.policies.prompts import PromptConfig, build_messages

    policy.use_sampling(SamplingConfig(0.0, 1.0, 4))
    for entry in entries[:1]:
        messages = build_messages(entry.task, config=PromptConfig.compact())
        await policy.propose(ProposalRequest(messages, entry.task))


def _policy(arguments: argparse.Namespace) -> Switchable:
    from training.sft.run import model_folder

    model = model_folder(arguments.model, arguments.out)
    if arguments.engine == "local":
        from cudaperf_agent.policies.local import LocalConfig, LocalPolicy

        return LocalPolicy(LocalConfig(model=model))
    from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy

    return VllmPolicy(
        VllmConfig(
            model=str(model),
            lora_rank=arguments.rank,
            memory_share=arguments.memory_share,
            cache_bytes=int(arguments.cache_gib * 2**30),
            max_model_len=arguments.context,
            max_sequences=arguments.sequences,
            dtype=arguments.dtype,
            capture_sizes=tuple(size for size in CAPTURE_SIZES if size <= arguments.sequences),
            eager=arguments.eager,
        )
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Command line of the evaluation on the training machine."""
    defaults = EvaluationConfig()
    parser = argparse.ArgumentParser(prog="python -m training.sft.evaluate", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, help="awaited, if it is not there yet; `shipped`: ours")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--engine", choices=("vllm", "local"), default="vllm")
    parser.add_argument("--seconds", type=float, default=300.0, help="from now; no phase begins later")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--memory-share", type=float, default=0.15)
    parser.add_argument("--cache-gib", type=float, default=16.0, help="of the engine's key-value cache")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--turns", type=int, default=defaults.turns)
    parser.add_argument("--samples", type=int, default=defaults.samples)
    parser.add_argument("--most", type=int, help="tasks of each split")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--eager", action="store_true", help="no CUDA graphs")
    parser.add_argument("--max-tokens", type=int, default=defaults.max_tokens)
    arguments = parser.parse_args(argv)
    phases = tuple(arguments.phases.split(","))
    if not set(phases) <= set(PHASES):
        parser.error(f"--phases are of {', '.join(PHASES)}")
    config = EvaluationConfig(
        turns=arguments.turns,
        samples=arguments.samples,
        most=arguments.most,
        max_tokens=arguments.max_tokens,
        phases=phases,
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(evaluate(arguments, config))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
