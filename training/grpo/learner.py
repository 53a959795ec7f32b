"""The learning side of a run: model, adapter and tokenizer, and TRL's trainer around them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from datasets.table import InMemoryTable
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, PrinterCallback

from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.policies.smollm2 import smollm2_folder
from training.grpo.callbacks import Deadline, KeptAdapter, StepLog
from training.grpo.config import GrpoConfig, ModelSection
from training.grpo.plan import Layout
from training.grpo.step_time import StepMeter
from training.grpo.tasks import Schedule
from training.grpo.trl_adapter import TESTED_WITH, GraphTrainer, StepRows, trl_config


def check_release() -> None:
    """The adapter reaches into TRL's trainer, which other releases change.

    Raises:
        BackendUnavailable: Another release of TRL is installed.
    """
    if not trl.__version__.startswith(TESTED_WITH + "."):
        raise BackendUnavailable(
            f"TRL {trl.__version__} is installed; training works with {TESTED_WITH}",
            hint=f'pip install "trl=={TESTED_WITH}.*"',
        )


def rank() -> int:
    """This process's number among them."""
    return int(os.environ.get("RANK", "0"))


def load_tokenizer(section: ModelSection) -> Any:
    """The base's tokenizer, padding on the left."""
    tokenizer = AutoTokenizer.from_pretrained(section.base or smollm2_folder(), padding_side="left")
    if tokenizer.chat_template is None:
        raise ConfigError("the model has no chat template", where="model.base", hint="take an instruction-tuned model")
    return tokenizer


def load_model(section: ModelSection, *, seed: int) -> Any:
    """The base with the adapter that is trained, its weights in float32.

    Raises:
        BackendUnavailable: bitsandbytes is missing, or the adapter is no adapter.
    """
    options: dict[str, Any] = {"dtype": getattr(torch, section.dtype)}
    if section.quantise == "nf4":
        if importlib.util.find_spec("bitsandbytes") is None:
            raise BackendUnavailable(
                "bitsandbytes is not installed", hint='pip install bitsandbytes, or quantise = "none"'
            )
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=getattr(torch, section.dtype),
        )
        local = int(os.environ.get("LOCAL_RANK", "0"))
        options["device_map"] = {"": local if torch.cuda.is_available() else "cpu"}
    base = AutoModelForCausalLM.from_pretrained(section.base or smollm2_folder(), **options)
    if section.adapter is not None:
        if not (section.adapter / "adapter_config.json").exists():
            raise BackendUnavailable(f"{section.adapter} is no peft adapter (it has no adapter_config.json)")
        return PeftModel.from_pretrained(base, str(section.adapter), is_trainable=True)
    torch.manual_seed(seed)
    lora = LoraConfig(
        r=section.lora_rank, lora_alpha=section.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(base, lora)


def learn(
    config: GrpoConfig,
    out: Path,
    *,
    model: Any,
    tokenizer: Any,
    schedule: Schedule,
    layout: Layout,
    collect: Callable[[int, Sequence[str], int, int], StepRows],
    follow: Callable[[Any, int], None],
    meter: StepMeter,
    checkpoint: Path | None,
    until: float | None,
    say: Callable[[str], None],
) -> int:
    """Train until the schedule or the time is at its end; the steps done over all slices."""
    optimise, run = config.optimise, config.run
    mixed = config.model.dtype == "bfloat16"
    arguments = trl_config(
        output_dir=str(out),
        max_steps=schedule.steps,
        num_train_epochs=1,
        per_device_train_batch_size=layout.samples,
        gradient_accumulation_steps=layout.micro_batches,
        num_generations=config.rollout.trajectories,
        max_completion_length=config.rollout.max_tokens,
        temperature=config.rollout.temperature,
        top_p=config.rollout.top_p,
        shuffle_dataset=False,
        loss_type=optimise.loss,
        learning_rate=optimise.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=optimise.warmup_steps,
        weight_decay=optimise.weight_decay,
        max_grad_norm=optimise.max_grad_norm,
        epsilon=optimise.epsilon,
        epsilon_high=optimise.epsilon_high,
        vllm_importance_sampling_clip_max=optimise.importance_cap,
        bf16=mixed,
        use_cpu=not torch.cuda.is_available(),
        gradient_checkpointing=config.model.gradient_checkpointing,
        save_strategy="steps",
        save_steps=run.save_every,
        save_total_limit=run.keep,
        logging_steps=1,
        report_to=_reporters(run.report_to, say),
        disable_tqdm=True,
        seed=run.seed,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    trainer = GraphTrainer(
        collect=lambda step, names: collect(step, names, layout.rows, layout.micro_batches),
        follow=follow,
        meter=meter,
        model=model,
        args=arguments,
        train_dataset=_dataset(schedule),
        processing_class=tokenizer,
    )
    for parameter in trainer.model.parameters():
        if parameter.requires_grad:
            # TRL trains a quantised model's adapter in bfloat16, in which small steps are lost.
            parameter.data = parameter.data.float()
    # Its dictionaries on stdout are the log's numbers over again.
    trainer.remove_callback(PrinterCallback)
    deadline = Deadline(until)
    trainer.add_callback(StepLog(out / "metrics.jsonl", meter, trainer.record, say))
    trainer.add_callback(deadline)
    trainer.add_callback(
        KeptAdapter(out / "adapter", lambda: trainer.accelerator.unwrap_model(trainer.model), run.moments)
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*model card.*")
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return int(trainer.state.global_step)


def _dataset(schedule: Schedule) -> Dataset:
    """The names in order. The fingerprint is given: datasets would pickle half of pyarrow to make one up."""
    names = list(schedule.names)
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
    return Dataset(InMemoryTable.from_pydict({"prompt": names}), fingerprint=digest[:16])


def _reporters(wanted: Sequence[str], say: Callable[[str], None]) -> list[str]:
    found = []
    for name in wanted:
        if importlib.util.find_spec(name) is None:
            say(f"{name} is not installed: metrics go to metrics.jsonl only")
        else:
            found.append(name)
    return found
