"""How quickly the app answers: to a key while a run pours events in, and when it opens a store of 10,000 runs."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from graph_world import Clock, DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task
from textual import events
from textual.widgets import DataTable, TabbedContent
from tui_world import KERNEL, NOW, app_on, until

from cudaperf_agent.store.repository import Store
from graph.config import GraphConfig
from graph.runner import run_task
from tui.app import CudaPerfApp
from tui.screens.run import TABS, RunScreen
from tui.session import LiveSession
from tui.widgets.timeline import Timeline

ENOUGH = 40
"""Keys to press."""
_SCHEDSTAT = Path("/proc/thread-self/schedstat")


class Watched(CudaPerfApp):
    """Notes every frame with what it shows; renders it to a terminal's bytes too, which a headless app leaves out."""

    seen: str = ""

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if hasattr(renderable, "render_segments"):
            renderable.render_segments(self.console)
            if isinstance(screen, RunScreen):
                tab = screen.query_one(TabbedContent).active
                self.seen = tab if tab in screen._painted else ""


def now() -> float:
    """Seconds, without those in which this thread was ready and other programs had the processor."""
    waited = int(_SCHEDSTAT.read_text().split()[1]) if _SCHEDSTAT.exists() else 0
    return time.perf_counter() - waited * 1e-9


async def until_seen(condition: Callable[[], bool], *, seconds: float = 5.0) -> None:
    """Look again after everything else on the loop has had its turn, so that the look costs the app nothing."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110 (an event would have to be set by the app)
        await asyncio.sleep(0)


async def test_sixteen_trajectories_at_full_speed_leave_the_app_responsive(store: Store, tmp_path: Path) -> None:
    """From key to repaint in under 100 ms (median; nine of ten under 300) while events pour in."""
    script = [candidate(f"correct {i + 1}e-4", i) + KERNEL for i in range(5)]
    deps = make_deps(ScriptedPolicy(script), DirectiveVerifier(), store, clock=Clock())
    config = GraphConfig(turns=5, trajectories=16, checkpointing=False, fixed_horizon=True)
    told = 0

    def start(on_event: Any, control: Any) -> Any:
        def count(event: Any) -> None:
            nonlocal told
            told += 1
            on_event(event)

        return run_task(saxpy_task(), deps, config, on_event=count, control=control, run_id="run-fast")

    app = Watched(store, session=LiveSession(start), export_to=tmp_path, now=lambda: NOW)
    waits: list[float] = []
    walls: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        names = list(TABS)
        while not screen._over and len(waits) < ENOUGH:
            number = (len(waits) + 1) % len(names)
            begun, wall = now(), time.perf_counter()
            app.post_message(events.Key(str(number + 1), str(number + 1)))  # as the terminal's driver does
            await until_seen(lambda shown=names[number]: app.seen == shown)
            waits.append(now() - begun)
            walls.append(time.perf_counter() - wall)
        await until(pilot, lambda: screen._over and not screen._dirty, seconds=40)
        assert screen.query_one(Timeline).row_count == 80
        keys = [k.value for k in screen.query_one(Timeline).rows]
        shown = [str(screen.query_one(Timeline).get_row(k)[0]) for k in keys if k]
        assert sorted(shown) == sorted(f"{t}.{n}" for t in range(1, 17) for n in range(1, 6))
    print(
        f"key to repaint: median {median(waits) * 1e3:.0f} ms, worst {max(waits) * 1e3:.0f} ms, {len(waits)} keys, "
        f"{told} events (with other programs: median {median(walls) * 1e3:.0f} ms, worst {max(walls) * 1e3:.0f} ms)"
    )
    assert len(waits) > 5
    assert median(waits) < 0.1
    assert sorted(waits)[len(waits) * 9 // 10] < 0.3


async def test_ten_thousand_runs_list_in_under_a_second(store: Store, tmp_path: Path) -> None:
    store.create_run(
        saxpy_task(), policy="variants", backend="emulator", config={}, trajectories=1, turns=5, created=NOW
    )
    with sqlite3.connect(store.path) as raw:
        copied = ", ".join(c[1] for c in raw.execute("PRAGMA table_info(runs)") if c[1] not in ("id", "created"))
        raw.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
            f"INSERT INTO runs (id, created, {copied}) SELECT 'x' || i, i, {copied} FROM runs, n"
        )
    app = app_on(store, tmp_path)
    begun = now()
    async with app.run_test(size=(120, 40)) as pilot:
        table = app.screen.query_one(DataTable)
        await until_seen(lambda: table.row_count > 0)
        spent = now() - begun
        await pilot.press("end")
        await until(pilot, lambda: table.row_count > 200)
    print(f"10,000 runs listed in {spent:.2f} s")
    assert spent < 1.0


@pytest.mark.parametrize("trajectories", [3])
async def test_rows_of_several_trajectories_stay_in_order(store: Store, tmp_path: Path, trajectories: int) -> None:
    deps = make_deps(ScriptedPolicy([candidate("wrong", i) for i in range(5)]), DirectiveVerifier(), store)
    config = GraphConfig(turns=5, trajectories=trajectories, checkpointing=False)

    def start(on_event: Any, control: Any) -> Any:
        return run_task(saxpy_task(), deps, config, on_event=on_event, control=control)

    app = app_on(store, tmp_path, session=LiveSession(start))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen._over and not screen._dirty)
        assert screen._chosen == Timeline.newest(screen.view)  # it has followed the run to its end
        table = screen.query_one(Timeline)
        places = [str(table.get_row_at(i)[0]) for i in range(table.row_count)]
    assert places == [f"{t}.{n}" for t in range(1, trajectories + 1) for n in range(1, 6)]
