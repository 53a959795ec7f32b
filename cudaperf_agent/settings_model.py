"""What the settings are: one typed model per section, each field documented where it is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class Section(BaseModel):
    """A table of settings: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class TranslateSettings(Section):
    """How a translation is searched for."""

    policy: str = "auto"
    """Who proposes: `auto`, `variants`, `openai`, `local`, `vllm`, `ensemble` or `scripted:PATH`."""
    turns: int = Field(default=5, ge=1, le=5)
    """Turns of generate, compile, test and feedback per trajectory, at most 5."""
    trajectories: int = Field(default=1, ge=1, le=1024)
    """Independent searches that run at the same time; the best result of all is taken."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the test inputs and of sampling."""
    time_budget: float | None = Field(default=None, gt=0)
    """Seconds after which a translation stops; unset means no limit."""


class EndpointSettings(Section):
    """An OpenAI-compatible endpoint, for instance a vLLM server."""

    url: str | None = Field(default=None, pattern=r"^https?://[^\s]+$")
    """Base URL with the version, for instance `http://localhost:8000/v1`."""
    model: str | None = None
    """Model name; unset takes the first one that the endpoint lists."""
    api_key: SecretStr | None = None
    """Key sent to the endpoint as a bearer token. Better set in the environment than in a file."""
    temperature: float = Field(default=0.4, ge=0, le=2)
    """Sampling temperature; 0.2 to 0.7 suits candidate generation."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling: share of the probability mass that is kept."""
    max_tokens: int | None = Field(default=None, ge=64)
    """Tokens one answer may have; a longer one is cut and recognised. Unset is 4096, and 1400 for a small model."""
    stream: bool = True
    """Whether tokens are shown as they arrive."""
    logprobs: bool | None = None
    """Ask for token ids and log-probabilities, so that a run can be trained on; unset asks vLLM servers only."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds one request may take."""
    probe_timeout: float = Field(default=2.0, gt=0)
    """Seconds the endpoint has to answer whether it is there."""
    retries: int = Field(default=4, ge=0, le=20)
    """How often a request is tried again after a connection error, 429 or 5xx."""
    backoff: float = Field(default=0.5, gt=0)
    """Seconds before the first repetition; doubled each time, with jitter."""
    backoff_max: float = Field(default=30.0, gt=0)
    """Longest wait between two tries, in seconds; also caps what a server asks for."""


class PromptSettings(Section):
    """What a model gets to read."""

    form: Literal["auto", "full", "compact"] = "auto"
    """`compact` has best attempt and last feedback only, at most 3,000 tokens; `auto` takes it for small models."""
    max_tokens: int = Field(default=16000, ge=1000)
    """Tokens (estimated) that a whole full prompt may have."""
    examples: Literal["shipped", "none"] | Path = "shipped"
    """Worked translations of which full prompts show the most fitting: `shipped`, `none`, or a file (JSON lines)."""


class LocalSettings(Section):
    """A model in this process, by transformers (`--policy local`)."""

    model: Path | None = None
    """Hugging Face folder; unset is SmolLM2-135M-Instruct, which comes with the `local` extra."""
    adapter: Literal["shipped", "none"] | Path = "shipped"
    """LoRA folder (peft) on top of the model, or `none`; `shipped` is ours, for SmolLM2-135M-Instruct only."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where it runs; `auto` takes a GPU if torch sees one."""
    batch: int = Field(default=8, ge=1)
    """Most answers drawn together."""
    temperature: float = Field(default=0.6, ge=0, le=2)
    """Sampling temperature; 0 is greedy."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling: share of the probability mass that is kept."""
    max_tokens: int = Field(default=1400, ge=1)
    """Tokens one answer may have."""


class VllmSettings(Section):
    """A model in this process, by vLLM's engine (`--policy vllm`)."""

    model: str | None = None
    """Hugging Face name or folder; unset is SmolLM2-135M-Instruct."""
    adapter: Literal["shipped", "none"] | Path = "shipped"
    """LoRA folder (peft) on top of the model, or `none`; `shipped` is ours, for SmolLM2-135M-Instruct only."""
    lora_rank: int = Field(default=64, ge=0)
    """Largest rank of an adapter; 0 switches adapters off."""
    dtype: str = "bfloat16"
    """Type of the weights."""
    quantization: str | None = None
    """vLLM's name of a quantisation, for instance `bitsandbytes`."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs the model is spread over."""
    memory_share: float | None = Field(default=None, gt=0, le=1)
    """Share of the GPU's memory for the engine; unset leaves it to vLLM. Candidates need some for their tests."""
    max_model_len: int | None = Field(default=None, ge=1024)
    """Longest sequence in tokens; unset is the model's own."""
    max_sequences: int = Field(default=256, ge=1)
    """Most sequences at work at once."""
    eager: bool = False
    """No CUDA graphs: starts sooner, generates slower."""
    temperature: float = Field(default=0.6, ge=0, le=2)
    """Sampling temperature; 0 is greedy."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling: share of the probability mass that is kept."""
    max_tokens: int = Field(default=1400, ge=1)
    """Tokens one answer may have."""


class ServeSettings(Section):
    """What `cudaperf serve` starts."""

    model: str = "smollm2"
    """Hugging Face name or folder; `smollm2` or `smollm2-135m-instruct` is the small model in the box."""
    adapter: Literal["shipped", "none"] | Path = "shipped"
    """LoRA folder (peft) served as `cudaperf` beside the bare model, or `none`; `shipped` is the small model's."""
    host: str = "127.0.0.1"
    """Address the server listens on. It asks for no key: anything but a loopback address opens it to the network."""
    port: int = Field(default=8000, ge=1, le=65535)
    """Port the server listens on."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs the model is spread over."""
    quantization: str | None = None
    """vLLM's name of a quantisation, for instance `bitsandbytes`."""
    max_model_len: int | None = Field(default=None, ge=1024)
    """Longest sequence in tokens; unset takes the model's own, or what the memory holds. Five turns need 20,000."""
    lora_rank: int = Field(default=64, ge=0)
    """Largest rank of an adapter, also of those loaded while it runs; 0 switches adapters off."""
    dtype: str = "auto"
    """Type of the weights; `auto` is the model's own."""
    start_timeout: float = Field(default=900.0, gt=0)
    """Seconds until the server has to be up; a large model is downloaded and loaded in that time."""


class VerifySettings(Section):
    """How `cudaperf verify` judges."""

    trust: Literal["suspicious", "own"] = "suspicious"
    """`own`, only for what our own generator made: on a GPU nothing looks for cheats, which is quicker.
    A project file cannot set it."""


class Settings(Section):
    """All settings."""

    database_url: str | None = None
    """Where runs are remembered, `sqlite:///PATH`; unset means a file in the data folder."""
    display: Literal["auto", "plain", "log", "none"] = "auto"
    """Progress on stderr: `auto` is live on a terminal and plain elsewhere."""
    translate: TranslateSettings = TranslateSettings()
    endpoint: EndpointSettings = EndpointSettings()
    prompt: PromptSettings = PromptSettings()
    local: LocalSettings = LocalSettings()
    vllm: VllmSettings = VllmSettings()
    serve: ServeSettings = ServeSettings()
    verify: VerifySettings = VerifySettings()
