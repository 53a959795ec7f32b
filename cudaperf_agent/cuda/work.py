"""Work and span of a correct candidate, counted on the emulator beside those of plain CUDA on the same cases.

A kernel can be right and a thousand times slower than need be: many threads write what one would, or a few do what many
could. That needs no clock to be seen. Counted are the writes of global memory (but for atomics), and the *span*: the
accesses of the busiest thread, added up over launches. Reads are not compared: that a warp reads a short row's ends 32
times over is cheap. What only computes is not seen, nor what goes wrong only at sizes that tests do not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.cuda.verdict import Verdict

COUNTED, WORK = "counted", "work"
"""In a verdict's profile: what `judge` has from the emulator, and the same beside plain CUDA's."""
WRITES = 4
"""So many times plain CUDA's writes are ordinary: partial results, several passes."""
COARSE = 16
"""And a thread may have so many times as much to do as one of plain CUDA: several elements each."""


@dataclass(frozen=True, slots=True)
class Work:
    """Over all cases of a test together.

    Attributes:
        writes: The candidate's.
        span: Its span.
        plain_writes: Plain CUDA's.
        plain_span: Plain CUDA's span.
    """

    writes: int
    span: int
    plain_writes: int
    plain_span: int

    @classmethod
    def of(cls, verdict: Verdict) -> Work | None:
        """What a verdict has, `None` where nothing was counted or there is no plain CUDA to compare with."""
        found: Mapping[str, int] = verdict.profile.get(WORK) or {}
        return cls(**found) if verdict.correct and found else None

    @property
    def over(self) -> float:
        """Writes over plain CUDA's; 0 where that writes by atomics alone, so that there is nothing to compare."""
        return self.writes / self.plain_writes if self.plain_writes else 0.0

    @property
    def longer(self) -> float:
        """Span over plain CUDA's."""
        return self.span / self.plain_span

    @property
    def excess(self) -> float:
        """By how much it is beyond what is ordinary in either, at least 1."""
        return max(1.0, beyond(self.over, self.longer))

    def sentences(self) -> list[str]:
        """What is to be said of it, for a person and for the next turn; nothing where it is ordinary."""
        told = []
        if self.over > WRITES:
            told.append(
                f"it writes memory {self.over:.3g} times as often as plain CUDA: several threads write the same "
                "elements, or many partial results are kept; let each element have one thread"
            )
        if self.longer > COARSE:
            told.append(
                f"its busiest thread makes {self.longer:.3g} times as many memory accesses as one of plain CUDA: "
                "let more threads share the work"
            )
        return told


def beyond(over: float, longer: float) -> float:
    """Writes and span over plain CUDA's, in what is ordinary of each: the larger; above 1 it is told."""
    return max(over / WRITES, longer / COARSE)


def counted(writes: int, span: int) -> dict[str, Any]:
    """For the profile of what ran on the emulator; nothing where no kernel touched memory."""
    return {COUNTED: {"writes": writes, "span": span}} if span else {}


def beside(own: Verdict, plain: Verdict | None) -> dict[str, Any]:
    """For the profile of a correct candidate, from its verdict and plain CUDA's; nothing where one counted nothing."""
    mine, other = (v.profile.get(COUNTED) if v is not None and v.correct else None for v in (own, plain))
    if not mine or not other:
        return {}
    return {WORK: {**mine, **{f"plain_{name}": value for name, value in other.items()}}}
