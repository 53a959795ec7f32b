"""Whether two candidates are the same program text: comments and layout do not count."""

from __future__ import annotations

import hashlib
import re

_TOKEN = re.compile(
    r"""
      (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<word>[A-Za-z_]\w*|\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[\w.])*)
    | (?P<sign><<<|>>>|<<=|>>=|<=>|->\*|\.\.\.|\+\+|--|&&|\|\||->|::|\#\#|<<|>>|[-+*/%&|^=!<>]=)
    | (?P<join>\\[ \t]*\n)
    | (?P<line>\n)
    | (?P<space>\s+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def normalise(source: str) -> str:
    """The tokens of a CUDA or C source, one space between; directives keep their lines, since lines end them."""
    lines: list[list[str]] = [[]]
    fresh, directive = True, False  # nothing on this line yet; this line is a directive
    for match in _TOKEN.finditer(source.replace("\r\n", "\n")):
        kind, text = match.lastgroup, match[0]
        if kind == "line":
            if directive:
                lines.append([])
            fresh, directive = True, False
        elif kind not in ("comment", "space", "join"):
            if text == "#" and fresh:
                lines.append([])
                directive = True
            fresh = False
            lines[-1].append(text)
    return "\n".join(" ".join(tokens) for tokens in lines if tokens)


def source_key(source: str) -> str:
    """SHA-256 (hex) of the normalised source."""
    return hashlib.sha256(normalise(source).encode("utf-8", "surrogatepass")).hexdigest()
