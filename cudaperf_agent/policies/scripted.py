"""The scripted policy: replays answers from a file, a folder or a list, for tests, demos and replays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import UsageError
from cudaperf_agent.policies.base import Proposal, ProposalRequest

_PIECE = 64
_LINE_KEYS = frozenset({"text", "declined", "finish_reason", "trajectory"})


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """One answer of a script; with `declined`, the policy gives up at that turn."""

    text: str
    declined: str | None = None
    finish_reason: str = "stop"


class ScriptedPolicy:
    """Gives the answer of the request's trajectory and turn, whatever was asked.

    It keeps no state, so that a resumed run gets the very answers that the interrupted one would have got. A
    trajectory beyond the last script starts over at the first script; a turn beyond the last answer declines.
    """

    def __init__(self, scripts: Sequence[Sequence[ScriptedAnswer | str]], *, name: str = "scripted") -> None:
        """Args: scripts: one list of answers per trajectory, at least one list."""
        if not scripts:
            raise UsageError("the scripted policy has no script", hint="give it at least one answer")
        self._scripts = [[a if isinstance(a, ScriptedAnswer) else ScriptedAnswer(a) for a in s] for s in scripts]
        self._name = name

    @classmethod
    def load(cls, path: Path) -> ScriptedPolicy:
        """Read the answers from a file or a folder.

        - A ``.jsonl`` file: a line is a JSON string, or an object with ``text`` or ``declined``, and optionally
          ``finish_reason`` and ``trajectory`` (0-based; lines without it go to every trajectory).
        - A folder: its files in the order of their names, one answer each; ``.cu`` files are put into a code block.
          Folders inside it are one script per trajectory instead.
        - Any other file: one answer.

        Raises:
            UsageError: It is not there, is empty, or a line is malformed; names ``file:line``.
        """
        if path.is_dir():
            folders = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
            scripts = [_folder_answers(folder) for folder in folders or [path]]
        elif path.suffix in (".jsonl", ".ndjson"):
            scripts = _json_lines(path)
        else:
            scripts = [[_file_answer(path)]]
        if not any(scripts):
            raise UsageError("the script holds no answers", where=str(path), hint="add files or lines with answers")
        # The name says all that `--policy` needs, so that a run can be resumed from what the store knows.
        return cls(scripts, name=f"scripted:{path.resolve()}")

    @property
    def name(self) -> str:
        """Short name for reports and the store."""
        return self._name

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """The answers of this turn of this trajectory and of the `n` - 1 scripts after it; or one that declines."""
        proposals = []
        for offset in range(request.n):
            script = self._scripts[(request.trajectory + offset) % len(self._scripts)]
            if request.turn >= len(script):
                break
            proposals.append(self._proposal(script[request.turn], request))
        if not proposals:
            reason = f"the script has no answer for turn {request.turn + 1}"
            return [Proposal("", declined=reason, finish_reason="declined", model=self._name)]
        return proposals

    def _proposal(self, answer: ScriptedAnswer, request: ProposalRequest) -> Proposal:
        if answer.declined is not None:
            return Proposal("", declined=answer.declined, finish_reason="declined", model=self._name)
        if request.on_token:
            for start in range(0, len(answer.text), _PIECE):
                request.on_token(answer.text[start : start + _PIECE])
        return Proposal(answer.text, finish_reason=answer.finish_reason, model=self._name)

    async def aclose(self) -> None:
        """Nothing to release."""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the script cannot be read: {error.strerror}",
            where=str(path),
            hint="name a folder of answers, a .jsonl file or one answer: --policy scripted:PATH",
        ) from None


def _file_answer(path: Path) -> ScriptedAnswer:
    text = _read(path)
    return ScriptedAnswer(f"```cuda\n{text.rstrip()}\n```\n" if path.suffix == ".cu" else text)


def _folder_answers(folder: Path) -> list[ScriptedAnswer]:
    return [_file_answer(p) for p in sorted(folder.iterdir()) if p.is_file() and not p.name.startswith(".")]


def _json_lines(path: Path) -> list[list[ScriptedAnswer]]:
    entries: list[tuple[int | None, ScriptedAnswer]] = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        if line.strip():
            entries.append(_json_line(line, f"{path}:{number}"))
    count = max((index for index, _ in entries if index is not None), default=0) + 1
    return [[answer for index, answer in entries if index in (None, own)] for own in range(count)]


def _json_line(line: str, where: str) -> tuple[int | None, ScriptedAnswer]:
    form = 'a line is a JSON string or {"text": "…", "trajectory": 0}'
    try:
        data: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error.msg}", where=where, hint=form) from None
    if isinstance(data, str):
        return None, ScriptedAnswer(data)
    if not isinstance(data, Mapping) or not _well_typed(data):
        raise UsageError("not an answer", where=where, hint=form)
    return data.get("trajectory"), ScriptedAnswer(
        data.get("text", ""), data.get("declined"), data.get("finish_reason", "stop")
    )


def _well_typed(data: Mapping[str, Any]) -> bool:
    texts: Iterable[Any] = (data.get("text", ""), data.get("declined") or "", data.get("finish_reason", "stop"))
    index = data.get("trajectory")
    whole = index is None or (isinstance(index, int) and not isinstance(index, bool) and index >= 0)
    return (
        set(data) <= _LINE_KEYS
        and bool({"text", "declined"} & set(data))
        and whole
        and all(isinstance(t, str) for t in texts)
    )
