"""The one place where TRL's trainer and the graph meet. Written against TRL 1.16; another release must pass its tests.

TRL draws prompts, drives the optimiser and computes the loss. In between it asks
``_generate_and_score_completions`` for a batch; here that is rollouts through the graph, one row per turn, with our
advantages. What TRL's loss reads of that batch is what `_tensors` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from trl import GRPOConfig, GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import pad

from training.grpo.batch import TrainingRows, filled
from training.grpo.rows import Turn
from training.grpo.step_time import StepMeter

TESTED_WITH = "1.16"
"""Release of TRL whose loss and batches this module is written for."""

CollectRows = Callable[[int, Sequence[str]], "StepRows"]


class StepRows:
    """What the rollouts of one step give to the trainer.

    Args:
        training: Rows to learn from.
        metrics: Numbers for the log.
    """

    def __init__(self, training: TrainingRows, metrics: dict[str, float]) -> None:
        self.training = training
        self.metrics = metrics


class GraphTrainer(GRPOTrainer):  # type: ignore[misc, unused-ignore]
    """GRPO whose completions come from the graph.

    Args:
        collect: Gives the rows of a step: step number and names of its tasks, in; called on every process with the
            tasks that are its own.
        follow: Called before that with the peft model and the step, so that the engine answers with its weights.
        meter: Where the step's time goes.
        **trl: As for `GRPOTrainer`.
    """

    def __init__(
        self, *, collect: CollectRows, follow: Callable[[Any, int], None], meter: StepMeter, **trl: Any
    ) -> None:
        super().__init__(reward_funcs=_scored_in_the_graph, **trl)
        self._collect = collect
        self._follow = follow
        self._meter = meter
        # The loss corrects for the difference between trainer and engine if it believes in an engine of its own.
        self.use_vllm = True
        self.vllm_importance_sampling_correction = True

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        step = int(self.state.global_step)
        names = [str(x["prompt"]) for x in inputs[:: self.num_generations]]
        assert all(str(x["prompt"]) == names[i // self.num_generations] for i, x in enumerate(inputs)), "split group"
        # From here to the end of the step, the time is learning unless the rollouts say otherwise.
        self._meter.end("learning")
        model = self.accelerator.unwrap_model(self.model)
        model.eval()
        try:
            with disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
                self._follow(model, step)
                found = self._collect(step, names)
        finally:
            model.train()
        self._meter.begin("learning")
        self.record(found.metrics)
        training = filled(found.training, max(gather_object([len(found.training.rows)])))
        learnt = sum(len(r.prompt_ids) + len(r.ids) for r in training.rows if r.advantage)
        tokens = torch.tensor(learnt, device=self.accelerator.device)
        self.state.num_input_tokens_seen += int(self.accelerator.gather(tokens).sum())
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        return self._tensors(training)

    def record(self, metrics: dict[str, float]) -> None:
        """Add numbers to the step's log, averaged over processes."""
        gathered = gather_object([metrics])
        for name in sorted({name for one in gathered for name in one}):
            values = [one[name] for one in gathered if name in one]
            self._metrics["train"][name].append(sum(values) / len(values))

    def _tensors(self, training: TrainingRows) -> dict[str, torch.Tensor]:
        """The batch that TRL's loss reads; shapes (rows, prompt), (rows, completion) and (rows,)."""
        device = self.accelerator.device
        rows = training.rows
        fill = self._tokenizer.pad_token_id
        prompts = [torch.tensor(row.prompt_ids) for row in rows]
        completions = [torch.tensor(row.ids) for row in rows]
        prompt_ids = pad(prompts, padding_value=fill, padding_side="left").to(device)
        prompt_mask = pad([torch.ones_like(p) for p in prompts], padding_value=0, padding_side="left").to(device)
        completion_ids = pad(completions, padding_value=fill, padding_side="right").to(device)
        completion_mask = pad([torch.ones_like(c) for c in completions], padding_value=0, padding_side="right").to(
            device
        )
        sampled = pad([torch.tensor(row.logprobs) for row in rows], padding_value=0.0, padding_side="right").to(device)
        advantages = torch.tensor([row.advantage * training.scale for row in rows], dtype=torch.float32, device=device)
        batch = {
            "prompt_ids": prompt_ids,
            "prompt_mask": prompt_mask,
            "completion_ids": completion_ids,
            "completion_mask": completion_mask,
            "advantages": advantages,
            "sampling_per_token_logps": sampled,
            "num_items_in_batch": self.accelerator.gather(completion_mask.sum()).sum(),
        }
        batch["old_per_token_logps"] = self._logps(batch, rows)
        batch["importance_sampling_ratio"] = self._importance(batch, rows)
        return batch

    def _logps(self, batch: dict[str, torch.Tensor], rows: Sequence[Turn]) -> torch.Tensor:
        """The trainer's own log-probabilities of what the engine drew, (rows, completion)."""
        found = torch.zeros(batch["completion_ids"].shape, dtype=torch.float32, device=self.accelerator.device)
        # Rows of like length together, each batch cut to its longest row.
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].prompt_ids) + len(rows[i].ids))
        size = max(1, len(rows) // int(self.args.steps_per_generation))
        with torch.no_grad(), disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            for start in range(0, len(order), size):
                chosen = torch.tensor(order[start : start + size], device=self.accelerator.device)
                part = trimmed({name: value[chosen] for name, value in batch.items() if value.ndim})
                ids = torch.cat([part["prompt_ids"], part["completion_ids"]], dim=1)
                mask = torch.cat([part["prompt_mask"], part["completion_mask"]], dim=1)
                width = part["completion_ids"].size(1)
                logps, _, _ = self._get_per_token_logps_and_entropies(self.model, ids, mask, width)
                found[chosen, :width] = logps.float()
        return found

    def _importance(self, batch: dict[str, torch.Tensor], rows: Sequence[Turn]) -> torch.Tensor:
        """How much likelier each token is to the trainer than to the engine, cut from above; and the log of it."""
        mask = batch["completion_mask"].bool()
        difference = (batch["old_per_token_logps"] - batch["sampling_per_token_logps"]) * mask
        ratio = torch.exp(difference)
        if any(row.advantage for row in rows):
            sizes, ratios = difference[mask].abs(), ratio[mask]
            self.record(
                {
                    "sampling/sampling_logp_difference/mean": sizes.mean().item(),
                    "sampling/sampling_logp_difference/max": sizes.max().item(),
                    "sampling/importance_sampling_ratio/min": ratios.min().item(),
                    "sampling/importance_sampling_ratio/mean": ratios.mean().item(),
                    "sampling/importance_sampling_ratio/max": ratios.max().item(),
                    "sampling/truncated": (ratios > self.vllm_importance_sampling_clip_max).float().mean().item(),
                }
            )
        else:
            self.record({})
        return torch.clamp(ratio, max=self.vllm_importance_sampling_clip_max)

    def _compute_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        loss: torch.Tensor = super()._compute_loss(model, trimmed(inputs))
        return loss


def trimmed(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The batch without columns that are padding in every row: left of the prompts, right of the completions."""
    before = int((batch["prompt_mask"].sum(dim=0) == 0).sum())
    width = int((batch["completion_mask"].sum(dim=0) > 0).sum())
    full = batch["completion_mask"].size(1)
    found = {}
    for name, value in batch.items():
        if name in ("prompt_ids", "prompt_mask"):
            found[name] = value[:, before:]
        elif value.ndim == 2 and value.size(1) == full:
            found[name] = value[:, :width]
        else:
            found[name] = value
    return found


def trl_config(**options: Any) -> GRPOConfig:
    """TRL's configuration of a run whose generation and rewards are ours."""
    return GRPOConfig(
        beta=0.0,
        scale_rewards="none",
        vllm_importance_sampling_mode="token_truncate",
        mask_truncated_completions=False,  # a cut answer has no advantage already
        disable_dropout=True,
        remove_unused_columns=False,
        ddp_find_unused_parameters=False,
        **options,
    )


def _scored_in_the_graph(**_: Any) -> list[float]:
    raise AssertionError("rewards come from the graph")
