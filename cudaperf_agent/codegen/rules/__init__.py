"""Named rules: parallel forms of loops that carry an order, each with its proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access
from cudaperf_agent.codegen.rules.pivot import min_plus, split_at_pivot
from cudaperf_agent.codegen.rules.running import running_best
from cudaperf_agent.codegen.rules.scan import scan
from cudaperf_agent.codegen.rules.wavefront import wavefront
from cudaperf_agent.codegen.steps import Nest, Step
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner


def first_rule(planner: Planner, loop: ir.For, nest: Nest, shared: set[str], context: Context) -> list[Step]:
    """Rules that are tried before the host runs the loop; ``[]`` where none applies."""
    return (
        min_plus(planner, loop, nest, context)
        or scan(planner, loop, nest, shared, context)
        or running_best(planner, loop, nest, shared, context)
    )


def last_rule(planner: Planner, nest: Nest, accesses: Sequence[Access], context: Context) -> list[Step]:
    """Rules that are tried where nothing inside the loop is parallel by itself; ``[]`` where none applies."""
    return split_at_pivot(planner, nest, accesses, context) or wavefront(planner, nest, accesses, context)
