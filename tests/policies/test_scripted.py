"""The scripted policy replays what it was given, for each trajectory and turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from saxpy_task import saxpy

from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Policy, ProposalRequest
from cudaperf_agent.policies.scripted import ScriptedAnswer, ScriptedPolicy

TASK = saxpy()


async def texts(policy: ScriptedPolicy, trajectory: int, turns: int) -> list[str | None]:
    found: list[str | None] = []
    for turn in range(turns):
        (proposal,) = await policy.propose(ProposalRequest((), TASK, trajectory=trajectory, turn=turn))
        found.append(None if proposal.declined else proposal.text)
    return found


async def test_each_trajectory_has_its_script_and_a_script_that_ends_declines() -> None:
    policy = ScriptedPolicy([["a0", "a1"], ["b0"]])
    assert isinstance(policy, Policy)
    assert await texts(policy, 0, 3) == ["a0", "a1", None]
    assert await texts(policy, 1, 2) == ["b0", None]
    assert await texts(policy, 2, 1) == ["a0"]
    (end,) = await policy.propose(ProposalRequest((), TASK, turn=7))
    assert "turn 8" in (end.declined or "")
    assert end.finish_reason == "declined"


async def test_asking_again_gives_the_same_answer() -> None:
    policy = ScriptedPolicy([["a0", "a1"]])
    assert await texts(policy, 0, 2) == await texts(policy, 0, 2)


async def test_several_completions_come_from_neighbouring_scripts() -> None:
    policy = ScriptedPolicy([["a"], ["b"], ["c"]])
    got = await policy.propose(ProposalRequest((), TASK, n=2, trajectory=1))
    assert [p.text for p in got] == ["b", "c"]


async def test_tokens_add_up_to_the_text() -> None:
    pieces: list[str] = []
    text = "x" * 150 + "\n"
    await ScriptedPolicy([[text]]).propose(ProposalRequest((), TASK, on_token=pieces.append))
    assert len(pieces) > 1
    assert "".join(pieces) == text


async def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    lines = [
        "first",
        {"text": "second", "trajectory": 0, "finish_reason": "length"},
        {"declined": "no", "trajectory": 1},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    policy = ScriptedPolicy.load(path)
    assert await texts(policy, 0, 2) == ["first", "second"]
    assert await texts(policy, 1, 2) == ["first", None]
    (cut,) = await policy.propose(ProposalRequest((), TASK, turn=1))
    assert cut.finish_reason == "length"


async def test_a_folder_of_answers(tmp_path: Path) -> None:
    (tmp_path / "1.md").write_text("prose")
    (tmp_path / "2.cu").write_text("__global__ void k() {}\n")
    (tmp_path / ".hidden").write_text("no")
    assert await texts(ScriptedPolicy.load(tmp_path), 0, 3) == ["prose", "```cuda\n__global__ void k() {}\n```\n", None]


async def test_a_folder_of_scripts(tmp_path: Path) -> None:
    for name, text in (("a/1.md", "a0"), ("a/2.md", "a1"), ("b/1.md", "b0")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    policy = ScriptedPolicy.load(tmp_path)
    assert await texts(policy, 0, 2) == ["a0", "a1"]
    assert await texts(policy, 1, 1) == ["b0"]


@pytest.mark.parametrize(
    "line", ["{", "3", "{}", '{"text": 3}', '{"text": "a", "turn": 1}', '{"text": "a", "trajectory": -1}']
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(f'"fine"\n{line}\n')
    with pytest.raises(UsageError) as caught:
        ScriptedPolicy.load(path)
    assert caught.value.where == f"{path}:2"


def test_nothing_to_replay_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        ScriptedPolicy.load(tmp_path / "absent.md")
    with pytest.raises(UsageError, match="no answers"):
        ScriptedPolicy.load(tmp_path)
    assert ScriptedAnswer("x").finish_reason == "stop"
