"""The adapter against the pinned TRL: what its loss sees of a row, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from training.grpo.batch import TrainingRows, training_rows
from training.grpo.rows import Turn
from training.grpo.step_time import StepMeter

torch = pytest.importorskip("torch", reason="the training extra is not installed")
trl = pytest.importorskip("trl", reason="the training extra is not installed")

CONSTANT = 16  # tokens by which dr_grpo divides


def row(prompt: tuple[int, ...], ids: tuple[int, ...], advantage: float, **more: Any) -> Turn:
    given = {"logprobs": (-6.0,) * len(ids), "status": "correct", "reward": 0.0, **more}
    return Turn("t", "r", 0, 0, prompt, ids, advantage=advantage, **given)


ROWS = (
    row((5, 9, 30, 7), (11, 12, 13), 1.5),
    row((5, 7), (14, 15, 16, 17, 18), -0.5),
    row((6, 6, 8, 7), (19,), -1.0),
    row((9, 7), (20, 21), 0.0),
)


@pytest.fixture
def trainer(tiny_policy: Path, tmp_path: Path) -> Any:
    """A trainer on a model without attention: what a token is followed by depends on that token alone."""
    from datasets import Dataset
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from training.grpo.trl_adapter import GraphTrainer, trl_config

    torch.manual_seed(1)
    # Fresh weights: an over-fitted model has likely tokens only, and no gradient to compare.
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(tiny_policy), dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
    arguments = trl_config(
        output_dir=str(tmp_path),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=1,
        num_generations=4,
        max_completion_length=CONSTANT,
        loss_type="dr_grpo",
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to=[],
        max_steps=1,
        vllm_importance_sampling_clip_max=1e9,
    )
    made = GraphTrainer(
        collect=lambda step, names: None,
        follow=lambda model, step: None,
        meter=StepMeter(),
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": ["t"]}),
        processing_class=AutoTokenizer.from_pretrained(tiny_policy, padding_side="left"),
    )
    made.current_gradient_accumulation_steps = 1
    return made


def gradient(trainer: Any, training: TrainingRows) -> Any:
    """The loss's gradient with respect to the MLP, flat."""
    trainer.model.zero_grad()
    trainer._compute_loss(trainer.model, trainer._tensors(training)).backward()
    return torch.cat([p.grad.flatten() for n, p in trainer.model.named_parameters() if "mlp" in n])


def rows_of(*rows: Turn) -> TrainingRows:
    return TrainingRows(rows, 1.0, len(rows), len(rows))


def test_it_is_the_release_that_the_adapter_is_written_for() -> None:
    from training.grpo.trl_adapter import TESTED_WITH

    assert trl.__version__.startswith(TESTED_WITH + "."), "run the tests below, then raise TESTED_WITH and the pin"


def test_prompt_and_feedback_bear_no_loss(trainer: Any) -> None:
    before = gradient(trainer, rows_of(*ROWS))
    size = before.norm()
    assert size > 1e-3
    # Other feedback, the last token of the prompt (which the first answer token follows) kept: the same gradient.
    other = [replace(r, prompt_ids=(40, 41, 42, *r.prompt_ids[-1:])) for r in ROWS]
    assert (gradient(trainer, rows_of(*other)) - before).norm() < 1e-5 * size
    # The same change in an answer: another gradient.
    changed = replace(ROWS[0], ids=(11, 42, 13))
    assert (gradient(trainer, rows_of(changed, *ROWS[1:])) - before).norm() > 0.1 * size


def test_the_gradient_is_that_of_the_formula(trainer: Any) -> None:
    found = gradient(trainer, rows_of(*ROWS))
    model = trainer.model
    model.zero_grad()
    loss = torch.zeros(())
    for r in ROWS:
        ids = torch.tensor([[*r.prompt_ids, *r.ids]])
        logps = torch.log_softmax(model(input_ids=ids).logits[0, len(r.prompt_ids) - 1 : -1], -1)
        drawn = logps[torch.arange(len(r.ids)), torch.tensor(r.ids)]
        importance = torch.exp(drawn.detach() - torch.tensor(r.logprobs))
        loss = loss - (r.advantage * importance * drawn).sum() / (len(ROWS) * CONSTANT)
    loss.backward()
    by_hand = torch.cat([p.grad.flatten() for n, p in model.named_parameters() if "mlp" in n])
    assert (found - by_hand).norm() < 1e-4 * by_hand.norm()


def test_importance_is_cut_from_above_and_logged(trainer: Any) -> None:
    trainer.vllm_importance_sampling_clip_max = 3.0
    unlikely = replace(ROWS[0], logprobs=(-60.0, -1.0, -1.0))
    batch = trainer._tensors(rows_of(unlikely, *ROWS[1:]))
    assert batch["importance_sampling_ratio"][0, 0] == 3.0
    logged = trainer._metrics["train"]
    assert logged["sampling/importance_sampling_ratio/max"][-1] > 3.0
    assert logged["sampling/truncated"][-1] > 0
    assert logged["sampling/sampling_logp_difference/max"][-1] > 20.0


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo"])
def test_rows_that_teach_nothing_are_left_out_without_changing_the_gradient(trainer: Any, loss: str) -> None:
    trainer.loss_type = loss
    idle = [replace(ROWS[3], trajectory=k) for k in range(4)]
    every = gradient(trainer, rows_of(*ROWS, *idle))
    kept = training_rows([*ROWS, *idle], planned=8, micro_batches=1)
    assert kept.pushing == len(kept.rows) == 3
    assert (gradient(trainer, kept) - every).norm() < 1e-5 * every.norm()


def test_every_micro_batch_has_its_rows(trainer: Any) -> None:
    kept = training_rows(ROWS, planned=8, micro_batches=4)
    assert (len(kept.rows), kept.pushing) == (4, 3)
    assert kept.rows[3].advantage == 0.0
    assert len(training_rows([ROWS[3]], planned=8, micro_batches=4).rows) == 4
    nothing = training_rows([], planned=8, micro_batches=4)
    assert gradient(trainer, nothing).abs().max() == 0


def test_columns_of_padding_are_cut_off(trainer: Any) -> None:
    from training.grpo.trl_adapter import trimmed

    batch = trainer._tensors(rows_of(*ROWS))
    part = trimmed({name: value[1:2] if value.ndim else value for name, value in batch.items()})
    assert part["prompt_ids"].tolist() == [[5, 7]]
    assert part["completion_ids"].shape == part["old_per_token_logps"].shape == (1, 5)
    part = trimmed({name: value[2:3] if value.ndim else value for name, value in batch.items()})
    assert part["completion_ids"].tolist() == [[19]]
    assert part["importance_sampling_ratio"].shape == (1, 1)
