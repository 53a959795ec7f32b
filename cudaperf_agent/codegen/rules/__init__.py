"""Named rules: parallel forms of loops that carry an order, each with its proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access
from cudaperf_agent.codegen.steps import Declined, Nest, Pivot, Scan, Search, Step, Wavefront
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.emit import Emitter
    from cudaperf_agent.codegen.plan import Context, Planner


def first_rule(planner: Planner, loop: ir.For, context: Context) -> list[Step]:
    """Rules that are tried before the host runs the loop; ``[]`` where none applies."""
    return []


def last_rule(planner: Planner, loop: ir.For, nest: Nest, accesses: Sequence[Access], context: Context) -> list[Step]:
    """Rules that are tried where nothing inside the loop is parallel by itself; ``[]`` where none applies."""
    return []


def emit_rule(emitter: Emitter, step: Scan | Search | Wavefront | Pivot, depth: int) -> list[str]:
    """Host lines of a rule's step."""
    raise Declined("this rule is not generated", 1)
