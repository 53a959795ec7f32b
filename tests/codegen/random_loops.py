"""Random C functions full of counters, walking pointers and loops in many spellings, all of them defined and finite.

Every function is ``int f(int n, int m, const int *a, int *b)`` over buffers of 512 elements; at its end it stores all
its variables to ``b``, so that what a loop leaves behind is seen too.
"""

from __future__ import annotations

from random import Random

_OPENING = "int x = 1, y = m, z = n; unsigned u = 3; size_t w = 7; const int *p = a + 40; int *q = b + 60;"
_CLOSING = (
    "b[0] = x; b[1] = y; b[2] = z; b[3] = (int)u; b[4] = (int)w; b[5] = (int)(p - a); b[6] = (int)(q - b); return x;"
)


def random_function(seed: int, name: str = "f") -> str:
    """The text of one function; the same for the same seed."""
    made = _Function(Random(seed))
    first = " ".join(made.statement(0, inside=False) for _ in range(made.random.randint(1, 2)))
    loops = " ".join(made.loop(0) for _ in range(made.random.randint(1, 2)))
    return f"int {name}(int n, int m, const int *a, int *b) {{ {_OPENING} {first} {loops} {_CLOSING} }}"


class _Function:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.number = 0
        self.counters: list[str] = []

    def value(self, depth: int = 0) -> str:
        """An integer expression that may also read memory in bounds."""
        kind = self.random.randint(0, 9)
        if depth < 2 and kind in (0, 1):
            return f"a[({self.value(depth + 1)}) & 255]"
        if depth < 2 and kind in (2, 3):
            return f"({self.value(depth + 1)} {self.random.choice('+-*')} {self.random.randint(1, 4)}) % 1000"
        if kind == 4:
            return self.random.choice(["*p", "p[1]", "q[-1]", "(int)(p - a)", "(int)u", "(int)w"])
        return (
            str(self.random.randint(0, 9))
            if kind == 5
            else self.random.choice(["x", "y", "z", "n", "m", *self.counters])
        )

    def test(self) -> str:
        return f"{self.value(1)} {self.random.choice(['<', '>', '<=', '>=', '==', '!='])} {self.value(1)}"

    def step(self) -> str:
        """One variable changed, most often by something constant."""
        steps = ["p++;", "p += 2;", "q++;", f"*q++ = {self.value(1)} & 255;", "y += n;", "z += m;", "z = z - 2;"]
        steps += [f"{v}++;" for v in "xyzuw"] + [f"{v} += 3;" for v in "xyzuw"] + ["x--;", "u--;"]
        return self.random.choice(steps)

    def block(self, depth: int, *, inside: bool, last: str = "") -> str:
        count = self.random.randint(1, 4)
        return "{ " + " ".join([*(self.statement(depth, inside=inside) for _ in range(count)), last]) + " }"

    def statement(self, depth: int, *, inside: bool) -> str:
        """One statement; jumps only inside loops."""
        kind = self.random.randint(0, 11)
        if kind < 3:
            return f"b[({self.value(1)}) & 255] {self.random.choice(['=', '+='])} {self.value()} & 255;"
        if kind < 6:
            return self.step()
        if kind == 6 and inside:
            return f"if ({self.test()}) {self.random.choice(['break;', 'continue;'])}"
        if kind == 7:
            return f"if ({self.test()}) {self.block(depth + 1, inside=inside)}"
        if kind == 8:
            return self.pattern()
        if kind == 9:
            return (
                f"switch ({self.value(1)} & 3) {{ case 0: {self.step()} break; case 1: {self.step()} default: x++; }}"
            )
        return self.loop(depth) if depth < 2 else self.step()

    def pattern(self) -> str:
        """A loop of one of the forms that get variables of their own."""
        i, relation, v = self._counter(), self.random.choice(["<", ">", "<=", ">="]), self.random.choice("xy")
        head = self.random.choice([f"for (int {i} = 0; {i} < n; {i}++)", f"for (int {i} = m; {i} >= 0; {i}--)"])
        return self.random.choice(
            [
                f"{v} = n; {head} if (a[{i}] {relation} a[{v}]) {v} = {i};",
                f"{head} if (a[{i}] {relation} b[7]) b[7] = a[{i}];",
                f"{head} b[{i} + 20] += b[{i} + 19] & 15;",
                f"{head} b[{i} + 20] = b[{i} + 20] + b[{i} + 21];",
                f"{head} if (b[{i} + 20] {relation} b[{i} + 19]) b[{i} + 20] = b[{i} + 19];",
                f"{head} if (a[{i}] {relation} 3) {v} = {i} * 2;",
            ]
        )

    def loop(self, depth: int) -> str:
        """A loop whose counter nothing else changes, and sometimes a use of the counter after it."""
        k, end = self._counter(), self.random.choice(["n", "m", "5", "(n - 1)", "(m + 2)"])
        self.counters.append(k)

        def body(last: str = "") -> str:
            text = self.block(depth + 1, inside=True, last=last)
            return text.replace("continue;", "break;") if last or not free else text

        free = True
        kinds = [
            lambda: f"int {k} = {end}; while ({k}-- > 0) {body()}",
            lambda: f"unsigned {k} = n; while ({k}--) {body()}",
            lambda: f"long {k} = {end}; while (--{k} > 0) {body()}",
            lambda: f"int {k} = 0; while ({k} < {end}) {body(f'{k}++;')}",
            lambda: f"int {k} = 0; do {body('x++;')} while (++{k} < {end});",
            lambda: f"int {k}, {k}j; for ({k} = 0, {k}j = m; {k} < {k}j; {k}++, {k}j--) {body()}",
            lambda: f"int {k} = 0; for (;;) {{ if ({k} >= {end}) break; {body(f'{k} += 2;')[1:]}",
            lambda: f"int {k}; for ({k} = 0; {k} + 1 < {end}; {k} += 3) {body()}",
            lambda: f"int {k} = m; while ({k} > 0 && {self.test()}) {body(f'{k}--;')}",
            lambda: f"size_t {k} = m; while ({k} != 0) {body(f'{k} -= 1; {self.step()}')}",
            lambda: f"unsigned {k}; for ({k} = n; {k}-- > 0;) {body()}",
            lambda: f"int {k}; for ({k} = 0; {k} < {end} && {k} < n; {k}++) {body()}",
            lambda: f"int {k} = {end}; do {body(f'{k}--;')} while ({k} > 0);",
        ]
        made = self.random.choice(kinds)()
        self.counters.pop()
        use = f" y += (int){k} & 7;" if self.random.random() < 0.4 else ""
        return f"{{ {made}{use} }}"

    def _counter(self) -> str:
        self.number += 1
        return f"k{self.number}"
