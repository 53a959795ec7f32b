"""What a GRPO run is made of: typed sections, two presets, and the TOML file that says how a run differs from one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cudaperf_agent.errors import ConfigError
from training.beside_engine import CAPTURE_SIZES, SPARED_PROCESSORS
from training.config_file import no_such_key, not_a_table, read_toml, wrong_value
from training.grpo.credit import Baseline, Credit, CreditRule


class Section(BaseModel):
    """A table of the file: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ModelSection(Section):
    """What is trained."""

    base: str | None = None
    """Hugging Face folder or name; unset is SmolLM2-135M-Instruct."""
    adapter: Path | None = None
    """LoRA folder to begin with (the warm start); unset begins with a fresh one."""
    lora_rank: int = Field(default=32, ge=1, le=256)
    """Rank of a fresh adapter, on all linear layers."""
    lora_alpha: int = Field(default=64, ge=1)
    """Scale of a fresh adapter times its rank."""
    quantise: Literal["none", "nf4"] = "none"
    """`nf4`: the base in 4 bits with double quantisation (QLoRA)."""
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    """Of the base's weights; the adapter is trained in float32."""
    gradient_checkpointing: bool = True
    """Compute activations again in the backward pass: less memory, a third more time."""


class RolloutSection(Section):
    """How trajectories are drawn."""

    engine: Literal["vllm", "transformers"] = "vllm"
    """Who generates: vLLM beside the trainer, or the trained model itself (slow; for CPUs and tests)."""
    tasks_per_step: int = Field(default=8, ge=1)
    """Tasks of one optimiser step, over all processes."""
    trajectories: int = Field(default=16, ge=2)
    """Trajectories per task: the group."""
    turns: int = Field(default=5, ge=1, le=5)
    """Turns of a trajectory; the horizon is fixed, nothing stops early."""
    grouping: Literal["same_turn", "same_history"] = "same_turn"
    """What is compared: turns of independent trajectories, or samples that branch from one shared history."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    """Of sampling."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus; below 1 the policy that is trained is not the one that is sampled."""
    max_tokens: int = Field(default=1400, ge=1)
    """Tokens of one answer at most; also the constant by which `dr_grpo` divides."""
    prompt: Literal["auto", "compact", "full"] = "auto"
    """Form of the prompt; `auto` is compact for small models."""
    gpu_memory: float = Field(default=0.3, gt=0, lt=1)
    """Share of the GPU's memory that vLLM takes."""
    max_model_len: int | None = Field(default=5120, ge=64)
    """Longest sequence of the engine."""
    capture_sizes: tuple[int, ...] = CAPTURE_SIZES
    """Batch sizes for which vLLM records CUDA graphs; few start sooner."""
    batch: int = Field(default=8, ge=1)
    """Answers that the transformers engine draws together."""


class VerifySection(Section):
    """How candidates are judged."""

    backend: Literal["auto", "emulator"] = "auto"
    """`auto` takes the GPU where there is one; the emulator takes processors only."""
    timing: bool = True
    """Time correct candidates on the GPU; without, speed is not rewarded, only needless work charged for."""
    emulate: bool = True
    """On the GPU, look for memory errors and races on the emulator too: more processor time, fewer false passes."""
    samples: int = Field(default=24, ge=5)
    """Timed calls of a candidate."""
    contents: int = Field(default=24, ge=1)
    """Input sets that the timed calls go through; a few make a task's first timing much cheaper."""
    test_seconds: float = Field(default=30.0, gt=0)
    """Limit of one run of all cases of a candidate on the emulator. Endless loops, of which a policy writes many alike,
    are waited for so long."""
    spared_processors: int = Field(default=SPARED_PROCESSORS, ge=0)
    """Not used by compilers and tests beside vLLM: its two processes and the trainer must not wait for them."""
    seed: int = Field(default=0, ge=0)
    """Of the test inputs."""


class RewardSection(Section):
    """What a candidate is worth."""

    preset: Literal["paper", "robust"] = "robust"
    """Numbers of the verifiable reward; see docs/features.md."""
    verifiable: bool = True
    """Whether compiling, correctness and speed count; without, only what holds no code keeps its −3."""
    structural: Literal["none", "ranker", "permuted"] = "ranker"
    """R_str: left out, the ranker's, or (control) the ranker's, exchanged at random between the sources of a group."""
    ranker: Path | None = None
    """Folder of the ranker's artefact; unset takes the shipped one."""
    structural_scale: float | None = Field(default=None, ge=0)
    """Weight of the ranker's score; unset is the preset's."""
    structural_gate: Literal["always", "compiled", "correct"] | None = None
    """When R_str is added; unset is the preset's."""


class CreditSection(Section):
    """How rewards become advantages; see `credit.CreditRule`."""

    credit: Credit = "gain"
    """`immediate`, `gain`, `discounted` or `best_of_trajectory`."""
    gamma: float = Field(default=0.4, ge=0, le=1)
    """Discount of later turns for `discounted`."""
    baseline: Baseline = "leave_one_out"
    """`group_std` or `leave_one_out`."""
    least_spread: float = Field(default=0.1, ge=0)
    """A group whose credits lie closer together is skipped."""

    @property
    def rule(self) -> CreditRule:
        """For `training.grpo.credit`."""
        return CreditRule(self.credit, self.gamma, self.baseline, self.least_spread)


class OptimiseSection(Section):
    """How the adapter learns."""

    loss: Literal["grpo", "dr_grpo"] = "dr_grpo"
    """`grpo` divides by each answer's length, `dr_grpo` by a constant."""
    learning_rate: float = Field(default=1e-5, gt=0)
    """After the warm-up it is constant, so that a resumed run goes on as it would have."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps over which the rate rises from 0."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's."""
    max_grad_norm: float = Field(default=0.05, gt=0)
    """Gradient clip. Kevin takes 0.05 against collapse."""
    epsilon: float = Field(default=0.2, gt=0)
    """Lower clip of the policy ratio."""
    epsilon_high: float = Field(default=0.28, gt=0)
    """Upper clip of the policy ratio."""
    mask_truncated: bool = True
    """Answers cut at `max_tokens` bear no loss."""
    importance_cap: float = Field(default=3.0, gt=0)
    """Each token's correction for the difference between trainer and engine is cut here (`token_truncate`)."""
    rows: int = Field(default=16, ge=1)
    """Training rows of one forward pass on one device; the rest is gradient accumulation."""


class RunSection(Section):
    """How long, on what, and what is kept."""

    steps: int | None = Field(default=None, ge=1)
    """Optimiser steps; unset goes by `epochs`."""
    epochs: int = Field(default=60, ge=1)
    """Passes over the tasks, where `steps` is unset."""
    seconds: float | None = Field(default=None, gt=0)
    """Wall time, start-up included, by which the run or slice must end: a step that would end later does not begin, a
    checkpoint is written, and the run can be resumed."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Of order, sampling and a fresh adapter."""
    families: tuple[str, ...] = ()
    """Program families to learn from; empty takes every family of the training split."""
    members: tuple[int, ...] = ()
    """Members of each family; empty takes all of the training split."""
    programs: int = Field(default=0, ge=0)
    """Random C programs of the warm start's kinds, which it has not seen, to learn from; with `families` set beside
    those, else alone."""
    files: tuple[Path, ...] = ()
    """C files to learn from instead of generated ones."""
    save_every: int = Field(default=5, ge=1)
    """Steps between checkpoints; the last step is saved too."""
    keep: int = Field(default=2, ge=1)
    """Checkpoints kept."""
    moments: Literal["float32", "bfloat16"] = "float32"
    """How the optimiser's moments are stored in a checkpoint; bfloat16 halves it and resumes nearly the same."""
    report_to: tuple[Literal["tensorboard", "trackio"], ...] = ("tensorboard",)
    """Where metrics go beside `metrics.jsonl`; what is not installed is left out with a note."""


class GrpoConfig(Section):
    """One GRPO run."""

    preset: Literal["paper", "robust"] = "robust"
    """What the file differs from: the paper as far as known, or its defects repaired."""
    model: ModelSection = Field(default_factory=ModelSection)
    rollout: RolloutSection = Field(default_factory=RolloutSection)
    verify: VerifySection = Field(default_factory=VerifySection)
    reward: RewardSection = Field(default_factory=RewardSection)
    credit: CreditSection = Field(default_factory=CreditSection)
    optimise: OptimiseSection = Field(default_factory=OptimiseSection)
    run: RunSection = Field(default_factory=RunSection)

    @model_validator(mode="after")
    def _consistent(self) -> GrpoConfig:
        if self.rollout.grouping == "same_history" and self.credit.credit not in ("immediate", "gain"):
            raise ValueError(
                "grouping same_history takes credit immediate or gain: a sample has no later turns of its own"
            )
        if not self.reward.verifiable and self.reward.structural == "none":
            raise ValueError("without the verifiable and the structural reward there is nothing to learn from")
        return self


PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "robust": {},
    "paper": {
        "model": {"quantise": "nf4", "lora_rank": 32, "lora_alpha": 64},
        "reward": {"preset": "paper"},
        "credit": {"credit": "immediate", "baseline": "group_std"},
        "optimise": {"loss": "grpo", "max_grad_norm": 1.0, "epsilon_high": 0.2, "mask_truncated": False},
    },
}
"""What a preset changes of the fields' own defaults. 16 candidates, no reference model and 60 epochs are both's."""


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> GrpoConfig:
    """The configuration of a file, checked before anything costly begins.

    Args:
        path: TOML; relative paths in it are taken from the file's folder.
        overrides: Values by dotted key (``run.steps``) that go before the file's.

    Raises:
        ConfigError: It cannot be read, has an unknown key or a value that is not allowed.
    """
    data = read_toml(path, "grpo")
    _check_tables(data, str(path))
    _resolve_paths(data, path.parent)
    for key, value in (overrides or {}).items():
        section, _, name = key.partition(".")
        if section in GrpoConfig.model_fields and not isinstance(_default(section), Section):
            raise no_such_key(key, (), str(path))
        data.setdefault(section, {})[name] = value
    return make_config(data, where=str(path))


def make_config(data: Mapping[str, Any], *, where: str = "configuration") -> GrpoConfig:
    """The configuration of nested values, on top of their preset.

    Raises:
        ConfigError: An unknown key, or a value that is not allowed.
    """
    _check_tables(data, where)
    merged: dict[str, Any] = {k: dict(v) if isinstance(v, Mapping) else v for k, v in data.items()}
    preset = PRESETS.get(str(data.get("preset", "robust")), {})
    for section, values in preset.items():
        merged[section] = {**values, **merged.get(section, {})}
    try:
        return GrpoConfig.model_validate(merged)
    except ValidationError as error:
        raise _told(error, preset, where) from error


def _check_tables(data: Mapping[str, Any], where: str) -> None:
    """Refuse a plain value in a table's place, and a table that does not exist, before anything looks into them."""
    for name, value in data.items():
        if name not in GrpoConfig.model_fields:
            raise no_such_key(name, GrpoConfig.model_fields, where)
        if isinstance(_default(name), Section) and not isinstance(value, Mapping):
            raise not_a_table(name, where)


def _default(section: str) -> Any:
    return GrpoConfig.model_fields[section].get_default(call_default_factory=True)


def _told(error: ValidationError, preset: Mapping[str, Mapping[str, Any]], where: str) -> ConfigError:
    """The first of pydantic's complaints, as the other configurations word it."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    key, message = ".".join(path), str(first["msg"])
    if not path:
        # A check of several keys against each other.
        return ConfigError(message.removeprefix("Value error, "), where=where, hint="change one of them")
    default = _default(path[0])
    if first["type"] == "extra_forbidden":
        return no_such_key(key, type(default).model_fields, where)
    if len(path) > 1:
        default = preset.get(path[0], {}).get(path[1], getattr(default, path[1]))
    wanted = re.sub(r"^Input (should be|is not) |, (unable|got) .*| for <class.*", "", message).replace("tuple", "list")
    return wrong_value(key, wanted, first["input"], default, where)


def _resolve_paths(data: dict[str, Any], folder: Path) -> None:
    for section, name in (("model", "adapter"), ("reward", "ranker")):
        value = data.get(section, {}).get(name) if isinstance(data.get(section), dict) else None
        if isinstance(value, str):
            data[section][name] = (folder / Path(value).expanduser()).as_posix()
    run = data.get("run")
    if isinstance(run, dict) and isinstance(run.get("files"), list):
        run["files"] = [(folder / Path(str(f)).expanduser()).as_posix() for f in run["files"]]
