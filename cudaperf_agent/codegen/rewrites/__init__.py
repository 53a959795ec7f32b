"""Rewrites of the loop IR that keep what a function computes and bring loops into forms that can be analysed.

They are tried only where the C as written could not be planned, so that what could be is not changed by them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.rewrites.alternating import alternating
from cudaperf_agent.codegen.rewrites.best_index import with_best_values
from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, each_statement, names_of
from cudaperf_agent.codegen.rewrites.constants import sunk_tables
from cudaperf_agent.codegen.rewrites.counting import counted_while, joined_bounds
from cudaperf_agent.codegen.rewrites.direction import upward
from cudaperf_agent.codegen.rewrites.in_place import with_carried_elements
from cudaperf_agent.codegen.rewrites.induction import closed
from cudaperf_agent.codegen.rewrites.last_value import with_last_values
from cudaperf_agent.codegen.rewrites.through_pointers import with_elements_in_scalars
from cudaperf_agent.codegen.rewrites.tidy import without_continues, without_idle
from cudaperf_agent.codegen.rewrites.walking import offsets
from cudaperf_agent.codegen.scalars import flow
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import Function, Module

Rewrite = Callable[[Function, Fresh], Function]


@dataclass(frozen=True, slots=True)
class Form:
    """A rewritten module, and the variable of the C that each new one stands for."""

    module: Module
    origins: Mapping[str, str]

    def explained(self, reason: str) -> str:
        """A message about the form in the names of the C."""
        return re.sub(r"'(\w+)'", lambda found: f"'{self.origins.get(found[1], found[1])}'", reason)


def forms(module: Module) -> Iterator[Form]:
    """Other forms of a module, each with more rewritten than the one before; those that differ from it only."""
    last = module
    for stages in (STRAIGHT, CARRIED, LAST):
        made = applied(module, stages)
        if made.module != last:
            yield made
            last = made.module


def applied(module: Module, stages: Sequence[Rewrite]) -> Form:
    """The form of a module that some rewrites give, one after the other, in the entry and in its helpers."""
    origins: dict[str, str] = {}

    def each(function: Function) -> Function:
        fresh = Fresh(names_of(function) | {h.name for h in module.helpers})
        for stage in stages:
            function = stage(function, fresh)
        origins.update(fresh.origins)
        return function

    helpers = tuple(each(h) for h in module.helpers)
    return Form(replace(module, entry=each(module.entry), helpers=helpers), origins)


def counted(function: Function, fresh: Fresh) -> Function:
    """Loops that count as such, and variables that they only step as functions of their own, inner loops first."""

    def change(statement: ir.Stmt, place: Surroundings) -> Sequence[ir.Stmt] | None:
        made: Sequence[ir.Stmt] | None = None
        if isinstance(statement, ir.While):
            made = counted_while(statement, place, fresh)
        opening: tuple[ir.Stmt, ...] = ()
        rest = tuple(made) if made is not None else (statement,)
        while rest and not isinstance(rest[0], ir.For):
            opening, rest = (*opening, rest[0]), rest[1:]
        if not rest or not isinstance(rest[0], ir.For):
            return made
        after = rest[1:]
        here = Surroundings((*place.before, *opening), place.live | flow(after).exposed)
        loop = joined_bounds(rest[0]) or rest[0]
        loop = upward(loop, here, fresh) or loop
        done = closed(loop, here)
        if done is None and loop is rest[0]:
            return made
        return (*opening, *(done or (loop,)), *after)

    return replace(function, body=each_statement(function.body, change))


STRAIGHT: tuple[Rewrite, ...] = (
    without_continues,
    sunk_tables,
    offsets,
    counted,
    alternating,
    without_continues,
    without_idle,
)
CARRIED: tuple[Rewrite, ...] = (
    *STRAIGHT,
    with_elements_in_scalars,
    with_best_values,
    with_carried_elements,
)
LAST: tuple[Rewrite, ...] = (*CARRIED, with_last_values)
