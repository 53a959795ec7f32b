"""The adapter in the box: whole, small, without anyone's paths, and it translates with the real weights."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudaperf_agent.policies.model_spec import shipped_adapter
from cudaperf_agent.policies.smollm2 import weights_here

ROOT = Path(__file__).parents[2]
MOST_BYTES = 16 * 2**20


def test_it_is_whole_small_and_names_nobody_s_folders() -> None:
    folder = shipped_adapter()
    assert folder is not None
    assert {p.name for p in folder.iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "README.md",
        "training.json",
    }
    weights = folder / "adapter_model.safetensors"
    assert weights.stat().st_size <= MOST_BYTES
    raw = weights.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    tensors = {name: facts for name, facts in header.items() if name != "__metadata__"}
    assert {facts["dtype"] for facts in tensors.values()} == {"BF16"}
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    # Thirty layers, seven linear maps each, two factors.
    assert len(tensors) == 30 * len(config["target_modules"]) * 2
    told = "".join((folder / name).read_text() for name in ("adapter_config.json", "README.md", "training.json"))
    assert not any(place in told for place in ("/tmp", "/home", "/root", "/work"))


def test_its_card_tells_the_figures_of_its_run() -> None:
    from training.sft.adapters import card

    folder = shipped_adapter()
    assert folder is not None
    facts = json.loads((folder / "training.json").read_text())
    assert (folder / "README.md").read_text() == card(facts)
    for row in facts["evaluation"]["splits"].values():
        assert f"({row['greedy']})" in card(facts)
    # It ships because no checkpoint of reinforcement learning is right more often.
    tried = facts["validation"]["pass@1"]
    assert max(tried, key=tried.__getitem__) == "warm"
    assert (ROOT / "docs" / f"grpo-{facts['validation']['run']}-reward.svg").exists()


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_with_the_real_weights_it_translates_saxpy(tmp_path: Path) -> None:
    if not weights_here() or any(importlib.util.find_spec(n) is None for n in ("torch", "transformers", "peft")):
        pytest.skip("the local extra is not installed")
    # On cores that others use too, two threads that wait for each other are many times slower than one.
    alone = {"OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **alone, "CUDAPERF_LOCAL__TEMPERATURE": "0", "CUDAPERF_LOCAL__DEVICE": "cpu"}
    del environment["CUDAPERF_LOCAL__ADAPTER"]
    command = [sys.executable, "-m", "cudaperf_agent.cli.main"]
    options = ["--policy", "local", "--turns", "1", "--out", str(tmp_path), "--json"]
    done = subprocess.run(
        [*command, "translate", "examples/saxpy.c", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"local:smollm2-135m-instruct+{shipped_adapter()}" in done.stderr
    # The libraries' bars and remarks are nobody's business.
    assert not [word for word in ("Loading weights", "it/s", "Warning", "deprecated") if word in done.stderr], (
        done.stderr
    )
    assert "<<<" in (tmp_path / "saxpy.cu").read_text()
