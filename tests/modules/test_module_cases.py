"""Cases of a module: sizes within the budget and no smaller than the module takes, contents and layouts that differ."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.cli.report import assumptions
from cudaperf_agent.tasks.modules.cases import growth_cases, module_cases, shapes_of
from cudaperf_agent.tasks.modules.find import load_module_task
from cudaperf_agent.tasks.modules.spec import Dimension, InputSpec, ModuleSpec

ROWS = Dimension(2048, ((0, 0), (1, 0)))
COLUMNS = Dimension(1024, ((0, 1), (1, 1)), least=5)
INPUTS = (InputSpec("tensor", "f32", (2048, 1024)), InputSpec("tensor", "f32", (2048, 1024)))
SPEC = ModuleSpec("Model", inputs=INPUTS, dimensions=(ROWS, COLUMNS), strided=True, reduced=60, torch="2")


@pytest.mark.parametrize("hidden", [False, True])
def test_sizes_are_within_the_budget_and_together(hidden: bool) -> None:
    cases = module_cases(SPEC, hidden=hidden, seed=3)
    assert len({c.name for c in cases}) == len(cases)
    for case in cases:
        first, second = case.shapes
        assert first == second
        assert math.prod(first) <= 60 * 60
        assert first[1] >= 5
    assert len({c.shapes for c in cases}) >= (4 if hidden else 3)
    assert max(c.shapes[0][0] for c in cases) > 60
    assert max(c.shapes[0][1] for c in cases) > 60


def test_layouts_contents_and_repeated_buffers() -> None:
    visible, hidden = (module_cases(SPEC, hidden=h, seed=0) for h in (False, True))
    assert {c.layout for c in visible} == {"contiguous", "spaced"}
    assert {c.layout for c in hidden} == {"contiguous", "spaced", "transposed"}
    assert {"positive", "outlier", "zeros", "constant"} <= {c.contents for c in hidden}
    for cases in (visible, hidden):
        at = next(i for i, c in enumerate(cases) if c.over_previous)
        # New contents at the addresses of the call before: nothing else may have happened in between.
        assert cases[at].shapes == cases[at - 1].shapes
        assert cases[at].contents != cases[at - 1].contents


def test_another_seed_gives_other_hidden_sizes() -> None:
    made = [[c.shapes for c in module_cases(SPEC, hidden=True, seed=seed)] for seed in (0, 1)]
    assert made[0] != made[1]
    assert made[0] == [c.shapes for c in module_cases(SPEC, hidden=True, seed=0)]


def test_every_type_that_is_asked_for() -> None:
    spec = ModuleSpec("Model", inputs=INPUTS, dimensions=(ROWS, COLUMNS), reduced=60, dtypes=("f16", "bf16"), torch="2")
    cases = module_cases(spec, hidden=False, seed=0)
    assert {c.dtype for c in cases} == {"f16", "bf16"}
    assert {c.layout for c in cases} == {"contiguous"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("i64", "bool"), "element types i64, bool"),
        (("i64", "f32"), "element types f32"),
        (("f16", "f32"), "element types f16 (the file's own f32 is converted to it)"),
    ],
)
def test_the_types_that_people_are_told_of(given: tuple[str, ...], words: str) -> None:
    spec = ModuleSpec("Model", inputs=tuple(InputSpec("tensor", d, (4,)) for d in given), torch="2")
    text = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n        return x\n"
    task = replace(load_module_task(Path("m.py"), source=text, inputs="i64[4], i64[4]"), module=spec)
    assert any(a.endswith(words) for a in assumptions(task)), assumptions(task)


def test_the_files_own_sizes_are_tried_where_there_is_room() -> None:
    large = module_cases(SPEC, hidden=False, seed=0, elements=1 << 23)
    assert ((2048, 1024), (2048, 1024)) in {c.shapes for c in large}
    assert ((2048, 1024), (2048, 1024)) not in {
        c.shapes for c in module_cases(SPEC, hidden=False, seed=0, elements=100)
    }


def test_fixed_sizes_stay() -> None:
    fixed = ModuleSpec("Model", inputs=INPUTS, torch="2")
    assert {c.shapes for c in module_cases(fixed, hidden=True, seed=0)} == {((2048, 1024), (2048, 1024))}
    assert shapes_of(SPEC, (7, 1)) == ((7, 5), (7, 5))


def test_growth_is_asked_for_at_larger_sizes_without_results() -> None:
    cases = growth_cases(SPEC)
    assert all(c.probe for c in cases)
    assert {max(c.shapes[0]) for c in cases} == {300, 2500}
    assert not any(c.probe for c in module_cases(SPEC, hidden=True, seed=0))
    assert growth_cases(ModuleSpec("Model", inputs=INPUTS, torch="2")) == ()
