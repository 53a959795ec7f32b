"""Puts nodes and routes together: generate → compile → test → measure → assess → feedback → generate, or finish.

The routes are pure functions. They are coroutines only because LangGraph would otherwise call each in a thread.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph import nodes
from graph.context import Context
from graph.state import STATE_VERSION, State

Compiled = CompiledStateGraph[State, Context, State, State]

_NODES_PER_TURN = 6
_SPARE_STEPS = 4


async def after_generate(state: State) -> Literal["compile", "assess", "finish"]:
    """Finish when there is nothing new; an answer without code needs no compiler."""
    if state["stop"]:
        return "finish"
    return "assess" if state["source"] is None else "compile"


async def after_compile(state: State) -> Literal["test", "assess"]:
    """Only what compiles is tested."""
    return "test" if _correct(state) else "assess"


async def after_test(state: State) -> Literal["measure", "assess"]:
    """Only what is correct is timed."""
    return "measure" if _correct(state) else "assess"


async def after_feedback(state: State) -> Literal["generate", "finish"]:
    """The next turn, unless there is a reason to stop."""
    return "finish" if state["stop"] else "generate"


def build(checkpointer: BaseCheckpointSaver[str] | None = None) -> Compiled:
    """The compiled graph of one trajectory."""
    compiled: Compiled = _graph().compile(checkpointer=checkpointer)
    return compiled


@lru_cache(maxsize=1)
def _graph() -> StateGraph[State, Context, State, State]:
    graph = StateGraph(State, context_schema=Context)
    graph.add_node("generate", nodes.generate)
    graph.add_node("compile", nodes.compile_)
    graph.add_node("test", nodes.test)
    graph.add_node("measure", nodes.measure)
    graph.add_node("assess", nodes.assess)
    graph.add_node("feedback", nodes.feedback)
    graph.add_node("finish", nodes.finish)
    graph.add_edge(START, "generate")
    graph.add_conditional_edges("generate", after_generate)
    graph.add_conditional_edges("compile", after_compile)
    graph.add_conditional_edges("test", after_test)
    graph.add_edge("measure", "assess")
    graph.add_edge("assess", "feedback")
    graph.add_conditional_edges("feedback", after_feedback)
    graph.add_edge("finish", END)
    return graph


def invocation(run: str, trajectory: int, turns: int) -> dict[str, Any]:
    """LangGraph's configuration of one trajectory: its thread, and how many steps it may take at most."""
    return {
        "configurable": {"thread_id": thread_id(run, trajectory)},
        "recursion_limit": turns * _NODES_PER_TURN + _SPARE_STEPS,
    }


def thread_id(run: str, trajectory: int) -> str:
    """The checkpointer's name of a trajectory."""
    return f"{run}/{trajectory}/{STATE_VERSION}"


def _correct(state: State) -> bool:
    verdict = state["verdict"]
    return verdict is not None and verdict["status"] == "correct"
