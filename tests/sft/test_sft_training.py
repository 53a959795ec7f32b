"""The warm start on a tiny model: real steps of the pinned TRL, loss on answers alone, resuming, four bits."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cudaperf_agent.errors import ConfigError, UsageError

torch = pytest.importorskip("torch", reason="the training extra is not installed")
pytest.importorskip("trl", reason="the training extra is not installed")

from training.sft.config import LoraSettings, OptimiserSettings, SftConfig, load_config  # noqa: E402
from training.sft.rows import Row, RowsConfig, write_rows  # noqa: E402
from training.sft.run import Trained, prepared, train  # noqa: E402
from training.sft.tiny import tiny_model  # noqa: E402
from training.sft.tokens import IGNORED, Encoded, encode, learning_order  # noqa: E402
from training.sft.trainer import Progress, RightPadded, rate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sft")
    made = [
        Row(
            "task",
            "test",
            "naive",
            "You translate.",
            f"Translate {'x' * (7 * k % 23)} {k}.",
            "```cuda\n" + f"int a{k};\n" * (k % 5 + 1) + "```",
        )
        for k in range(16)
    ]
    write_rows(folder / "rows.jsonl.gz", made)
    tiny_model(folder / "model", context=1024)
    return folder


def configured(place: Path, **more: Any) -> SftConfig:
    settings = OptimiserSettings(batch=2, epochs=1, learning_rate=1e-2)
    return SftConfig(
        model=str(place / "model"),
        context=512,
        rows_file=str(place / "rows.jsonl.gz"),
        precision="fp32",
        lora=LoraSettings(rank=4, alpha=8),
        optimiser=replace(settings, **more.pop("optimiser", {})),
        **more,
    )


def losses(out: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


@pytest.fixture(scope="module")
def whole(place: Path) -> Trained:
    return train(configured(place, save_steps=3), place / "whole", say=silent)


def test_a_run_ends_with_an_adapter_that_peft_loads(place: Path, whole: Trained) -> None:
    from peft import PeftModel
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    assert (whole.steps, whole.finished) == (8, True)
    weights = load_file(whole.adapter / "adapter_model.safetensors")
    assert {w.dtype for w in weights.values()} == {torch.bfloat16}
    assert any(w.abs().sum() > 0 for name, w in weights.items() if "lora_B" in name)
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(place / "model"), str(whole.adapter))
    assert model.peft_config["default"].r == 4
    card = (whole.adapter / "README.md").read_text()
    assert "8 steps" in card
    assert str(place) not in card + (whole.adapter / "adapter_config.json").read_text()


def test_it_learns(whole: Trained) -> None:
    found = losses(whole.adapter.parent)
    assert sorted(found) == list(range(1, 9))
    assert found[8] < found[1]


def test_a_resumed_run_goes_on_with_the_same_batches(place: Path, whole: Trained) -> None:
    """Stopped by SIGTERM after the third step; the rest must be what the whole run did."""
    out = place / "stopped"

    def kill(text: str) -> None:
        if text.startswith("step 3,"):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    try:
        stopped = train(configured(place, save_steps=3), out, say=kill)
        assert stopped.steps < 8
        assert not stopped.finished
        assert (stopped.adapter / "adapter_model.safetensors").exists()
        resumed = train(configured(place, save_steps=3), out, resume=True, say=silent)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert resumed.finished
    reference, found = losses(whole.adapter.parent), losses(out)
    for step in range(stopped.steps + 1, 9):
        assert found[step] == pytest.approx(reference[step], rel=1e-4)


def test_there_must_be_something_to_resume(place: Path) -> None:
    with pytest.raises(UsageError, match="no checkpoint"):
        train(configured(place), place / "nothing", resume=True, say=silent)


def test_only_the_answers_tokens_carry_loss(place: Path) -> None:
    """TRL's loss of a padded batch is the mean over the answers' tokens, each row taken alone, whatever the prompt's
    labels would be."""
    model, encoded, trainer = loss_parts(place)
    batch = RightPadded(0)([{"input_ids": e.ids, "labels": e.labels} for e in encoded])
    assert len({len(e.ids) for e in encoded}) > 1
    with torch.no_grad():
        found = float(trainer.compute_loss(trainer.model, {**batch}))
        total, count = 0.0, 0
        for one in encoded:
            logits = model(input_ids=torch.tensor([one.ids])).logits[0].float()
            logs = torch.log_softmax(logits, -1)
            for at in range(one.prompt, len(one.ids)):
                total -= float(logs[at - 1, one.ids[at]])
                count += 1
    assert found == pytest.approx(total / count, rel=1e-4)
    # Other ids where the prompt's labels come from: the labels, and so the loss, are the same.
    assert (
        Encoded([7] * encoded[0].prompt + encoded[0].ids[encoded[0].prompt :], encoded[0].prompt).labels
        == encoded[0].labels
    )
    # And an answer's label does count.
    other = batch["labels"].clone()
    other[0, encoded[0].prompt] = (other[0, encoded[0].prompt] + 1) % 100
    with torch.no_grad():
        assert float(trainer.compute_loss(trainer.model, {**batch, "labels": other})) != pytest.approx(found, rel=1e-6)


def loss_parts(place: Path) -> tuple[Any, list[Encoded], Any]:
    from datasets import Dataset

    from training.sft.model import load_base, lora_config
    from training.sft.trainer import WarmStartTrainer, trl_config

    config = configured(place)
    _, encoded, tokenizer, folder = prepared(config, place / "loss", silent)
    chosen = encoded[:4]
    data = Dataset.from_dict({"input_ids": [e.ids for e in chosen], "labels": [e.labels for e in chosen]})
    WarmStartTrainer.progress, WarmStartTrainer.settings = Progress(2, None), config.optimiser
    trainer = WarmStartTrainer(
        model=load_base(folder, config),
        args=trl_config(
            place / "loss", config.optimiser, bf16=False, save_steps=0, cpu=True, steps=2, report_to="none"
        ),
        train_dataset=data,
        data_collator=RightPadded(0),
        processing_class=tokenizer,
        peft_config=lora_config(config),
    )
    return trainer.model, chosen, trainer


def test_four_bits_take_a_step(place: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="the training extra is not installed")
    config = configured(place, optimiser={"seconds": 1e-6})
    ended = train(replace(config, lora=LoraSettings(rank=4, alpha=8, four_bit=True)), place / "four", say=silent)
    assert ended.steps == 1
    assert math.isfinite(ended.loss)


def test_prompts_are_encoded_as_a_policy_encodes_them(place: Path) -> None:
    from transformers import AutoTokenizer

    from cudaperf_agent.policies.base import Message, ProposalRequest
    from cudaperf_agent.policies.local import _encode
    from cudaperf_agent.tasks.model import Task

    tokenizer = AutoTokenizer.from_pretrained(place / "model")
    row = Row("task", "t", "s", "be brief", "do it", "```cuda\nx\n```")
    (one,) = encode([row], tokenizer, 512)
    request = ProposalRequest(
        (Message("system", "be brief"), Message("user", "do it")), Task("f", "function", "void f(void) {}", "f.c")
    )
    assert one.ids[: one.prompt] == _encode(tokenizer, request, 512)
    assert one.ids[-1] == tokenizer.eos_token_id
    assert one.labels[: one.prompt] == [IGNORED] * one.prompt
    assert tokenizer.decode(one.ids[one.prompt : -1]) == row.answer


def test_rows_that_are_too_long_are_left_out(place: Path) -> None:
    planned, encoded, _, _ = prepared(replace(configured(place), context=90), place / "short", silent)
    assert 0 < len(encoded) < 16
    assert planned.left_out == 16 - len(encoded)
    assert planned.longest <= 90
    with pytest.raises(UsageError, match="a batch takes"):
        prepared(replace(configured(place), context=5), place / "short", silent)


def test_every_row_is_learned_once_an_epoch_beside_rows_of_its_length() -> None:
    lengths = [10 + (37 * k) % 400 for k in range(96)]
    order = learning_order(lengths, 4, 2, 1)
    assert sorted(order[:96]) == sorted(order[96:]) == list(range(96))
    assert order[:96] != order[96:]
    assert order == learning_order(lengths, 4, 2, 1)
    spread = [
        max(lengths[i] for i in order[k : k + 4]) - min(lengths[i] for i in order[k : k + 4]) for k in range(0, 96, 4)
    ]
    assert sum(spread) / len(spread) < 40
    assert len(learning_order([1, 2, 3], 2, 1, 0)) == 4


def test_the_schedule_goes_by_what_comes_first() -> None:
    now = [0.0]
    progress = Progress(100, 50.0, clock=lambda: now[0])
    progress.start()
    assert progress.at(10) == pytest.approx(0.1)
    now[0] = 25.0
    assert progress.at(10) == pytest.approx(0.5)
    progress.before = 20.0
    assert progress.at(10) == pytest.approx(0.9)
    settings = OptimiserSettings(warmup=0.1, floor=0.05)
    assert rate(0.05, settings) == pytest.approx(0.5)
    assert rate(0.1, settings) == pytest.approx(1.0)
    assert rate(1.0, settings) == pytest.approx(0.05)


@pytest.mark.parametrize("path", sorted(Path("training/configs").glob("sft*.toml")), ids=lambda p: p.name)
def test_every_shipped_configuration_is_read(path: Path) -> None:
    assert load_config(path).optimiser.batch > 0


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        ("modle = 'x'", "there is no modle", "did you mean model?"),
        ("[lora]\nrnak = 3", "there is no lora.rnak", "did you mean lora.rank?"),
        ("[lora]\nrank = 'big'", 'lora.rank should be a valid integer, not "big"', "the default is 24"),
        ("precision = 'fp8'", "precision should be 'bf16' or 'fp32'", 'the default is "bf16"'),
        ("lora = 3", "lora is a table", "write [lora]"),
        ("x = [", "not valid TOML", "mend or delete that line"),
        ("[rows]\nfamilies = 2", "rows.families must be from 0 to 1", "share"),
    ],
)
def test_a_wrong_configuration_is_told_with_a_remedy(tmp_path: Path, text: str, told: str, remedy: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told) as error:
        load_config(path)
    assert error.value.where == str(path)
    assert remedy in (error.value.hint or "")


def test_a_dry_run_prints_config_and_plan_and_trains_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from cudaperf_agent.cli.main import main

    path = tmp_path / "sft.toml"
    path.write_text(
        f'model = "{place / "model"}"\nrows_file = "{place / "rows.jsonl.gz"}"\ncontext = 512\n[optimiser]\nbatch = 4\n'
    )
    assert main(["train", "sft", "--config", str(path), "--out", str(tmp_path / "o"), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["plan"]["rows"] == 16
    assert told["plan"]["steps"] == 8
    assert told["config"]["optimiser"]["batch"] == 4
    assert not (tmp_path / "o" / "adapter").exists()


@pytest.mark.parametrize("lacks", ["config.json", "tokenizer", "weights"])
@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["train", "dry run"])
def test_a_model_that_is_none_is_told_before_rows_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lacks: str, more: list[str]
) -> None:
    from cudaperf_agent.cli.main import main

    model, out, config = tmp_path / "model", tmp_path / "run", tmp_path / "sft.toml"
    if lacks != "config.json":
        model.mkdir()
        (model / "config.json").write_text("{}")
        (model / ("model.safetensors" if lacks == "tokenizer" else "tokenizer.json")).write_text("")
    config.write_text("workers = 1\n[rows]\nprograms = 1\n")
    assert main(["train", "sft", "--config", str(config), "--model", str(model), "--out", str(out), *more]) == 2
    told = capsys.readouterr().err
    assert f"{model} is no Hugging Face model folder (it has no {lacks})" in told
    assert "`smollm2`" in told
    assert "making rows" not in told
    assert not out.exists()


def test_without_a_checkpoint_nothing_is_made_to_resume(tmp_path: Path) -> None:
    config = SftConfig(model="tiny", rows=RowsConfig(programs=1), workers=1)
    with pytest.raises(UsageError, match="no checkpoint to resume"):
        train(config, tmp_path / "run", resume=True, say=silent)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
@pytest.mark.parametrize("word", ["16 rows", "step 2,"], ids=["before", "during"])
def test_a_signal_ends_the_command_with_what_was_reached(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, word: str,
    number: signal.Signals,
) -> None:  # fmt: skip
    """A real signal at that word: during training the adapter is kept, and the same folder can be gone on with."""
    from cudaperf_agent.cli import train as command
    from cudaperf_agent.cli.main import main

    def kill(text: str) -> None:
        if text.startswith(word):
            os.kill(os.getpid(), number)

    config, out = tmp_path / "sft.toml", tmp_path / "run"
    config.write_text(
        f'model = "{place / "model"}"\nrows_file = "{place / "rows.jsonl.gz"}"\ncontext = 512\nprecision = "fp32"\n'
        "save_steps = 100\n[lora]\nrank = 4\nalpha = 8\n[optimiser]\nbatch = 4\nepochs = 50\n"
    )
    arguments = ["train", "sft", "--config", str(config), "--out", str(out)]
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    monkeypatch.setattr(command, "say", kill)
    assert main([*arguments, "--json"]) == 130
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == handlers
    told = json.loads(capsys.readouterr().out)
    assert told["error"]["kind"] == "interrupted"
    if word == "16 rows":
        assert "no checkpoint yet" in told["error"]["hint"]
        assert "report" not in told
        return
    reached = told["report"]
    assert 2 <= reached["steps"] < 50
    assert reached["finished"] is False
    assert (Path(reached["adapter"]) / "adapter_model.safetensors").exists()
    hint = told["error"]["hint"]
    assert hint.endswith(f"{' '.join(arguments)} --resume")
