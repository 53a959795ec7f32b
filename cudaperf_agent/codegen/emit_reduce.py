"""Launches whose iterations combine into scalars: partial results per thread or block, then one block that finishes."""

from __future__ import annotations

from cudaperf_agent.codegen.emit import Emitter
from cudaperf_agent.codegen.steps import Declined, Reduce


def emit(emitter: Emitter, step: Reduce, depth: int) -> list[str]:
    """Host lines of the launches."""
    raise Declined("reductions to a scalar are not generated", step.nest.line)
