"""A policy that runs a Hugging Face model in this process: any folder, with a LoRA adapter where there is one."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable, UsageError
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.policies.model_spec import ModelSpec
from cudaperf_agent.policies.quiet import quiet_libraries
from cudaperf_agent.policies.sampling import Row, SamplingConfig, row_seed, sample
from cudaperf_agent.policies.smollm2 import check_smollm2, smollm2_folder

_INSTALL = 'Install it with: pip install "cudaperf-agent[local]"'


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """Which model, and where it runs.

    Attributes:
        model: A Hugging Face folder; `None` is SmolLM2-135M-Instruct.
        adapter: A peft LoRA folder on top of it; it is merged into the weights, which halves the time of a token.
        device: ``auto`` takes a GPU if torch sees one.
        batch: Most answers drawn together.
        sampling: How answers are drawn.
    """

    model: Path | None = None
    adapter: Path | None = None
    device: str = "auto"
    batch: int = 8
    sampling: SamplingConfig = field(default_factory=SamplingConfig)


class LocalPolicy:
    """Proposes by a local model. It is loaded on the first call, and drawn from by one thread only."""

    def __init__(self, config: LocalConfig | None = None) -> None:
        self._config = config or LocalConfig()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cudaperf-local")
        self._loaded: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """``local:MODEL``, with ``+ADAPTER`` where one is loaded; folders are absolute, for runs that are resumed."""
        model = str(self._config.model.absolute()) if self._config.model else None
        adapter = self._config.adapter.absolute() if self._config.adapter else None
        return f"local:{ModelSpec(model, adapter)}"

    def use_adapter(self, folder: Path | None) -> None:
        """From the next request on, answer with this adapter (`None`: the bare model); the model is loaded anew."""
        self._config = replace(self._config, adapter=folder)
        self._loaded = None

    def use_sampling(self, sampling: SamplingConfig) -> None:
        """From the next request on, draw like this."""
        self._config = replace(self._config, sampling=sampling)

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """`request.n` answers.

        Raises:
            BackendUnavailable: torch, transformers, peft or the weights are missing.
            UsageError: The prompt does not fit the model's context.
        """
        return (await self.propose_batch([request]))[0]

    async def propose_batch(self, requests: Sequence[ProposalRequest]) -> list[list[Proposal]]:
        """Answers to many requests, drawn together."""
        loop = asyncio.get_running_loop()

        def deliver(request: ProposalRequest, piece: str) -> None:
            if request.on_token:
                loop.call_soon_threadsafe(request.on_token, piece)

        return await loop.run_in_executor(self._executor, self._answer, list(requests), deliver)

    async def aclose(self) -> None:
        """Free the model once the answer in the making is done."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._unload)
        self._executor.shutdown(wait=False)

    def _answer(self, requests: Sequence[ProposalRequest], deliver: Any) -> list[list[Proposal]]:
        model, tokenizer = self._load()
        context = int(getattr(model.config, "max_position_embeddings", 8192))
        rows: list[Row] = []
        for request in requests:
            prompt = _encode(tokenizer, request, context)
            for k in range(request.n):
                listener = (lambda piece, r=request: deliver(r, piece)) if request.n == 1 else None
                rows.append(Row(prompt, row_seed(request, k), listener))
        for start in range(0, len(rows), self._config.batch):
            sample(model, tokenizer, rows[start : start + self._config.batch], self._config.sampling, context)
        answers = iter(self._proposal(row) for row in rows)
        return [[next(answers) for _ in range(request.n)] for request in requests]

    def _proposal(self, row: Row) -> Proposal:
        return Proposal(
            text=row.text,
            finish_reason=row.finish_reason,
            model=self.name,
            prompt_token_ids=tuple(row.prompt),
            token_ids=tuple(row.ids),
            logprobs=tuple(row.logprobs),
            usage={"prompt_tokens": len(row.prompt), "completion_tokens": len(row.ids)},
        )

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            self._loaded = load_model(self._config)
        return self._loaded

    def _unload(self) -> None:
        self._loaded = None


def check_local(config: LocalConfig) -> None:
    """Find out quickly whether a model can be loaded: nothing is imported, nothing converted.

    Raises:
        BackendUnavailable: A library, the model folder, the weights in the box or the adapter is missing.
    """
    needed = ("torch", "transformers", "peft") if config.adapter else ("torch", "transformers")
    for name in needed:
        if importlib.util.find_spec(name) is None:
            raise BackendUnavailable(f"{name} is not installed", hint=_INSTALL)
    if config.model is None:
        check_smollm2()
    elif not (config.model / "config.json").exists():
        raise BackendUnavailable(f"{config.model} is no Hugging Face model folder (it has no config.json)")
    if config.adapter and not (config.adapter / "adapter_config.json").exists():
        raise BackendUnavailable(f"{config.adapter} is no peft adapter (it has no adapter_config.json)")


def load_model(config: LocalConfig) -> tuple[Any, Any]:
    """The model (evaluation mode, bfloat16) and its tokenizer.

    Raises:
        BackendUnavailable: A library, the model folder or the adapter is missing.
    """
    check_local(config)
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise BackendUnavailable(f"{error.name or 'torch'} is not installed", hint=_INSTALL) from error
    folder = config.model or smollm2_folder()
    if not (folder / "config.json").exists():
        raise BackendUnavailable(f"{folder} is no Hugging Face model folder (it has no config.json)")
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with quiet_libraries():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
        if config.adapter:
            if not (config.adapter / "adapter_config.json").exists():
                raise BackendUnavailable(f"{config.adapter} is no peft adapter (it has no adapter_config.json)")
            from peft import PeftModel

            model = PeftModel.from_pretrained(model, str(config.adapter)).merge_and_unload()
    return model.to(device).eval(), tokenizer


def _encode(tokenizer: Any, request: ProposalRequest, context: int) -> list[int]:
    messages = [{"role": m.role, "content": m.content} for m in request.messages]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) >= context:
        raise UsageError(
            f"the prompt is {len(ids)} tokens long, the model takes {context}",
            hint='Use the compact prompt form (prompt.form = "compact") or a model with a longer context.',
        )
    return ids
