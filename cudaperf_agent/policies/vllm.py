"""A policy on vLLM's engine in this process: continuous batching over every live trajectory, adapters replaced hot.

The engine belongs to the event loop that first used it, so a process has one loop for all of its rollouts.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable, CudaPerfError, UsageError
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.policies.model_spec import ModelSpec
from cudaperf_agent.policies.sampling import SamplingConfig, row_seed
from cudaperf_agent.policies.smollm2 import check_smollm2, smollm2_folder

_INSTALL = 'Install it with: pip install "cudaperf-agent[vllm]"'


@dataclass(frozen=True, slots=True)
class VllmConfig:
    """What the engine is started with.

    Attributes:
        model: Hugging Face folder or name; `None` is SmolLM2-135M-Instruct.
        adapter: LoRA folder to begin with.
        lora_rank: Largest rank of an adapter that may be loaded later; 0 switches adapters off.
        dtype: Of the weights.
        quantization: vLLM's name of a quantisation (``bitsandbytes``), `None` for none.
        tensor_parallel: GPUs the model is spread over.
        memory_share: Share of the GPU's memory that the engine may take; `None` leaves it to vLLM.
        cache_bytes: Size of the key-value cache. Set, nothing is measured for it at the start, which goes wrong where
            another process fills the GPU at the same time; `None` takes what `memory_share` leaves.
        max_model_len: Longest sequence; `None` is the model's own.
        max_sequences: Most sequences at work at once.
        eager: No CUDA graphs: starts sooner, generates slower.
        capture_sizes: Batch sizes for which CUDA graphs are recorded; few start sooner. `None` leaves it to vLLM.
        sampling: How answers are drawn.
        adapters_at_once: Adapters that requests at work at the same time may have; more wait for each other.
    """

    model: str | None = None
    adapter: Path | None = None
    lora_rank: int = 64
    dtype: str = "bfloat16"
    quantization: str | None = None
    tensor_parallel: int = 1
    memory_share: float | None = None
    cache_bytes: int | None = None
    max_model_len: int | None = None
    max_sequences: int = 256
    eager: bool = False
    capture_sizes: tuple[int, ...] | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    adapters_at_once: int = 2


@dataclass(frozen=True, slots=True)
class _Draw:
    """Whose weights answer, and how: an adapter's number is the engine's name for what it holds of it."""

    adapter: Path | None
    number: int
    sampling: SamplingConfig

    def lora(self) -> Any:
        if self.adapter is None:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest(f"{self.adapter.name}-{self.number}", self.number, str(self.adapter))


class VllmPolicy:
    """Proposes by an engine that starts on the first call (tens of seconds)."""

    def __init__(self, config: VllmConfig | None = None) -> None:
        self._config = config or VllmConfig()
        self._engine: Any = None
        self._tokenizer: Any = None
        self._starting: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._numbers = itertools.count()
        self._adapter_numbers = itertools.count(1)
        self._draw = _Draw(self._config.adapter, next(self._adapter_numbers), self._config.sampling)

    @property
    def name(self) -> str:
        """``vllm:MODEL``, with ``+ADAPTER`` where one is loaded; adapters' folders are absolute."""
        return self._name(self._draw)

    def use_adapter(self, folder: Path | None) -> None:
        """From the next request on, answer with this adapter (`None`: the bare model). Running requests keep theirs.

        Raises:
            UsageError: The engine was configured without adapters.
        """
        self._draw = self._new_draw(folder, self._draw.sampling)

    def beside(self, folder: Path, sampling: SamplingConfig) -> VllmBeside:
        """A policy of its own on this engine, answering by this adapter while others answer by theirs.

        It lives as long as this policy does. More adapters at once than `VllmConfig.adapters_at_once` take turns. The
        bare model has none: vLLM for CPUs (0.31) answers its requests by an adapter that happens to be in the batch.

        Raises:
            UsageError: The engine was configured without adapters.
        """
        return VllmBeside(self, self._new_draw(folder, sampling))

    async def start(self) -> None:
        """Start the engine now, on the event loop that will use it, instead of with the first request.

        Raises:
            BackendUnavailable: vLLM is missing or does not start.
        """
        await self._start()

    def use_sampling(self, sampling: SamplingConfig) -> None:
        """From the next request on, draw like this."""
        self._draw = replace(self._draw, sampling=sampling)

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """`request.n` answers, drawn beside those of every other trajectory.

        Raises:
            BackendUnavailable: vLLM is missing, does not start, or its engine died.
            UsageError: The prompt does not fit the model's context.
        """
        return await self._propose(request, self._draw)

    async def aclose(self) -> None:
        """Stop the engine's processes."""
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None

    def _name(self, draw: _Draw) -> str:
        return f"vllm:{ModelSpec(self._config.model, draw.adapter.absolute() if draw.adapter else None)}"

    def _new_draw(self, folder: Path | None, sampling: SamplingConfig) -> _Draw:
        if folder is not None and not self._config.lora_rank:
            raise UsageError("this engine takes no adapters", hint="Set lora_rank above 0.")
        # A new number, or the engine would go on with the weights it has cached under the old one.
        return _Draw(folder, next(self._adapter_numbers), sampling)

    async def _propose(self, request: ProposalRequest, draw: _Draw) -> list[Proposal]:
        await self._start()
        prompt = self._encode(request)
        answers = [self._answer(request, prompt, k, draw) for k in range(request.n)]
        return list(await asyncio.gather(*answers))

    async def _answer(self, request: ProposalRequest, prompt: list[int], k: int, draw: _Draw) -> Proposal:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = draw.sampling
        limit = self._engine.model_config.max_model_len - len(prompt)
        listener = request.on_token if request.n == 1 else None
        params = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=min(sampling.max_tokens, limit),
            seed=row_seed(request, k) if sampling.seeded else None,
            logprobs=0,
            stop=["\n```\n"] if sampling.stop_after_code else None,
            include_stop_str_in_output=True,
            output_kind=RequestOutputKind.DELTA if listener else RequestOutputKind.FINAL_ONLY,
        )
        ids: list[int] = []
        logprobs: list[float] = []
        text, reason = "", ""
        try:
            stream = self._engine.generate(
                {"prompt_token_ids": prompt}, params, f"cudaperf-{next(self._numbers)}", lora_request=draw.lora()
            )
            async for output in stream:
                piece = output.outputs[0]
                ids.extend(piece.token_ids)
                logprobs.extend(at[token].logprob for at, token in zip(piece.logprobs, piece.token_ids, strict=True))
                text += piece.text
                reason = piece.finish_reason or reason
                if listener and piece.text:
                    listener(piece.text)
        except Exception as error:
            if isinstance(error, CudaPerfError) or not type(error).__module__.startswith("vllm"):
                raise
            raise BackendUnavailable(f"vLLM's engine failed: {error}", hint="See its log above.") from error
        return Proposal(
            text=text,
            finish_reason=reason or "stop",
            model=self._name(draw),
            prompt_token_ids=tuple(prompt),
            token_ids=tuple(ids),
            logprobs=tuple(logprobs),
            usage={"prompt_tokens": len(prompt), "completion_tokens": len(ids)},
        )

    def _encode(self, request: ProposalRequest) -> list[int]:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        text = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) >= self._engine.model_config.max_model_len:
            raise UsageError(
                f"the prompt is {len(ids)} tokens long, the model takes {self._engine.model_config.max_model_len}",
                hint='Use the compact prompt form (prompt.form = "compact") or a model with a longer context.',
            )
        return ids

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop, self._starting = loop, asyncio.Lock()
        if self._loop is not loop:
            raise RuntimeError("the engine belongs to another event loop: keep one loop for the whole process")
        assert self._starting is not None
        async with self._starting:
            if self._engine is None:
                self._tokenizer, self._engine = start_engine(self._config)


class VllmBeside:
    """One of several policies that answer by one engine at the same time, each by an adapter of its own."""

    def __init__(self, owner: VllmPolicy, draw: _Draw) -> None:
        self._owner = owner
        self._draw = draw

    @property
    def name(self) -> str:
        """As `VllmPolicy.name`."""
        return self._owner._name(self._draw)

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """As `VllmPolicy.propose`."""
        return await self._owner._propose(request, self._draw)

    async def aclose(self) -> None:
        """Nothing: the engine is its owner's."""


def check_vllm(config: VllmConfig) -> None:
    """Find out quickly whether an engine can be started: nothing is imported, nothing converted.

    Raises:
        BackendUnavailable: vLLM, the weights in the box or the adapter is missing.
    """
    if importlib.util.find_spec("vllm") is None:
        raise BackendUnavailable("vllm is not installed", hint=_INSTALL)
    if config.model is None:
        check_smollm2()
    if config.adapter and not (config.adapter / "adapter_config.json").exists():
        raise BackendUnavailable(f"{config.adapter} is no peft adapter (it has no adapter_config.json)")


def start_engine(config: VllmConfig) -> tuple[Any, Any]:
    """Tokenizer and started engine. Blocks for tens of seconds; call it on the loop that will use the engine.

    Raises:
        BackendUnavailable: vLLM is not installed or the engine does not start.
    """
    try:
        from transformers import AutoTokenizer
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise BackendUnavailable(f"{error.name or 'vllm'} is not installed", hint=_INSTALL) from error
    model = config.model or str(smollm2_folder())
    options: dict[str, Any] = {
        "model": model,
        "dtype": config.dtype,
        "quantization": config.quantization,
        "tensor_parallel_size": config.tensor_parallel,
        "max_model_len": config.max_model_len,
        "max_num_seqs": config.max_sequences,
        "enforce_eager": config.eager,
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "generation_config": "vllm",
    }
    if config.memory_share is not None:
        options["gpu_memory_utilization"] = config.memory_share
    if config.capture_sizes:
        options["cudagraph_capture_sizes"] = list(config.capture_sizes)
    if config.cache_bytes is not None:
        options["kv_cache_memory_bytes"] = config.cache_bytes
    if config.lora_rank:
        options |= {"enable_lora": True, "max_lora_rank": config.lora_rank, "max_loras": config.adapters_at_once}
    try:
        engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**options))
    except (RuntimeError, ValueError, OSError) as error:
        raise BackendUnavailable(f"vLLM does not start {model}: {error}", hint="See its log above.") from error
    return AutoTokenizer.from_pretrained(model), engine
