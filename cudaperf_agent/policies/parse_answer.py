"""From a model's answer to the candidate's source: the last complete code block, or the reason why there is none."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

# Fence languages that may hold a candidate; anything else (bash, json, diff, …) never does.
_CODE_LANGUAGES = frozenset(
    {"", "cuda", "cu", "cuda-cpp", "cudac", "cuda-c", "c", "cc", "cpp", "c++", "cxx", "h", "cuh"}
)
_FENCE = re.compile(r"^[ \t]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_FILE_NAME = re.compile(r"(?<![\w./-])(?P<name>[\w./-]*\w\.(?:cuh|cu|cpp|cc|c|h|hpp|py|txt|sh|mk))\b")
_THINKING = re.compile(r"<(think|thinking|thought|reasoning|analysis)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THINKING_END = re.compile(r"</(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_THINKING_START = re.compile(r"^[ \t]*<(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE | re.MULTILINE)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)\s*<\|message\|>(?P<text>.*?)(?=<\|channel\|>|<\|start\|>|\Z)", re.DOTALL
)
_CONTROL_TOKEN = re.compile(r"<\|(?:im_start|im_end|endoftext|end|return|start|eot_id)\|>")
_CUDA = re.compile(r"__global__|<<<|cudaLaunchKernel|cudaMalloc|#\s*include\s*[<\"]cuda")
# The class that a candidate for a PyTorch module defines; nothing else in an answer is Python that counts.
_MODULE = re.compile(r"^class ModelNew\b", re.M)
_PYTHON_START = re.compile(r"^(?:\"\"\"|from __future__|import |from [\w.]+ import )", re.M)
_CODE_START = re.compile(
    r"^\s*(?:#\s*(?:include|define|pragma|if)|//|/\*|extern\b|__global__|__device__|__constant__|template\s*<|"
    r"static\b|typedef\b|using\b|struct\b|namespace\b|constexpr\b|"
    r"(?:unsigned |const )?(?:int|void|float|double)\s+\w+\s*\()"
)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer holds.

    Attributes:
        source: The candidate; `None` if there is none.
        reason: Why there is none, one sentence for the next turn; empty if there is one.
        cut: Whether the answer ended before it was complete (also where an earlier complete block was taken).
        file_name: The name under which the answer gave it, if any.
    """

    source: str | None
    reason: str = ""
    cut: bool = False
    file_name: str = ""


@dataclass(frozen=True, slots=True)
class _Block:
    language: str
    file_name: str
    text: str
    closed: bool

    @property
    def is_code(self) -> bool:
        return self.language in _CODE_LANGUAGES and bool(self.text.strip())

    @property
    def is_cuda(self) -> bool:
        return self.language in ("cuda", "cu", "cuda-cpp", "cudac", "cuda-c") or bool(_CUDA.search(self.text))


def parse_answer(text: str, *, name: str | None = None, finish_reason: str = "stop") -> ParsedAnswer:
    """Find the candidate in an answer.

    Args:
        text: The whole answer, thinking included.
        name: Entry of the task: of several files in one answer, ``NAME.cu`` is taken.
        finish_reason: As the backend gave it; ``length`` means that the answer was cut.

    Returns:
        The last complete code block that is CUDA (or the last complete one at all), fences or not.
    """
    answer = _without_thinking(text)
    if answer is None:
        return ParsedAnswer(None, "the answer ended inside its thinking section; think less, answer sooner", cut=True)
    if not answer.strip():
        return ParsedAnswer(None, "the answer is empty", cut=finish_reason == "length")
    blocks = _blocks(answer)
    length = finish_reason == "length"
    if _MODULE.search(answer):
        return _module(answer, blocks, length)
    if not blocks:
        return _unfenced(answer, length)
    last = blocks[-1]
    cut = not last.closed and (length or not _balanced(last.text))
    complete = [b for b in blocks if b.is_code and (b.closed or (b is last and not cut))]
    chosen = _choose(complete, name)
    # A block that only quotes the task's C is no replacement for the CUDA that was cut off.
    if chosen is None or (cut and not chosen.is_cuda):
        reason = "the answer was cut before its code block ended; answer with less text" if cut else _no_block(blocks)
        return ParsedAnswer(None, reason, cut=cut)
    return ParsedAnswer(chosen.text.strip("\n") + "\n", cut=cut, file_name=chosen.file_name)


def _module(answer: str, blocks: list[_Block], length: bool) -> ParsedAnswer:
    """The last complete Python file with ``ModelNew``, in a code block or without."""
    files = [b for b in blocks if _MODULE.search(b.text)]
    if not files:
        start = _PYTHON_START.search(answer)
        files = [_Block("", "", answer[start.start() if start else 0 :], False)]
    last = files[-1]
    whole = [b for b in files if b.closed or (b is last and not length and _parses(b.text))]
    if not whole:
        return ParsedAnswer(None, "the answer was cut before its file ended; answer with less text", cut=True)
    return ParsedAnswer(whole[-1].text.strip("\n") + "\n", cut=whole[-1] is not last, file_name=whole[-1].file_name)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _choose(blocks: list[_Block], name: str | None) -> _Block | None:
    if name:
        named = [b for b in blocks if b.file_name.rpartition("/")[2] == f"{name}.cu"]
        if named:
            return named[-1]
    # Host code, headers and usage examples come under names of their own.
    others = [b for b in blocks if not b.file_name or b.file_name.endswith(".cu")]
    for group in ([b for b in others if b.is_cuda], [b for b in blocks if b.is_cuda], others):
        if group:
            return group[-1]
    return None


def _no_block(blocks: list[_Block]) -> str:
    languages = sorted({b.language or "unnamed" for b in blocks})
    return f"no code block of the answer holds CUDA (found: {', '.join(languages)})"


def _without_thinking(text: str) -> str | None:
    """The answer proper; `None` if the text ends while still thinking."""
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = [c["text"] for c in channels if c["name"] == "final"]
        if not final:
            return None
        text = final[-1]
    text = _THINKING.sub("", text)
    # Some chat templates put the opening tag into the prompt, so that only the closing one is in the answer.
    ends = list(_THINKING_END.finditer(text))
    if ends:
        text = text[ends[-1].end() :]
    start = _THINKING_START.search(text)
    if start and not _inside_fence(text, start.start()):
        text = text[: start.start()]
        if not text.strip():
            return None
    return _CONTROL_TOKEN.sub("", text)


def _inside_fence(text: str, position: int) -> bool:
    return sum(1 for line in text[:position].splitlines() if _FENCE.match(line)) % 2 == 1


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    lines = text.replace("\r\n", "\n").split("\n")
    opened: re.Match[str] | None = None
    before = ""
    body: list[str] = []
    for line in lines:
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, body = fence, []
            elif line.strip():
                before = line
        elif fence and not fence["info"].strip() and fence["mark"].startswith(opened["mark"]):
            blocks.append(_block(opened["info"], before, body, closed=True))
            opened, before = None, ""
        else:
            body.append(line)
    if opened is not None:
        blocks.append(_block(opened["info"], before, body, closed=False))
    return blocks


def _block(info: str, before: str, body: list[str], *, closed: bool) -> _Block:
    words = info.strip().split(maxsplit=1)
    language = words[0].lower().strip("{}.") if words else ""
    heading = before if len(before) <= 120 else ""
    first = next((line for line in body if line.strip()), "")
    comment = first if first.lstrip().startswith(("//", "/*", "#!")) else ""
    found = _FILE_NAME.search(info) or _FILE_NAME.search(comment) or _FILE_NAME.search(heading)
    if found and language == found["name"].lower():
        language = ""
    if language.startswith(("file", "title", "name")) and found:
        language = ""
    if ":" in language:
        language = language.partition(":")[0]
    return _Block(language, found["name"] if found else "", "\n".join(body), closed)


def _unfenced(text: str, length: bool) -> ParsedAnswer:
    lines = text.replace("\r\n", "\n").split("\n")
    start = next((i for i, line in enumerate(lines) if _CODE_START.match(line)), None)
    if start is None or not _CUDA.search(text):
        return ParsedAnswer(None, "the answer holds no code block", cut=length)
    end = max((i for i, line in enumerate(lines) if "}" in line), default=len(lines) - 1)
    code = "\n".join(lines[start : end + 1])
    if length or not _balanced(code) or any("{" in line for line in lines[end + 1 :]):
        return ParsedAnswer(None, "the answer was cut before its code ended; answer with less text", cut=True)
    return ParsedAnswer(code.strip("\n") + "\n")


def _balanced(code: str) -> bool:
    """Whether the code can end here: all brackets closed, a whole declaration last; comments and literals left out."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", "", code, flags=re.DOTALL)
    pairs = all(bare.count(left) == bare.count(right) for left, right in ("{}", "()"))
    last = bare.rstrip().rpartition("\n")[2].lstrip()
    return "{" in bare and pairs and "/*" not in bare and last.startswith(("#", "}", "{")) | last.endswith(("}", ";"))
