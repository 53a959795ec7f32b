"""Who generates in training: vLLM beside the trainer, or the trained model itself, each with the newest weights."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from cudaperf_agent.cuda.gpu import chosen_environment
from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Policy, Proposal, ProposalRequest
from cudaperf_agent.policies.sampling import Row, SamplingConfig, row_seed, sample
from cudaperf_agent.policies.vllm import VllmConfig, VllmPolicy
from training.grpo.config import ModelSection, RolloutSection
from training.grpo.plan import adapter_rank

_ADAPTERS_KEPT = 2
_RANKS = (8, 16, 32, 64, 128, 256)  # that vLLM's kernels are made for


class Engine(Protocol):
    """A policy that follows the weights in training."""

    @property
    def policy(self) -> Policy:
        """Who proposes."""
        ...

    async def start(self) -> None:
        """Start what takes long, before the trainer takes memory."""
        ...

    def follow(self, model: Any, step: int) -> None:
        """From the next request on, answer as `model` (the peft model, unwrapped) does now."""
        ...


def sampling_of(section: RolloutSection) -> SamplingConfig:
    """How answers are drawn."""
    return SamplingConfig(temperature=section.temperature, top_p=section.top_p, max_tokens=section.max_tokens)


class VllmEngine:
    """vLLM's engine; the adapter is written and loaded anew before each step, under a new id.

    Args:
        model: What is trained.
        section: How trajectories are drawn.
        folder: Where adapters go; the newest ones stay.
    """

    def __init__(self, model: ModelSection, section: RolloutSection, folder: Path) -> None:
        self._folder = folder
        rank = adapter_rank(model)
        self._policy = VllmPolicy(
            VllmConfig(
                model=model.base,
                lora_rank=next(known for known in _RANKS if known >= rank),
                dtype=model.dtype,
                memory_share=section.gpu_memory,
                max_model_len=section.max_model_len,
                max_sequences=max(section.capture_sizes, default=256),
                capture_sizes=section.capture_sizes,
                eager=not section.capture_sizes,
                sampling=sampling_of(section),
            )
        )

    @property
    def policy(self) -> VllmPolicy:
        """The engine as a policy."""
        return self._policy

    async def start(self) -> None:
        """Start the engine: tens of seconds."""
        with one_device():
            await self._policy.start()

    def follow(self, model: Any, step: int) -> None:
        """Write the adapter and load it hot."""
        folder = self._folder / f"step-{step:06d}"
        model.save_pretrained(folder)
        self._policy.use_adapter(folder)
        for old in sorted(self._folder.glob("step-*"))[:-_ADAPTERS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)


class ModelPolicy:
    """Proposes by a model that is in memory already, one batch at a time; takes batches.

    Args:
        name: For reports and the store.
        tokenizer: The model's.
        sampling: How answers are drawn.
        batch: Answers drawn together.
    """

    def __init__(self, name: str, tokenizer: Any, sampling: SamplingConfig, batch: int) -> None:
        self.model: Any = None
        self._name = name
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._batch = batch
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cudaperf-rollout")

    @property
    def name(self) -> str:
        """Short name."""
        return self._name

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """As `Policy.propose`."""
        return (await self.propose_batch([request]))[0]

    async def propose_batch(self, requests: Sequence[ProposalRequest]) -> list[list[Proposal]]:
        """As `graph.batching.BatchPolicy.propose_batch`."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._answer, list(requests))

    async def aclose(self) -> None:
        """Release the thread."""
        self._executor.shutdown(wait=False)

    def _answer(self, requests: Sequence[ProposalRequest]) -> list[list[Proposal]]:
        context = int(getattr(self.model.config, "max_position_embeddings", 8192))
        rows = [Row(self._encode(r, context), row_seed(r, k)) for r in requests for k in range(r.n)]
        for start in range(0, len(rows), self._batch):
            sample(self.model, self._tokenizer, rows[start : start + self._batch], self._sampling, context)
        answers = iter(
            Proposal(
                text=row.text,
                finish_reason=row.finish_reason,
                model=self._name,
                prompt_token_ids=tuple(row.prompt),
                token_ids=tuple(row.ids),
                logprobs=tuple(row.logprobs),
                usage={"prompt_tokens": len(row.prompt), "completion_tokens": len(row.ids)},
            )
            for row in rows
        )
        return [[next(answers) for _ in range(r.n)] for r in requests]

    def _encode(self, request: ProposalRequest, context: int) -> list[int]:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        text = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) >= context:
            raise UsageError(f"the prompt is {len(ids)} tokens long, the model takes {context}")
        return ids


class ModelEngine:
    """The trained model itself generates, in this process.

    Args:
        name: Of the policy.
        tokenizer: The model's.
        section: How trajectories are drawn.
    """

    def __init__(self, name: str, tokenizer: Any, section: RolloutSection) -> None:
        self._policy = ModelPolicy(f"local:{name}", tokenizer, sampling_of(section), section.batch)

    @property
    def policy(self) -> ModelPolicy:
        """The model as a policy."""
        return self._policy

    async def start(self) -> None:
        """Nothing to start."""

    def follow(self, model: Any, step: int) -> None:
        """The weights are the trainer's own."""
        self._policy.model = model


_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK")


@contextmanager
def one_device() -> Iterator[None]:
    """The environment in which an engine's process starts: a fresh one, on this process's device only.

    The engine must not take the trainer's launcher for its own, nor inherit a driver that this process has opened.
    """
    chosen_environment()  # decided before, since candidates may run while the engine starts
    before = dict(os.environ)
    os.environ.setdefault("VLLM_WORKER_MULTIPROCESSING_METHOD", "spawn")
    if "LOCAL_RANK" in before:
        visible = before.get("CUDA_VISIBLE_DEVICES", "").split(",")
        rank = int(before["LOCAL_RANK"])
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[rank] if len(visible) > rank and visible[rank] else str(rank)
        for name in _LAUNCHER:
            os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
