"""Rows: programs that the generator translates, nothing of an evaluation set, prompts as the graph writes them."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.policies.parse_answer import parse_answer
from cudaperf_agent.policies.prompts import PromptConfig, build_messages
from cudaperf_agent.tasks.parse import load_task
from training.dataset.families import FAMILIES
from training.sft.augment import SEEN, written_anew
from training.sft.faults import with_a_fault
from training.sft.likeness import evaluation_sets, exact_form
from training.sft.programs import write_program
from training.sft.repairs import SHIPPED, read_attempts
from training.sft.rows import Row, RowsConfig, build_rows, read_rows, repair_rows, rows_of, write_rows
from training.sft.twins import renamed
from training.splits import UNSEEN_FAMILIES, split_of

CONFIG = RowsConfig(programs=10, twins=0, improve=0.5, second=0.5)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(build_rows(CONFIG, []))


def c_of(row: Row) -> str:
    found = re.search(r"```c\n(.*?)\n```", row.user, re.DOTALL)
    assert found is not None
    return found[1] + "\n"


def entry_of(row: Row) -> str:
    found = re.search(r"^Entry: `(\w+)`", row.user, re.MULTILINE)
    assert found is not None
    return found[1]


def test_a_seed_always_gives_the_same_program() -> None:
    assert write_program(5) == write_program(5)
    assert len({write_program(seed).source for seed in range(60)}) == 60
    family = SEEN[3]
    assert written_anew(family, 9) == written_anew(family, 9)
    assert len({written_anew(family, seed).source for seed in range(12)}) > 6


def test_random_programs_are_c_that_the_generator_translates() -> None:
    made = [write_program(seed) for seed in range(900, 916)]
    translated = [generate(load_task(source=w.source, entry=w.entry)).naive is not None for w in made]
    assert sum(translated) >= 15


def test_families_written_anew_are_translated_too() -> None:
    for family in SEEN[::9]:
        written = written_anew(family, 31)
        assert generate(load_task(source=written.source, entry=written.entry)).naive is not None, family.name


def test_unseen_families_are_not_among_those_that_are_learned_from() -> None:
    assert not UNSEEN_FAMILIES & {family.name for family in SEEN}
    assert len(SEEN) + len(UNSEEN_FAMILIES) == len(FAMILIES)


def test_evaluation_members_are_recognised_under_other_names() -> None:
    kept = evaluation_sets()
    for family in FAMILIES[::7]:
        for member in (0, 7):
            source = family.program(member).source
            body = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
            disguised = re.sub(r"\bi\b", "some_counter", re.sub(rf"\b{family.name}\b", "other", body))
            if split_of(family.name, member) != "train":
                assert kept.out(disguised), (family.name, member)


def test_a_training_member_is_not_kept_out_for_its_style() -> None:
    family = next(f for f in SEEN if f.name == "axpy_shift")
    assert not evaluation_sets().out(family.program(2).source)


def test_the_exact_form_ignores_names_and_layout_but_no_numbers() -> None:
    assert exact_form("int f(int a) { return a + 1; } // x") == exact_form("int g(int b)\n{ return b + 1; }")
    assert exact_form("int f(int a) { return a + 1; }") != exact_form("int f(int a) { return a + 2; }")


def test_nothing_that_is_learned_is_a_handed_in_case_or_of_an_evaluation_set(rows: list[Row]) -> None:
    cases = {exact_form(p.read_text()) for p in Path("tests/cases/c").glob("*.c")}
    for row in [*rows, *(r for a in list(read_attempts(SHIPPED))[:12] for r in repair_rows(a, CONFIG))]:
        assert exact_form(c_of(row)) not in cases
        assert not evaluation_sets().out(c_of(row))


def test_a_task_row_is_the_graphs_own_prompt_and_an_answer_that_parses(rows: list[Row]) -> None:
    firsts = [row for row in rows if row.kind == "task"]
    assert len(firsts) >= 10
    for row in firsts[:6]:
        task = load_task(source=c_of(row), entry=entry_of(row))
        system, user = build_messages(task, config=PromptConfig.compact())
        assert (row.system, row.user) == (system.content, user.content)
        parsed = parse_answer(row.answer, name=task.name)
        assert parsed.source is not None
        made = {variant.strategy: variant.source for variant in generate(task).variants}
        same_code = [source for source in made.values() if source.split("\n", 1)[1] == parsed.source.split("\n", 1)[1]]
        assert same_code, row.strategy


def test_improving_rows_show_a_plainer_variant_with_its_features(rows: list[Row]) -> None:
    improving = [row for row in rows if row.kind == "improve"]
    assert improving
    for row in improving:
        assert "# Best attempt so far\n```cuda\n" in row.user
        assert "Your candidate is correct" in row.user
        assert "Structure: coal=" in row.user
        assert row.answer.split("\n", 2)[2] not in row.user


def test_more_rows_are_of_strategies_that_come_first() -> None:
    seeds = range(4000, 4024)
    flat = RowsConfig(twins=0, improve=0, second=0, steepness=0, uncommented=0)
    steep = RowsConfig(twins=0, improve=0, second=0, steepness=4, uncommented=0)
    last = [sum(r.strategy in ("naive", "unroll4") for s in seeds for r in rows_of(s, c)) for c in (flat, steep)]
    assert last[1] < last[0]


def test_a_twin_is_the_translation_of_the_renamed_c(rows: list[Row]) -> None:
    compared = 0
    for row in [r for r in rows if r.kind == "task"][:9]:
        twin = renamed(row, 0)
        if twin is None:
            continue
        assert twin == renamed(row, 0)
        assert twin.user != row.user
        task = load_task(source=c_of(twin), entry=entry_of(twin))
        assert build_messages(task, config=PromptConfig.compact())[1].content == twin.user
        made = {v.strategy: f"```cuda\n{v.source.strip()}\n```" for v in generate(task).variants}
        if twin.strategy in made:
            compared += 1
            # The generator sets a `_` behind a name that it wants for itself.
            assert _bare(made[twin.strategy]) == _bare(twin.answer)
    assert compared >= 4


def _bare(text: str) -> str:
    return re.sub(r"(?<=\w)_(?=\W)", "", text)


def test_only_first_turns_have_twins(rows: list[Row]) -> None:
    assert all(renamed(row, 0) is None for row in rows if row.kind != "task")


def test_shipped_attempts_hold_real_verdicts_and_become_rows() -> None:
    attempts = list(read_attempts(SHIPPED))
    assert len(attempts) >= 300
    statuses = {a["status"] for a in attempts}
    assert {"correct", "wrong", "memory_error", "compile_error"} <= statuses
    broken = next(a for a in attempts if a["status"] == "compile_error")
    mended = repair_rows(broken, RowsConfig())
    assert mended
    assert "Your candidate does not compile" in mended[0].user
    assert broken["attempt"].strip() in mended[0].user
    assert mended[0].answer == f"```cuda\n{broken['answer'].strip()}\n```"


def test_a_fault_changes_one_place_of_the_code() -> None:
    task = load_task(Path("tests/cases/c/saxpy.c"))
    source = generate(task).variants[0].source
    made = [with_a_fault(source, random.Random(seed)) for seed in range(40)]
    assert all(one is not None and one.source != source for one in made)
    assert len({one.fault for one in made if one is not None}) > 8


def test_rows_survive_their_file_and_do_not_depend_on_workers(rows: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    assert write_rows(path, rows) == len(rows)
    assert read_rows(path) == rows
    assert list(build_rows(CONFIG, [], workers=2)) == rows
