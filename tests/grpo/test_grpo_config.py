"""Configurations of GRPO runs: every shipped one parses, presets are the method's, and mistakes are told at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.checked import run_checked
from training.config_file import CONFIGS
from training.grpo.config import load_config, make_config
from training.grpo.plan import adapter_rank, estimate_memory, layout_of, step_plan
from training.grpo.tasks import make_schedule, random_task, training_tasks
from training.splits import split_of

SHIPPED = sorted(CONFIGS.glob("grpo*.toml"))
SMOLLM2 = {
    "hidden_size": 576, "num_hidden_layers": 30, "intermediate_size": 1536, "vocab_size": 49152,
    "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_every_shipped_configuration_parses_and_has_a_plan(path: Path) -> None:
    config = load_config(path)
    layout = layout_of(config, 1)
    tasks = training_tasks(config.run)
    # Random programs are of no family; `draw_written` leaves out what comes close to an evaluation set.
    of_families = [name for name in tasks if not name.startswith("program/")]
    assert len(of_families) == len(tasks) - config.run.programs
    assert all(split_of(*_member(name)) == "train" for name in of_families)
    schedule = make_schedule(list(tasks), config.run, config.rollout.tasks_per_step)
    assert len(schedule.of_step(schedule.steps - 1)) == config.rollout.tasks_per_step
    assert layout.samples * layout.micro_batches == layout.trajectories
    assert layout.samples * config.rollout.turns <= config.optimise.rows
    assert estimate_memory(config, SMOLLM2).total > 0


def _member(name: str) -> tuple[str, int]:
    family, _, member = name.partition("/")
    return family, int(member)


def test_the_conditions_differ_in_the_reward_only() -> None:
    names = ("verifiable", "structural", "both", "permuted")
    found = [load_config(CONFIGS / f"grpo_{name}.toml").model_dump() for name in names]
    rewards = [config.pop("reward") for config in found]
    assert all(config == found[0] for config in found)
    assert [(r["verifiable"], r["structural"]) for r in rewards] == [
        (True, "none"), (False, "ranker"), (True, "ranker"), (True, "permuted"),
    ]  # fmt: skip


def test_presets_are_the_methods() -> None:
    paper, robust = make_config({"preset": "paper"}), make_config({})
    assert (paper.credit.credit, paper.credit.baseline, paper.optimise.loss) == ("immediate", "group_std", "grpo")
    assert (paper.model.quantise, paper.model.lora_rank, paper.model.lora_alpha) == ("nf4", 32, 64)
    assert (paper.reward.preset, robust.reward.preset) == ("paper", "robust")
    assert (robust.credit.credit, robust.credit.baseline, robust.optimise.loss) == ("gain", "leave_one_out", "dr_grpo")
    assert robust.optimise.mask_truncated
    assert not paper.optimise.mask_truncated
    for config in (paper, robust):
        assert (config.rollout.trajectories, config.rollout.temperature, config.rollout.top_p) == (16, 1.0, 1.0)
        assert (config.run.epochs, config.rollout.turns) == (60, 5)


def test_the_file_goes_before_its_preset_and_a_flag_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('preset = "paper"\n[optimise]\nloss = "dr_grpo"\n[run]\nsteps = 7\n[model]\nadapter = "warm"\n')
    config = load_config(file, {"run.steps": 3})
    assert (config.optimise.loss, config.optimise.epsilon_high, config.run.steps) == ("dr_grpo", 0.2, 3)
    assert config.model.adapter == tmp_path / "warm"


@pytest.mark.parametrize(
    ("data", "named", "remedy"),
    [
        ({"run": {"stepz": 3}}, "^there is no run.stepz$", "did you mean run.steps?"),
        ({"rn": {"steps": 3}}, "^there is no rn$", "did you mean run?"),
        ({"model": 3, "preset": "paper"}, "^model is a table$", "write [model]"),
        ({"run": {"steps": 1.5}}, "^run.steps should be a valid integer, not 1.5$", "by default it is unset"),
        ({"run": {"files": 3}}, "^run.files should be a valid list, not 3$", "the default is []"),
        ({"model": {"adapter": 3}}, "^model.adapter should be a valid path, not 3$", "by default it is unset"),
        ({"run": {"report_to": ["z"]}}, "^run.report_to.0 should be 'tensorboard' or", 'default is ["tensorboard"]'),
        ({"preset": "paper", "optimise": {"loss": 3}}, "^optimise.loss should be", 'the default is "grpo"'),
        (
            {"rollout": {"trajectories": 1}},
            "^rollout.trajectories should be greater than or equal to 2, not 1$",
            "leave it out: the default is 16",
        ),
        ({"credit": {"credit": "all"}}, '^credit.credit should be .*, not "all"$', 'the default is "gain"'),
        ({"rollout": {"grouping": "same_history"}, "credit": {"credit": "discounted"}}, "^grouping same_h", "change"),
        ({"reward": {"verifiable": False, "structural": "none"}}, "^without .*nothing to learn from$", "change"),
    ],
)
def test_mistakes_are_told_with_their_key_and_a_remedy(data: dict[str, Any], named: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as told:
        make_config(data)
    assert re.search(named, told.value.message)
    assert remedy in (told.value.hint or "")


def test_a_flag_is_not_laid_into_what_is_no_table(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("run = 3\n")
    with pytest.raises(ConfigError, match="run is a table"):
        load_config(file, {"run.steps": 3})
    file.write_text('preset = "paper"\n')
    with pytest.raises(ConfigError, match=r"there is no preset\.loss"):
        load_config(file, {"preset.loss": 3})


def test_a_missing_or_broken_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as told:
        load_config(tmp_path / "none.toml")
    assert "grpo_robust.toml" in (told.value.hint or "")
    broken = tmp_path / "broken.toml"
    broken.write_text("[run\n")
    with pytest.raises(ConfigError, match="not valid TOML") as told:
        load_config(broken)
    assert (told.value.where, told.value.hint) == (f"{broken}:1", "mend or delete that line")


@pytest.mark.parametrize(
    ("run", "what"),
    [
        ({"families": ["activation"]}, "held out"),
        ({"families": ["nonsense"]}, "no family"),
        ({"families": ["axpy_shift"], "members": [7]}, "not one to learn from"),
        ({"families": ["axpy_shift"], "members": [-1]}, "not one to learn from"),
    ],
)
def test_held_out_tasks_are_refused(run: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        training_tasks(make_config({"run": run}).run)


@pytest.mark.parametrize("number", [31, 186, 387, 459])
async def test_a_random_program_runs_on_its_own_cases(number: int) -> None:
    # Of the first 480 the ones that did not: their entry is called `advance`, as a function of glibc's is.
    task = random_task(number)
    assert task.name == "advance"
    for hidden in (False, True):
        run = await run_checked(task, make_cases(task, hidden=hidden))
        assert run.finding is None, run.finding


def test_the_order_is_fixed_by_the_seed_and_visits_every_task() -> None:
    names = [f"t{i}" for i in range(10)]
    run = make_config({"run": {"steps": 10, "seed": 3}}).run
    schedule = make_schedule(names, run, 4)
    assert schedule == make_schedule(names, run, 4)
    assert schedule != make_schedule(names, make_config({"run": {"steps": 10, "seed": 4}}).run, 4)
    # A longer run begins with the same steps.
    longer = make_schedule(names, make_config({"run": {"steps": 20, "seed": 3}}).run, 4)
    assert longer.names[:40] == schedule.names
    for step in range(10):
        assert len(set(schedule.of_step(step))) == 4
    for start in range(0, 40, 10):
        assert sorted(schedule.names[start : start + 10]) == names
    with pytest.raises(ConfigError, match="a step takes 4 tasks"):
        make_schedule(names[:3], run, 4)


def test_epochs_make_the_steps_where_none_are_given() -> None:
    run = make_config({"run": {"epochs": 3}}).run
    assert make_schedule([f"t{i}" for i in range(8)], run, 2).steps == 12


def test_a_step_is_spread_over_devices_in_whole_groups() -> None:
    config = make_config({"rollout": {"tasks_per_step": 8, "turns": 2}, "optimise": {"rows": 16}})
    layout = layout_of(config, 2)
    assert (layout.trajectories, layout.rows, layout.samples, layout.micro_batches) == (64, 128, 8, 8)
    assert step_plan(config, layout, 2, 100, 5)["candidates_per_step"] == 256
    with pytest.raises(ConfigError, match="cannot be spread over 3"):
        layout_of(config, 3)


def test_memory_is_of_the_right_size() -> None:
    config = make_config({"model": {"lora_rank": 64, "gradient_checkpointing": False}})
    found = estimate_memory(config, SMOLLM2, 139 << 30)
    assert found.weights == pytest.approx(135e6 * 2 / 2**30, rel=0.05)
    # 19.5 million parameters of rank 64 (an adapter file of 78 MB in float32), 16 bytes each in training.
    assert found.adapter == pytest.approx(19.5e6 * 16 / 2**30, rel=0.05)
    assert found.engine == pytest.approx(0.3 * 139)
    lean = estimate_memory(make_config({"model": {"quantise": "nf4"}}), SMOLLM2)
    assert lean.weights < found.weights
    assert lean.activations < found.activations
    assert lean.engine is None


def test_the_rank_is_the_warm_started_adapters(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"r": 16}')
    assert adapter_rank(make_config({"model": {"adapter": str(tmp_path)}}).model) == 16
    assert adapter_rank(make_config({}).model) == 32
    with pytest.raises(ConfigError, match="no peft adapter"):
        adapter_rank(make_config({"model": {"adapter": str(tmp_path / "none")}}).model)


def test_random_programs_are_always_the_same_and_no_two_are_alike() -> None:
    tasks = training_tasks(make_config({"run": {"programs": 4}}).run)
    assert list(tasks) == [f"program/{n}" for n in range(4)]
    again = training_tasks(make_config({"run": {"programs": 4}}).run)
    assert [again[name].digest for name in again] == [tasks[name].digest for name in tasks]
    assert len({task.digest for task in tasks.values()}) == 4
    beside = training_tasks(make_config({"run": {"programs": 2, "families": ["axpy_shift"], "members": [0]}}).run)
    assert list(beside) == ["axpy_shift/0", "program/0", "program/1"]
