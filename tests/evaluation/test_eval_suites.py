"""Suites: our own, folders of C and of pairs, and files of BabelTower's form."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from cudaperf_agent.errors import InputRefused, UsageError
from training.dataset.families import MEMBERS
from training.evaluation.suite import Suite
from training.evaluation.suites.babeltower import our_sizes
from training.evaluation.suites.find import find_suite
from training.evaluation.suites.own import HANDED, HELD_OUT, UNSEEN, VALIDATION
from training.splits import UNSEEN_FAMILIES, split_of

KERNELBENCH = Path(__file__).parents[1] / "cases" / "kernelbench"
BABELTOWER = Path(__file__).parents[1] / "cases" / "babeltower" / "four.jsonl"


def test_the_handed_files_in_the_package_are_those_of_the_tests(c_cases: Path) -> None:
    shipped = {p.name: p.read_text() for p in HANDED.glob("*.c")}
    assert shipped == {p.name: p.read_text() for p in c_cases.glob("*.c")}
    suite = find_suite("handed")
    assert [item.key for item in suite.items] == [f"handed/{Path(n).stem}" for n in sorted(shipped)]
    task = suite.items[0].load()
    assert (task.name, task.path) == ("black_scholes", "handed/black_scholes.c")


def test_held_out_is_what_may_not_be_learned_from_apart_by_kind() -> None:
    suite = find_suite("held-out")
    counts = Counter(item.group for item in suite.items)
    assert counts[UNSEEN] == len(UNSEEN_FAMILIES) * MEMBERS
    for item in suite.items:
        family, _, member = item.key.partition("/")[2].rpartition("-")
        assert item.family == family
        split = split_of(family, int(member))
        assert split == {UNSEEN: "unseen_family", HELD_OUT: "held_out_member"}[item.group]
    assert len({item.key for item in suite.items}) == len(suite.items)
    one = next(item for item in suite.items if item.family == "gram")
    assert one.load().name == "gram"


def test_validation_is_neither_learned_from_nor_held_out() -> None:
    suite = find_suite("validation")
    found = [item.key.partition("/")[2].rpartition("-") for item in suite.items]
    assert {split_of(family, int(member)) for family, _, member in found} == {"validation"}
    held_out = [item.family for item in find_suite("held-out").items if item.group == HELD_OUT]
    assert sorted(family for family, _, _ in found) == sorted(held_out), "every seen family has one"
    assert {item.group for item in suite.items} == {VALIDATION}
    assert "too good" in suite.notes[0]


def test_own_c_is_both() -> None:
    both = [item.key for item in find_suite("own-c").items]
    assert both == [item.key for name in ("handed", "held-out") for item in find_suite(name).items]


def test_a_limit_takes_of_every_group_in_turn_and_spans_families() -> None:
    some = find_suite("own-c").limited(12)
    assert Counter(item.group for item in some.items) == {"handed": 4, UNSEEN: 4, HELD_OUT: 4}
    assert len({item.family for item in some.items}) == 12
    assert "Limited to 12" in some.notes[-1]
    whole = find_suite("handed")
    assert whole.limited(None) is whole
    assert whole.limited(1000) is whole
    assert len(find_suite("own-c").limited(60).items) == 60


def test_the_order_of_work_spans_the_groups() -> None:
    suite = find_suite("own-c")
    order = suite.in_turn()
    assert sorted(i.key for i in order) == sorted(i.key for i in suite.items)
    assert [i.group for i in order[:6]] == ["handed", UNSEEN, HELD_OUT] * 2


def test_a_folder_of_c_files_and_pairs(tmp_path: Path, c_cases: Path) -> None:
    (tmp_path / "inner").mkdir()
    shutil.copy(c_cases / "saxpy.c", tmp_path)
    (tmp_path / "saxpy.cu").write_text("// by hand\n")
    shutil.copy(c_cases / "dot.c", tmp_path / "inner")
    (tmp_path / "unrelated.cu").write_text("// of nothing\n")
    suite = find_suite(str(tmp_path))
    assert [(i.key, i.group, i.hand) for i in suite.items] == [
        (f"{tmp_path.name}/saxpy", tmp_path.name, "// by hand\n"),
        ("inner/dot", "inner", ""),
    ]
    assert "1 of 2 tasks" in suite.notes[0]


def test_a_changed_file_changes_the_digest(tmp_path: Path) -> None:
    def digests() -> list[str]:
        return [i.digest for i in find_suite(str(tmp_path)).items]

    (tmp_path / "a.c").write_text("void a(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 0; }\n")
    first = digests()
    assert digests() == first
    (tmp_path / "a.cu").write_text("// by hand\n")
    second = digests()
    (tmp_path / "a.c").write_text("void a(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 1; }\n")
    assert len({first[0], second[0], digests()[0]}) == 3


def test_what_is_no_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no suite"):
        find_suite("nowhere")
    with pytest.raises(UsageError, match="no tasks"):
        find_suite(str(tmp_path))
    with pytest.raises(UsageError, match="no tasks"):
        find_suite(str(HANDED / "saxpy.c"))


def test_babeltower_entries_are_tasks_with_their_cuda_as_hand_written_kernel() -> None:
    suite = find_suite(str(BABELTOWER))
    assert [i.key for i in suite.items] == [f"four/{n}" for n in range(4)]
    first = suite.items[0]
    task = first.load()
    assert task.name == "scale_by"
    assert first.facts == {"its cases": 2, "its elements": 2.0}
    assert suite.items[1].facts == {"its cases": 3, "its elements": 4}
    assert 'extern "C" void scale_by(const float * a , float * b , float factor , int count)' in first.hand
    assert "scale_by_on_gpu(a, b, factor, count);" in first.hand
    with pytest.raises(InputRefused, match="pointer to a pointer"):
        suite.items[3].load()


def test_our_sizes_are_told_beside() -> None:
    task = find_suite("handed").items[[i.key for i in find_suite("handed").items].index("handed/saxpy")].load()
    sizes = our_sizes(task)
    assert sizes["our cases"] > 5
    assert sizes["our most"] > 1000


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON"),
        ("[1]", "id is missing"),
        ('{"id": 1, "cpp_code": "void f(void) {}"}', "cuda_code is missing"),
        (json.dumps(dict.fromkeys(("id", "cpp_code", "cuda_code", "cuda_wrapper"), "x") | {
            "consistent_cpp_inputs": [], "consistent_cuda_inputs": ["x"]}), "lists of texts"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_of_the_form_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(BABELTOWER.read_text() + line + "\n")
    with pytest.raises(UsageError, match=told) as refused:
        find_suite(str(path))
    assert refused.value.where == f"{path}:5"


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """Samples are grouped by it."""
    path = tmp_path / "twice.jsonl"
    path.write_text(BABELTOWER.read_text().splitlines()[0] + "\n" + BABELTOWER.read_text())
    with pytest.raises(UsageError, match="comes twice"):
        find_suite(str(path))


def test_a_kernelbench_folder_is_a_suite_with_its_levels_apart() -> None:
    suite = find_suite(str(KERNELBENCH))
    assert Counter(i.group for i in suite.items) == {"level1": 16, "level2": 4}
    assert [i.key for i in suite.items[:3]] == ["level1/1_ReLU", "level1/2_Sigmoid", "level1/3_LeakyReLU"]
    assert [i.key for i in suite.items][9] == "level1/10_Softmax"
    tasks = [item.load() for item in suite.items]
    assert all(t.mode == "module" and t.module is not None for t in tasks)
    assert len({t.digest for t in tasks}) == 20


def test_a_python_file_that_is_no_module_is_refused_as_a_task(tmp_path: Path) -> None:
    shutil.copy(KERNELBENCH / "level1" / "1_ReLU.py", tmp_path)
    (tmp_path / "2_broken.py").write_text("def (:\n")
    good, bad = find_suite(str(tmp_path)).items
    assert good.load().name == "Model"
    with pytest.raises(InputRefused, match="not Python"):
        bad.load()


def test_a_suite_of_nothing_is_limited_to_nothing() -> None:
    assert Suite("s", ()).limited(5).items == ()
