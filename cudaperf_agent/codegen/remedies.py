"""What a person can do where the generator declines: a remedy for each kind of reason, found by a phrase in it."""

from __future__ import annotations

from typing import NamedTuple


class Remedy(NamedTuple):
    """A phrase of reasons, and what helps."""

    phrase: str
    text: str


ANYWAY = (
    "Write that line in simpler C, or let a model try (--policy auto with an endpoint; its answers are tested too)."
)
"""What helps where nothing more is known."""

REMEDIES = (
    Remedy("whole programs", "Put the work into a function and name it: --entry NAME."),
    Remedy(
        "running sum of floating-point",
        "Sum integers (fixed point), or take the sums of many rows at once, so that rows run in parallel.",
    ),
    Remedy(
        "of the one before",
        "If the last value is all that is needed, write it as a sum, minimum, maximum or count; else give the function "
        "many independent sequences, so that those run in parallel.",
    ),
    Remedy(
        "same element of",
        "Store to another buffer than the one that is read, or let each iteration store only elements of its own.",
    ),
    Remedy(
        "may end early",
        "Let the loop only search: one test, then `break` or `return`; do other work in a loop of its own.",
    ),
    Remedy("returns out of a loop", "Let `return` after the loop be all that follows it, or keep the position found."),
    Remedy("stays in bounds is not proven", "Say how many elements there are, e.g. /* cudaperf: in NAME[n] */."),
    Remedy("on memory", "Pass the size or the flag as a parameter, or let every iteration decide for itself."),
    Remedy("values in memory", "Pass the size or the position as a parameter."),
    Remedy("nothing in the function", "Name the function that has the loops over the data: --entry NAME."),
    Remedy(
        "nothing in it can be spread",
        "Write the loop over the data as `for (i = start; i < end; i++)` where it is one.",
    ),
    Remedy("moves between launches", "Index the buffer instead of moving the pointer from one buffer to another."),
    Remedy("a range of `case`", "Test the range with `if`, or list its values one by one."),
    Remedy("compared as unsigned", "Give the counter and its bound one type, e.g. `int` for both."),
    Remedy("goto", "Write it as a loop with `break`, or as a condition."),
    Remedy("label", "Write it as a loop with `break`, or as a condition."),
    Remedy("recursive", "Write the recursion as a loop."),
    Remedy("values of type", "Use integers, float, double, or structs of them."),
    Remedy("no device counterpart", "Put the definition of the function into this file."),
    Remedy("function pointer", "Call the function by its name; write one version per function if there are several."),
    Remedy("pointers to pointers", "Pass one flat array and index it as a[i*width + j]."),
    Remedy("is read as", "Copy the bytes into a scalar of the other type with memcpy."),
    Remedy("stepped and used in one statement", "Step it in a statement of its own."),
    Remedy("the local declaration", "Make it a plain local variable, a parameter, or a `static const` table."),
    Remedy("address of", "Return the value instead of storing it through a pointer to a local variable."),
)
"""In order; the first whose phrase is in the reason counts."""


def remedy_for(reason: str) -> str:
    """What to do about a reason to decline."""
    return next((remedy.text for remedy in REMEDIES if remedy.phrase in reason), ANYWAY)
