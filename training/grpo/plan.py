"""What a step consists of on each device, and what it takes of memory: known before anything costly begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import ConfigError
from training.grpo.config import GrpoConfig, ModelSection

_GIB = 1 << 30
_NF4_BYTES = 0.55  # 4 bits and the constants of double quantisation
_ADAM_BYTES = 16  # weight, gradient and two moments in float32


@dataclass(frozen=True, slots=True)
class Layout:
    """One step on one device.

    Attributes:
        trajectories: Drawn there, whole groups.
        rows: Training rows of a full step.
        samples: TRL's batch of a device: trajectories of one forward pass.
        micro_batches: Forward passes of a step.
    """

    trajectories: int
    rows: int
    samples: int
    micro_batches: int


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """GiB on each device; an estimate: activations depend on the attention and on torch.

    Attributes:
        weights: The base.
        adapter: Adapter, gradients and moments.
        activations: One micro-batch of the longest rows, forward and backward.
        engine: What vLLM takes, where the device's memory is known.
        total: All of it.
    """

    weights: float
    adapter: float
    activations: float
    engine: float | None
    total: float


def world_size() -> int:
    """Training processes of this run, as accelerate's launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def layout_of(config: GrpoConfig, processes: int) -> Layout:
    """How a step is spread over devices and micro-batches.

    Raises:
        ConfigError: Its tasks cannot be spread evenly.
    """
    tasks = config.rollout.tasks_per_step
    if tasks % processes:
        raise ConfigError(
            f"{tasks} tasks a step cannot be spread over {processes} devices",
            where="rollout.tasks_per_step",
            hint=f"make it a multiple of {processes}: a group stays on one device",
        )
    local = tasks // processes * config.rollout.trajectories
    turns = config.rollout.turns
    samples = max((n for n in range(1, local + 1) if local % n == 0 and n * turns <= config.optimise.rows), default=1)
    return Layout(local, local * turns, samples, local // samples)


def estimate_memory(config: GrpoConfig, shape: Mapping[str, Any], device_bytes: int | None = None) -> MemoryEstimate:
    """Memory of training.

    Args:
        config: The run.
        shape: The base's ``config.json``.
        device_bytes: Memory of one device.
    """
    hidden, layers = int(shape["hidden_size"]), int(shape["num_hidden_layers"])
    inner, vocabulary = int(shape["intermediate_size"]), int(shape["vocab_size"])
    heads = int(shape["num_attention_heads"])
    width = int(shape.get("head_dim") or hidden // heads)
    kv = int(shape.get("num_key_value_heads", heads)) * width
    attention = (hidden, heads * width), (hidden, kv), (hidden, kv), (heads * width, hidden)
    linear = (*attention, (hidden, inner), (hidden, inner), (inner, hidden))
    in_layers = layers * sum(a * b for a, b in linear)
    outside = vocabulary * hidden * (1 if shape.get("tie_word_embeddings") else 2)
    plain = 2 if config.model.dtype == "bfloat16" else 4
    weights = in_layers * (_NF4_BYTES if config.model.quantise == "nf4" else plain) + outside * plain
    adapter = layers * sum(adapter_rank(config.model) * (a + b) for a, b in linear) * _ADAM_BYTES
    tokens = config.optimise.rows * (config.rollout.max_model_len or 8192)
    kept = 2 * hidden if config.model.gradient_checkpointing else 14 * hidden + 4 * inner
    # Kept for every layer, one layer's own while it is computed, and logits for a few thousand tokens at a time.
    activations = tokens * plain * (layers * kept + 14 * hidden + 4 * inner) + 4096 * vocabulary * 4
    engine = (
        device_bytes * config.rollout.gpu_memory / _GIB if device_bytes and config.rollout.engine == "vllm" else None
    )
    parts = [round(value / _GIB, 2) for value in (weights, adapter, activations)]
    return MemoryEstimate(parts[0], parts[1], parts[2], engine, round(sum(parts) + (engine or 0.0), 2))


def adapter_rank(model: ModelSection) -> int:
    """Rank of the adapter that is trained."""
    if model.adapter is None:
        return model.lora_rank
    path = model.adapter / "adapter_config.json"
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["r"])
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError("the adapter to begin with is no peft adapter", where=str(path)) from error


def step_plan(config: GrpoConfig, layout: Layout, processes: int, tasks: int, steps: int) -> dict[str, Any]:
    """The step in numbers, for ``--dry-run``."""
    return {
        "tasks": tasks,
        "steps": steps,
        "devices": processes,
        "trajectories_per_step": layout.trajectories * processes,
        "candidates_per_step": layout.rows * processes,
        "per_device": asdict(layout),
        "rows_per_forward_pass": layout.samples * config.rollout.turns,
        "order": "generate and verify, then learn; the adapter is loaded into the engine before the next step",
    }


def model_shape(model: ModelSection) -> dict[str, Any] | None:
    """The base's ``config.json``, where it is on this machine."""
    from cudaperf_agent.execution.paths import cache_dir
    from cudaperf_agent.policies.smollm2 import NAME

    folder = Path(model.base) if model.base else cache_dir() / "models" / NAME
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
