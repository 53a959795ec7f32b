"""Engines follow the trained weights: adapters written anew, old ones gone, an environment of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.cuda.gpu import chosen_environment
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Message, ProposalRequest
from cudaperf_agent.tasks.model import Task
from training.grpo.config import make_config
from training.grpo.engines import ModelEngine, VllmEngine, one_device
from training.grpo.run import shares_gpu

TASK = Task("f", "function", "", "f.c")


class FakeAdapter:
    """What the engine asks of a peft model."""

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "adapter_config.json").write_text("{}")


def test_vllm_gets_each_step_under_a_new_name_and_old_adapters_go(tmp_path: Path) -> None:
    warm = tmp_path / "warm"
    warm.mkdir()
    (warm / "adapter_config.json").write_text(json.dumps({"r": 24}))
    config = make_config({"model": {"adapter": str(warm)}})
    engine = VllmEngine(config.model, config.rollout, tmp_path / "adapters")
    names = []
    for step in range(4):
        engine.follow(FakeAdapter(), step)
        names.append(engine.policy.name)
    assert len(set(names)) == 4
    assert names[-1].endswith("adapters/step-000003")
    assert sorted(p.name for p in (tmp_path / "adapters").iterdir()) == ["step-000002", "step-000003"]


async def test_the_trained_model_answers_with_its_newest_weights(tiny_policy: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    section = make_config({"rollout": {"engine": "transformers", "max_tokens": 6}}).rollout
    engine = ModelEngine("tiny", AutoTokenizer.from_pretrained(tiny_policy), section)
    model = AutoModelForCausalLM.from_pretrained(tiny_policy, dtype=torch.float32).eval()
    engine.follow(model, 0)
    request = ProposalRequest((Message("user", "hello"),), TASK, seed=4)
    (before,) = await engine.policy.propose(request)
    assert before.token_ids is not None
    assert before.logprobs is not None
    ids = torch.tensor([[*(before.prompt_token_ids or ()), *before.token_ids]])
    with torch.no_grad():
        logps = torch.log_softmax(model(input_ids=ids).logits[0], -1)
    at = len(before.prompt_token_ids or ())
    drawn = [float(logps[at + k - 1, token]) for k, token in enumerate(before.token_ids)]
    assert before.logprobs == pytest.approx(drawn, abs=1e-4)
    with torch.no_grad():
        model.model.norm.weight.mul_(-1.0)
    (after,) = await engine.policy.propose(request)
    assert after.token_ids != before.token_ids
    with pytest.raises(UsageError, match="the model takes 4096"):
        await engine.policy.propose(ProposalRequest((Message("user", "x y " * 4000),), TASK))
    await engine.policy.aclose()


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No GPU is named, and none has been chosen before."""
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDAPERF_GPU", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    chosen_environment.cache_clear()
    yield
    chosen_environment.cache_clear()


@pytest.mark.usefixtures("undecided")
def test_an_engine_does_not_take_the_launcher_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1234"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    before = dict(os.environ)
    with one_device():
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "6"
        assert gpu_environment()["CUDA_VISIBLE_DEVICES"] == "4"  # candidates stay where they are
        assert os.environ["VLLM_WORKER_MULTIPROCESSING_METHOD"] == "spawn"
        assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT"} & os.environ.keys()
    assert dict(os.environ) == before


@pytest.mark.usefixtures("undecided")
@pytest.mark.parametrize(
    ("environment", "shares"),
    [({}, True), ({"CUDA_VISIBLE_DEVICES": "0"}, True), ({"CUDA_VISIBLE_DEVICES": "1"}, True),
     ({"CUDA_VISIBLE_DEVICES": "1", "CUDAPERF_GPU": "0"}, False), ({"CUDAPERF_GPU": "1"}, False),
     ({"CUDA_VISIBLE_DEVICES": "1", "CUDAPERF_GPU": "GPU-5a0"}, True),
     ({"CUDA_VISIBLE_DEVICES": "GPU-5a01", "CUDAPERF_GPU": "GPU-5a0"}, True),
     ({"CUDA_VISIBLE_DEVICES": "GPU-7b1", "CUDAPERF_GPU": "GPU-5a0"}, False),
     ({"CUDA_VISIBLE_DEVICES": "11", "CUDAPERF_GPU": "1"}, False),
     ({"LOCAL_RANK": "1"}, False), ({"CUDA_VISIBLE_DEVICES": "1,0", "LOCAL_RANK": "1"}, False),
     ({"CUDA_VISIBLE_DEVICES": "1,0", "LOCAL_RANK": "1", "CUDAPERF_GPU": "0"}, True)],
)  # fmt: skip
def test_timing_waits_only_for_who_is_on_its_gpu(
    environment: dict[str, Any], shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert shares_gpu() is shares
