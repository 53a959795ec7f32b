"""The report's forms: nothing in a page asks for anything from anywhere, nothing untrusted is markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

from eval_facts import evaluation, example, fails, right, task, turn

from training.evaluation.compare import compare, comparison_document
from training.evaluation.document import markdown_document, text_document
from training.evaluation.estimates import EstimateConfig
from training.evaluation.facts import Evaluation, TaskFacts
from training.evaluation.intervals import BootstrapConfig
from training.evaluation.page import html_document
from training.evaluation.sections import UNTIMED, document, side_by_side

QUICK = EstimateConfig(bootstrap=BootstrapConfig(resamples=200))
HOSTILE = "<script>alert(1)</script> <img src=http://example.org/x> \x1b[31m`|*\u202e"


class Links(HTMLParser):
    """Every tag, and every attribute that could make a browser ask for something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        asking = {"src", "href", "srcset", "action", "data", "poster", "background", "xlink:href", "style"}
        self.targets += [value or "" for name, value in attrs if name in asking or name.startswith("on")]


def many() -> Evaluation:
    """Enough trajectories for every section and picture."""
    outcomes = [
        right(2 + i, 2, 0.5, turn("correct", 1.0 + i), turn("correct", 2.0 + i), number=i)
        if i % 3
        else fails("wrong", turn("wrong"), turn("wrong"), number=i)
        for i in range(8)
    ]
    tasks = [task(f"t{i}", *outcomes, family=f"f{i % 4}", hand=right(1, 1, 0.4)) for i in range(8)]
    return evaluation(*tasks, n=8)


def test_a_page_makes_no_request_and_runs_nothing() -> None:
    page = html_document(document([many(), example()], QUICK))
    found = Links()
    found.feed(page)
    assert found.targets == ["data:,"]
    assert not found.tags & {"script", "iframe", "object", "embed", "img", "audio", "video", "base", "form"}
    assert "svg" in found.tags
    assert not re.search(r"url\(|@import|https?:|//[a-z]", page)
    assert "default-src 'none'" in page


def test_pictures_are_whole_and_show_what_the_tables_say() -> None:
    sections = document([many()], QUICK).sections
    pictures = [p for s in sections for p in s.pictures]
    assert len(pictures) == 2
    curve, budget = (ElementTree.fromstring(p) for p in pictures)
    (line,) = curve.findall("polyline")
    assert len((line.get("points") or "").split()) == 8
    assert len(budget.findall("polyline")) == 2
    assert "single samples" in "".join(budget.itertext())
    inside = [tuple(map(float, at.split(","))) for at in (line.get("points") or "").split()]
    assert all(0 <= x <= 420 and 0 <= y <= 240 for x, y in inside)
    heights = [y for _, y in inside]
    assert heights == sorted(heights, reverse=True)  # pass@k grows with k


def test_what_comes_from_outside_is_no_markup() -> None:
    refused = TaskFacts(f"g/{HOSTILE}", "g", HOSTILE, refused=HOSTILE)
    made = replace(example(), name=HOSTILE, policy=HOSTILE, tasks=(*example().tasks, refused), notes=(HOSTILE,))
    page = html_document(document([made], QUICK))
    found = Links()
    found.feed(page)
    assert found.targets == ["data:,"]
    assert not found.tags & {"script", "img"}
    markdown = markdown_document(document([made], QUICK))
    assert "<script" not in re.sub(r"\\<", "", markdown)
    assert "\\`\\|\\*" in markdown
    for text in (page, markdown, text_document(document([made], QUICK))):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_every_part_is_told() -> None:
    text = text_document(document([many()], QUICK))
    for part in ("pass@1", "pass@5", "speed@1", "raw speed@1", "fast_1.5", "headroom", "by family", "single samples"):
        assert part in text
    assert "8 of 8 hand-written kernels pass" in text
    assert "Failed trajectories by their last verdict" in text
    assert "4 families are the independent units" in text
    limit = next(line for line in text.splitlines() if line.startswith("  speed of light"))
    assert limit.split()[3:] == ["8", "–", "–", "–", "–", "–", "–", "0.5×", "40", "100.0", "%"]
    markdown = markdown_document(document([many()], QUICK))
    assert markdown.count("\n| ") > 20


def test_where_nothing_was_timed_there_is_no_speed_and_a_sentence_says_why() -> None:
    plain = replace(many(), backend="emulator", device="CPU emulator")
    bare = tuple(
        replace(
            t,
            hand=None,
            outcomes=tuple(
                replace(
                    o,
                    speedups={},
                    seconds=None,
                    turns=tuple(replace(u, speedups={}, seconds=None) for u in o.turns),
                )
                for o in t.outcomes
            ),
        )
        for t in plain.tasks
    )
    text = text_document(document([replace(plain, tasks=bare)], QUICK))
    assert UNTIMED in text
    assert "speed@" not in text
    assert "fast_" not in text
    assert "×" not in text.replace(" × 2 turns", "")


def test_what_is_missing_is_said() -> None:
    unfinished = TaskFacts("g/z", "g", "g/z")
    broken = task("y", fails("error"), fails("error", number=1))
    made = replace(example(), tasks=(*example().tasks, unfinished, broken))
    text = text_document(document([made], QUICK))
    assert "Incomplete: 1 of 6 tasks" in text
    assert "2 trajectories were stopped by an error" in text
    assert "counted as failures, pass@1 is 30.0 %" in text  # of four tasks 37.5 %, times 4/5
    assert "d.c:1: it is recursive" in text
    assert "2 tasks that no trajectory solved" in text


def test_several_evaluations_are_set_side_by_side() -> None:
    other = replace(many(), name="other", policy="another")
    text = text_document(document([many(), other], QUICK))
    assert "SIDE BY SIDE" in text
    first = text.index("SIDE BY SIDE")
    rows = [line.split()[0] for line in text[first:].splitlines() if line.startswith("  ")][:3]
    assert rows == ["evaluation", "e", "other"]


def test_side_by_side_on_the_tasks_that_all_have_finished() -> None:
    whole = evaluation(*(task(n, right(8, 4, 1)) for n in "abcd"), n=1)
    part = evaluation(*(task(n, fails("wrong")) for n in "cd"), task("e", right(2, 1, 1)), n=1, name="part")
    (section,) = side_by_side([whole, part], QUICK)
    own, common = section.tables
    assert [row[:2] for row in own.rows] == [("e", "4"), ("part", "3")]
    assert common.title == "g: 2 tasks that all have finished"
    assert [row[:2] for row in common.rows] == [("e", "2"), ("part", "2")]
    assert common.rows[1][3].startswith("0.0 %")
    # Nothing twice: with the same tasks there is one table, and a changed task is not the same.
    (same,) = side_by_side([whole, replace(whole, name="again")], QUICK)
    assert len(same.tables) == 1
    changed = replace(part, tasks=tuple(replace(t, digest="other") for t in part.tasks))
    (none,) = side_by_side([whole, changed], QUICK)
    assert len(none.tables) == 1


def test_two_of_one_name_are_two_rows() -> None:
    whole = evaluation(*(task(n, right(8, 4, 1)) for n in "ab"), n=1)
    wrong = evaluation(*(task(n, fails("wrong")) for n in "ab"), n=1)
    (section,) = side_by_side([whole, wrong], QUICK)
    assert [row[3].split(" [")[0] for row in section.tables[0].rows] == ["100.0 %", "0.0 %"]


def test_a_comparison_is_told() -> None:
    other = replace(many(), name="f", tasks=many().tasks[:5])
    found = compare(many(), other, QUICK)
    text = text_document(comparison_document(found))
    assert "e against f" in text
    assert "3 tasks are finished in one evaluation only" in text
    assert "common-correct mean" in text
    assert "1× [1, 1]" in text
