"""The HTML report: whole, harmless, on its own; in a real browser where one is installed."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium import DESK, PHONE, Page, find_chromium
from tui_world import HOSTILE, make_run

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.store.repository import Store
from graph.replay import replay_events
from tui.report.html import html_report
from tui.report.markdown import markdown_report
from tui.report.pictures import roofline
from tui.run_view import RunView

PROFILE = {
    "flop_per_byte": 0.17,
    "flop_per_second": 5e11,
    "peak_bytes_per_second": 4.0e12,
    "peak_flop_per_second": 6e13,
}

SMALLEST_TYPE = (
    "Math.min(...[...document.querySelectorAll('body *')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
)


async def story(store: Store, *script: str, **options: object) -> RunView:
    run = await make_run(store, *([script] if script else []), **options)  # type: ignore[arg-type]
    return RunView.of(replay_events(store, run))


class Tags(HTMLParser):
    """Every element with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


async def test_the_page_tells_every_turn(store: Store) -> None:
    page = html_report(await story(store))
    for text in ("Turn 1", "compile error", "expected &#x27;;&#x27;", "y[3]", "10× [9, 11]", "Turn 4 ★", "Environment"):
        assert text in page, text
    assert "<span class=add>+    const int i" in page
    assert "Speedup against c, 95 % interval" in page


async def test_the_page_runs_nothing_and_asks_for_nothing(store: Store) -> None:
    hostile = HOSTILE + "</pre><script>alert(1)</script><img src=http://x/y onerror=alert(1)>\n"
    page = html_report(await story(store, hostile))
    tags = Tags()
    tags.feed(page)
    names = {name for name, _ in tags.found}
    assert not names & {"script", "img", "iframe", "object", "embed", "base", "form", "a"}
    for name, attributes in tags.found:
        assert not any(key.startswith("on") for key in attributes)
        assert "src" not in attributes
        assert attributes.get("href") in (None, "data:,"), name
    assert not {"\x1b", "\x07", "\u202e", "\u2066", "\0"} & set(page)
    assert len(page) < 200_000
    assert "url(" not in page


async def test_names_and_notices_are_escaped_too(store: Store) -> None:
    view = await story(store)
    view.task = view.policy = "<b>x</b>\x1b[31m\u202e"
    view.notices.append({"message": "<script>1</script> [red]\x07", "level": "warning"})
    page, text = html_report(view), markdown_report(view)
    assert "<b>x" not in page
    assert "<script" not in page
    assert "\\<b\\>x" in text
    assert not {"\x1b", "\x07", "\u202e"} & (set(page) | set(text))


async def test_without_a_gpu_no_time_is_told(store: Store) -> None:
    view = await story(store, backend="emulator")
    for text in (html_report(view), markdown_report(view)):
        assert "Nothing was timed: there was no GPU." in text
        assert "×" not in text


async def test_the_markdown_fences_what_holds_fences(store: Store) -> None:
    text = markdown_report(await story(store, "// correct 1e-4\n// ````\nint v;\n"))
    assert re.search(r"^`{5}cuda\n.*^`{5}$", text, re.S | re.M)


def test_the_roofline_needs_its_numbers() -> None:
    view = RunView(verdict=Verdict(Status.CORRECT, measured=True, profile=PROFILE))
    assert "74% of the limit" in roofline(view)  # 5e11 of 0.17 × 4e12
    for name in PROFILE:
        view.verdict = Verdict(Status.CORRECT, measured=True, profile={**PROFILE, name: None})
        assert roofline(view) == ""


async def test_the_roofline_makes_do_with_the_datasheet(store: Store) -> None:
    view = await story(store)
    assert view.verdict is not None
    assert view.best_turn is not None
    assert roofline(view) == ""
    profile = {"bytes_per_second": 3e12, "share_of_datasheet_bandwidth": 0.625, "ptxas": {"k": 1}}
    assert view.best_turn.verdict is not None
    view.best_turn.verdict = replace(view.best_turn.verdict, profile=profile)
    view.verdict = None
    page = html_report(view)
    assert "62% of the limit" in page
    assert "3 of the 4.8 TB/s in the datasheet" in page
    assert "arithmetic ceiling unknown" in page
    assert "share of datasheet bandwidth</td><td>62.5%" in page
    assert "ptxas" not in page
    # What was measured goes before what the datasheet says.
    measured = replace(view.best_turn.verdict, profile={**profile, "peak_bytes_per_second": 4e12})
    view.best_turn.verdict = measured
    assert "3 of the 4 TB/s that copying reaches" in html_report(view)
    assert "75% of the limit" in html_report(view)


@pytest.mark.slow
async def test_a_browser_shows_it_without_a_request_or_a_complaint(store: Store, tmp_path: Path) -> None:
    browser = find_chromium()
    if browser is None:
        pytest.skip("no Chromium is installed")
    pages = {"story": await story(store, run_id="run-story"), "hostile": await story(store, HOSTILE, run_id="run-bad")}
    verdict = pages["story"].verdict
    assert verdict is not None
    verdict.profile.update(PROFILE)
    with Page(browser) as page:
        for name, view in pages.items():
            path = tmp_path / f"{name}.html"
            path.write_text(html_report(view), encoding="utf-8", errors="replace")
            for size in (DESK, PHONE):
                page.open(path, size)
                page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
                assert page.value("document.documentElement.scrollWidth") <= size[0], (name, size)
                assert page.value(SMALLEST_TYPE) >= 12
                page.picture(tmp_path / f"{name}-{size[0]}.png")
        assert {r.split(":")[0] for r in page.requests} <= {"file", "data"}
        assert {r for r in page.requests if r.startswith("file")} == {
            (tmp_path / f"{name}.html").as_uri() for name in pages
        }
        assert page.complaints == []
