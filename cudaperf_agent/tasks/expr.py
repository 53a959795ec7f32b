"""C expressions over integers (and floats) as text: parse, list names, evaluate.

Used for extents, ranges and dimensions. Values are unbounded Python integers, so that ``n*n`` never wraps; division
and remainder truncate toward zero as in C.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Number = int | float

_TOKEN = re.compile(
    r"\s*(?:(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?|\d+[eE][+-]?\d+[fFlL]?)"
    r"|(?P<int>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUlLzZ]*)"
    r"|(?P<char>'(?:[^'\\]|\\.)')"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<op><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()<>!~?:,&|^]))"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"))
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_SIZES = {
    "char": 1, "bool": 1, "_Bool": 1, "short": 2, "int": 4, "long": 8, "float": 4, "double": 8, "signed": 4,
    "unsigned": 4, "size_t": 8, "ssize_t": 8, "ptrdiff_t": 8, "intptr_t": 8, "uintptr_t": 8,
    **{f"{u}int{b}_t": b // 8 for u in ("", "u") for b in (8, 16, 32, 64)},
}  # fmt: skip
_FLOATS = {"float", "double"}
_FUNCTIONS: dict[str, tuple[int, Callable[..., Number]]] = {
    "min": (2, min),
    "max": (2, max),
    "abs": (1, abs),
    "labs": (1, abs),
}


class ExprError(ValueError):
    """A C expression that cannot be parsed or evaluated.

    Attributes:
        expr: The whole text.
        position: 0-based column of the fault.
    """

    def __init__(self, message: str, expr: str, position: int) -> None:
        super().__init__(f"{message} at column {position + 1} of `{expr}`")
        self.expr = expr
        self.position = position


@dataclass(frozen=True, slots=True)
class Node:
    """A parsed expression: an operator (``num``, ``name``, ``cast-int``, ``unary-`` …, a C token) and its operands."""

    op: str
    args: tuple[Node, ...] = ()
    value: Number = 0
    name: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def _tokens(expr: str) -> list[_Token]:
    tokens, position = [], 0
    end = len(expr.rstrip())
    while position < end:
        match = _TOKEN.match(expr, position)
        if match is None:
            at = position + len(expr[position:]) - len(expr[position:].lstrip())
            raise ExprError(f"unexpected {expr[at]!r}", expr, at)
        kind = "int" if match.lastgroup == "suffix" else str(match.lastgroup)
        tokens.append(_Token(kind, match.group(kind), match.start(kind)))
        position = match.end()
    tokens.append(_Token("end", "", len(expr)))
    return tokens


class _Parser:
    def __init__(self, expr: str) -> None:
        self.expr = expr
        self.tokens = _tokens(expr)
        self.index = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def take(self, *texts: str) -> _Token | None:
        token = self.token
        if token.kind == "op" and token.text in texts:
            self.index += 1
            return token
        return None

    def need(self, text: str) -> None:
        if self.take(text) is None:
            raise self.fault(f"expected {text!r}")

    def fault(self, message: str) -> ExprError:
        found = self.token.text or "the end"
        return ExprError(f"{message}, found {found}", self.expr, self.token.position)

    def ternary(self) -> Node:
        condition = self.binary(0)
        mark = self.take("?")
        if mark is None:
            return condition
        yes = self.ternary()
        self.need(":")
        return Node("?", (condition, yes, self.ternary()), position=mark.position)

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.product()
        left = self.binary(level + 1)
        while mark := self.take(*_LEVELS[level]):
            left = Node(mark.text, (left, self.binary(level + 1)), position=mark.position)
        return left

    def product(self) -> Node:
        left = self.unary()
        while mark := self.take("*", "/", "%"):
            left = Node(mark.text, (left, self.unary()), position=mark.position)
        return left

    def unary(self) -> Node:
        if mark := self.take("-", "+", "!", "~"):
            return Node(f"unary{mark.text}", (self.unary(),), position=mark.position)
        if self.token.text == "(" and (words := self.type_words(self.index + 1)):
            mark_at = self.token.position
            self.index += len(words) + 2
            kind = "cast-float" if words[-1] in _FLOATS else "cast-int"
            return Node(kind, (self.unary(),), position=mark_at)
        return self.primary()

    def type_words(self, start: int) -> list[str]:
        """The words of a parenthesised scalar type that starts at token `start`, ``[]`` if it is not one."""
        words = []
        while self.tokens[start].kind == "name" and self.tokens[start].text in _SIZES:
            words.append(self.tokens[start].text)
            start += 1
        return words if words and self.tokens[start].text == ")" else []

    def primary(self) -> Node:
        token = self.token
        if self.take("("):
            inner = self.ternary()
            self.need(")")
            return inner
        self.index += 1
        if token.kind == "int":
            return Node("num", value=_integer(token.text), position=token.position)
        if token.kind == "float":
            return Node("num", value=float(token.text.rstrip("fFlL")), position=token.position)
        if token.kind == "char":
            body = token.text[1:-1]
            value = ord(body) if len(body) == 1 else _ESCAPES.get(body[1:], ord(body[-1]))
            return Node("num", value=value, position=token.position)
        if token.kind == "name":
            return self.named(token)
        self.index -= 1
        raise self.fault("expected a value")

    def named(self, token: _Token) -> Node:
        if token.text == "sizeof":
            words = self.type_words(self.index + 1) if self.token.text == "(" else []
            if not words:
                raise self.fault("sizeof takes a scalar type in parentheses here")
            self.index += len(words) + 2
            return Node("num", value=_sizeof(words), position=token.position)
        if self.token.text != "(" or self.token.kind != "op":
            return Node("name", name=token.text, position=token.position)
        if token.text not in _FUNCTIONS:
            raise ExprError(f"unknown function {token.text}", self.expr, token.position)
        self.need("(")
        args = [self.ternary()]
        while self.take(","):
            args.append(self.ternary())
        self.need(")")
        if len(args) != _FUNCTIONS[token.text][0]:
            raise ExprError(f"{token.text} takes {_FUNCTIONS[token.text][0]} arguments", self.expr, token.position)
        return Node("call", tuple(args), name=token.text, position=token.position)


def _integer(text: str) -> int:
    if len(text) > 1 and text[0] == "0" and text.isdigit():
        return int(text, 8) if not set(text) & set("89") else int(text)
    return int(text, 0)


def _sizeof(words: list[str]) -> int:
    if "double" in words and "long" in words:
        return 16
    return max((_SIZES[w] for w in words if w not in ("signed", "unsigned")), default=4) if "short" not in words else 2


@functools.lru_cache(maxsize=4096)
def parse(expr: str) -> Node:
    """Parse C expression text.

    Raises:
        ExprError: Not an expression of this language.
    """
    parser = _Parser(expr)
    node = parser.ternary()
    if parser.token.kind != "end":
        raise parser.fault("expected an operator")
    return node


def names(expr: str) -> set[str]:
    """The names of variables in `expr`.

    Raises:
        ExprError: Not an expression of this language.
    """
    found: set[str] = set()
    pending = [parse(expr)]
    while pending:
        node = pending.pop()
        if node.op == "name":
            found.add(node.name)
        pending += node.args
    return found


def divisors(expr: str) -> set[str]:
    """The names in what `expr` divides by.

    Raises:
        ExprError: Not an expression of this language.
    """
    found: set[str] = set()
    pending = [(parse(expr), False)]
    while pending:
        node, divides = pending.pop()
        if divides and node.op == "name":
            found.add(node.name)
        pending += [(a, divides or (node.op in ("/", "%") and i == 1)) for i, a in enumerate(node.args)]
    return found


def evaluate(expr: str, env: Mapping[str, Number]) -> Number:
    """The value of `expr`.

    Args:
        expr: C expression text.
        env: Values of its names.

    Returns:
        An `int` where the C type would be an integer, a `float` otherwise.

    Raises:
        ExprError: It does not parse, a name has no value, or it divides by zero.
    """
    return _value(parse(expr), env, expr)


def _value(node: Node, env: Mapping[str, Number], expr: str) -> Number:
    if node.op == "num":
        return node.value
    if node.op == "name":
        if node.name not in env:
            raise ExprError(f"no value for {node.name}", expr, node.position)
        value = env[node.name]
        return value if isinstance(value, float) else int(value)
    if node.op == "?":
        return _value(node.args[1 if _value(node.args[0], env, expr) else 2], env, expr)
    if node.op in ("&&", "||"):
        left = bool(_value(node.args[0], env, expr))
        if left == (node.op == "||"):
            return int(left)
        return int(bool(_value(node.args[1], env, expr)))
    values = [_value(argument, env, expr) for argument in node.args]
    try:
        if node.op == "call":
            return _FUNCTIONS[node.name][1](*values)
        return _OPERATORS[node.op](*values)
    except (ZeroDivisionError, OverflowError) as error:
        raise ExprError("division by zero" if values[-1] == 0 else "overflow", expr, node.position) from error
    except (TypeError, ValueError) as error:
        raise ExprError("this operator takes integers", expr, node.position) from error


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: Number, b: Number) -> Number:
    return a - b * _divide(a, b) if isinstance(a, int) and isinstance(b, int) else math.fmod(a, b)


_OPERATORS: dict[str, Callable[..., Number]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divide, "%": _remainder,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b, "<": lambda a, b: int(a < b), ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b), ">=": lambda a, b: int(a >= b), "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b), "unary-": lambda a: -a, "unary+": lambda a: a, "unary!": lambda a: int(not a),
    "unary~": lambda a: ~a, "cast-int": lambda a: int(a), "cast-float": lambda a: float(a),
}  # fmt: skip
