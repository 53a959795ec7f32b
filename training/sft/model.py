"""The base model of a warm start, plain or in four bits, and the adapter put on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable
from training.sft.config import SftConfig


def load_base(folder: Path, config: SftConfig) -> Any:
    """The base model, on the GPU where there is one.

    Raises:
        BackendUnavailable: Four bits are asked for and bitsandbytes is missing.
    """
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
    options: dict[str, Any] = {"dtype": dtype, "attn_implementation": "sdpa"}
    if config.lora.four_bit:
        try:
            import bitsandbytes  # noqa: F401
        except ImportError as error:
            raise BackendUnavailable(
                "bitsandbytes is not installed",
                where="lora.four_bit",
                hint='pip install "cudaperf-agent[training]", or set lora.four_bit = false',
            ) from error
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
        options["device_map"] = {"": 0 if torch.cuda.is_available() else "cpu"}
    model = AutoModelForCausalLM.from_pretrained(folder, **options)
    model.config.use_cache = False
    return model


def lora_config(config: SftConfig) -> Any:
    """LoRA on all linear layers but the output's."""
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora.rank,
        lora_alpha=config.lora.alpha,
        lora_dropout=config.lora.dropout,
        target_modules="all-linear",
        bias="none",
        task_type="CAUSAL_LM",
    )
