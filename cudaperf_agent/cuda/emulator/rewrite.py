"""Turns CUDA syntax that g++ does not know into C++: launches and dynamic shared memory. Line numbers stay."""

from __future__ import annotations

from dataclasses import dataclass

from cudaperf_agent.cuda.emulator.tokens import Token, TokenKind, closing, opening, tokenize

_QUALIFIERS = ("extern", "static", "volatile", "const", "__shared__")
_ALIGNMENTS = ("__align__", "alignas", "__attribute__")


class RewriteError(ValueError):
    """The text is not CUDA that can be rewritten: `reason`, and the `line` where."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"line {line}: {reason}")
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def rewrite(source: str) -> str:
    """`source` with every launch as a call and every ``extern __shared__`` array as a pointer.

    ``k<T><<<g, b>>>(x)`` becomes ``::emu::Launch("k<T>", __LINE__, g, b).run([&](auto &&...a) { k<T>(a...); }, x)``:
    arguments are evaluated once, as CUDA does.

    Raises:
        RewriteError: Brackets of a launch do not match, or a shared declaration has a form that is not understood.
    """
    tokens = tokenize(source)
    edits: list[_Edit] = []
    depth = 0
    for index, token in enumerate(tokens):
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
        elif token.text == "<<<":
            edits += _launch(source, tokens, index)
        elif token.text == "__shared__" and token.kind is TokenKind.NAME:
            edits += _shared(source, tokens, index, at_file_scope=depth == 0)
        elif token.text == "__noinline__" and (not index or tokens[index - 1].text not in ("(", "::", ",")):
            # Not a macro: the C++ library writes __attribute__((__noinline__)) itself.
            edits.append(_Edit(token.start, token.end, "__attribute__((noinline))"))
    return _apply(source, edits)


def line_of(source: str, offset: int) -> int:
    """1-based line of an offset."""
    return source.count("\n", 0, offset) + 1


def _apply(source: str, edits: list[_Edit]) -> str:
    parts = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < position:
            raise RewriteError("a launch inside the configuration of another one", line_of(source, edit.start))
        # Line breaks inside the replaced text are kept, so that the lines below do not move.
        breaks = source.count("\n", edit.start, edit.end) - edit.text.count("\n")
        parts += [source[position : edit.start], edit.text, _line_breaks(source, edit, breaks)]
        position = edit.end
    parts.append(source[position:])
    return "".join(parts)


def _line_breaks(source: str, edit: _Edit, count: int) -> str:
    continued = "\\\n" in source[edit.start : edit.end]
    return ("\\\n" if continued else "\n") * count


def _launch(source: str, tokens: list[Token], bracket: int) -> list[_Edit]:
    line = line_of(source, tokens[bracket].start)
    first = _kernel_start(tokens, bracket)
    end = _configuration_end(tokens, bracket)
    if first is None:
        raise RewriteError("a launch without a kernel before <<<", line)
    if end is None or end + 1 >= len(tokens) or tokens[end + 1].text != "(":
        raise RewriteError("a launch whose <<<…>>>(…) does not close", line)
    last = closing(tokens, end + 1)
    if last is None:
        raise RewriteError("a launch whose argument list does not close", line)
    kernel = " ".join(source[tokens[first].start : tokens[bracket - 1].end].replace("\\\n", " ").split())
    name = kernel.replace("\\", "\\\\").replace('"', '\\"')
    call = f"[&](auto &&...emu_a) EMU_UNCHECKED -> decltype(void({kernel}(emu_a...))) {{ {kernel}(emu_a...); }}"
    comma = ", " if last > end + 2 else ""
    edits = [
        _Edit(tokens[first].start, tokens[bracket].end, f'::emu::Launch("{name}", __LINE__, '),
        _Edit(tokens[end].start, tokens[end + 1].end, f").run({call}{comma}"),
    ]
    return edits + [
        _Edit(tokens[i].start, tokens[i].end, "nullptr" if tokens[i].text == "NULL" else "::emu::Zero{}")
        for i in range(end + 2, last)
        if tokens[i].text == "NULL"
        or (
            tokens[i].text == "0"
            and tokens[i - 1].text in ("(", ",")
            and tokens[i + 1].text in (")", ",")
            and _whole_argument(tokens, end + 1, i)
        )
    ]


def _whole_argument(tokens: list[Token], parenthesis: int, index: int) -> bool:
    """Whether the token is an argument of the launch itself, not of a call among its arguments."""
    depth = 0
    for token in tokens[parenthesis + 1 : index]:
        depth += (token.text in "([{") - (token.text in ")]}")
    return depth == 0


def _kernel_start(tokens: list[Token], bracket: int) -> int | None:
    """First token of the kernel expression that ends before `bracket`: a name, template arguments, an index, …"""
    index = bracket - 1
    if index >= 0 and tokens[index].text in (">", ">>", ">>>"):
        after = _template_start(tokens, index)
        if after is None:
            return None
        index = after - 1
    while index >= 0 and tokens[index].text in (")", "]"):
        start = opening(tokens, index)
        if start is None:
            return None
        if tokens[index].text == ")" and (start == 0 or tokens[start - 1].kind is not TokenKind.NAME):
            return start
        index = start - 1
    if index < 0 or tokens[index].kind is not TokenKind.NAME:
        return None
    while index >= 1 and tokens[index - 1].text in ("::", ".", "->"):
        if index >= 2 and tokens[index - 2].kind is TokenKind.NAME:
            index -= 2
        else:
            return index - 1
    return index


def _template_start(tokens: list[Token], index: int) -> int | None:
    """The ``<`` that opens the template arguments ending at `index`."""
    depth = 0
    while index >= 0:
        text = tokens[index].text
        if text in (")", "]", "}"):
            start = opening(tokens, index)
            if start is None:
                return None
            index = start - 1
            continue
        depth += {">": 1, ">>": 2, ">>>": 3, "<": -1, "<<": -2}.get(text, 0)
        if depth <= 0:
            return index
        index -= 1
    return None


def _configuration_end(tokens: list[Token], bracket: int) -> int | None:
    depth = 0
    for index in range(bracket + 1, len(tokens)):
        text = tokens[index].text
        if text == ">>>" and depth == 0:
            return index
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth < 0 or text == ";":
            return None
    return None


def _shared(source: str, tokens: list[Token], index: int, *, at_file_scope: bool) -> list[_Edit]:
    first = index
    while first > 0 and tokens[first - 1].text in _QUALIFIERS:
        first -= 1
    end = next((i for i in range(index, len(tokens)) if tokens[i].text == ";"), None)
    if end is None:
        raise RewriteError("a __shared__ declaration without its semicolon", line_of(source, tokens[index].start))
    words = [t.text for t in tokens[first:end]]
    if "extern" not in words:
        # The macro says `static` already.
        return [_Edit(t.start, t.end, "") for t in tokens[first:end] if t.text == "static"]
    if words[-2:] != ["[", "]"]:
        raise RewriteError(
            "dynamic shared memory must be an array without a size", line_of(source, tokens[index].start)
        )
    name = words[-3]
    kind = " ".join(_element_type(tokens, first, end - 3))
    storage = "static " if at_file_scope else ""
    text = f"{storage}{kind} *const {name} = ({kind} *)emu_dynamic_shared"
    return [_Edit(tokens[first].start, tokens[end].start, text)]


def _element_type(tokens: list[Token], first: int, end: int) -> list[str]:
    words = []
    index = first
    while index < end:
        text = tokens[index].text
        if text in _ALIGNMENTS and tokens[index + 1].text == "(":
            last = closing(tokens, index + 1)
            index = end if last is None else last + 1
            continue
        if text not in ("extern", "static", "__shared__"):
            words.append(text)
        index += 1
    return words
