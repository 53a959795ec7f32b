"""A tiny model over-fitted to four answers, made once for all tests of this folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# A tiny model is faster without threads, and tests share the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of model and tokenizer, trained on the compact prompt for saxpy."""
    for library in ("torch", "transformers", "peft", "trl", "datasets"):
        pytest.importorskip(library, reason="the training extra is not installed")
    import torch
    from tiny_policy import make_tiny_policy

    from cudaperf_agent.policies.prompts import PromptConfig, build_messages
    from cudaperf_agent.tasks.parse import load_task

    torch.set_num_threads(1)
    task = load_task(Path(__file__).parents[1] / "cases" / "c" / "saxpy.c")
    messages = [{"role": m.role, "content": m.content} for m in build_messages(task, config=PromptConfig.compact())]
    folder = tmp_path_factory.mktemp("tiny-policy")
    assert make_tiny_policy(folder, messages) < 0.13, (
        "the four answers are not learnt: ln 4 over their 14 tokens is 0.1"
    )
    return folder
