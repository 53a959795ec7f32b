"""Random functions and their rewritten forms, compiled and run side by side: they give the same for the same inputs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cudaperf_agent.codegen.nests import symbols_of
from cudaperf_agent.codegen.printer import Printer
from cudaperf_agent.codegen.rewrites import CARRIED, LAST, STRAIGHT, applied
from cudaperf_agent.tasks.lower import lower_source
from cudaperf_agent.tasks.lowered import Module

from .random_loops import random_function

PROTOTYPE = "(int n, int m, const int *a, int *b)"
STAGES = {"lowered": (), "straight": STRAIGHT, "carried": CARRIED, "last": LAST}
COMPARE = """
#include <cstdio>
#include <cstring>
int main()
{
    const int sizes[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 3}, {5, 4}, {7, 7}, {3, 9}, {8, 2}};
    unsigned state = 12345;
    for (auto &size : sizes) {
        int a[512], start[512];
        for (int i = 0; i < 512; i++) {
            state = state * 1664525u + 1013904223u;
            a[i] = (int)(state >> 26) - 32;
            start[i] = (int)(state >> 16 & 31);
        }
        for (auto &row : table) {
            int want[512], got[512];
            memcpy(want, start, sizeof want);
            const int result = row.original(size[0], size[1], a, want);
            for (int form = 0; form < 4; form++) {
                memcpy(got, start, sizeof got);
                if (row.forms[form](size[0], size[1], a, got) != result || memcmp(got, want, sizeof got))
                    printf("seed %d form %d n %d m %d\\n", row.seed, form, size[0], size[1]);
            }
        }
    }
}
"""


def compared(seeds: range, folder: Path) -> tuple[int, str]:
    """How many functions were compared, and what differed."""
    originals, forms, rows, changed = ["#include <stddef.h>"], [], [], 0
    for seed in seeds:
        module = lower_source("#include <stddef.h>\n" + random_function(seed), "f")
        if not isinstance(module, Module):
            continue
        originals.append(random_function(seed, f"f{seed}"))
        made = {name: applied(module, stages).module.entry for name, stages in STAGES.items()}
        changed += made["straight"] != module.entry
        for name, entry in made.items():
            body = "\n".join(Printer(symbols_of(entry)).block(entry.body, 1))
            forms.append(f"static int f{seed}_{name}{PROTOTYPE}\n{{\n{body}\n}}")
        rows.append(f"{{{seed}, f{seed}, {{{', '.join(f'f{seed}_{name}' for name in STAGES)}}}}},")
    prototypes = [f'extern "C" int f{row[1:].split(",")[0]}{PROTOTYPE};' for row in rows]
    table = f"typedef int F{PROTOTYPE}; struct Row {{ int seed; F *original; F *forms[4]; }};"
    (folder / "original.c").write_text("\n".join(originals))
    text = [*prototypes, *forms, table, "static const Row table[] = {", *rows, "};", COMPARE]
    (folder / "forms.cpp").write_text("\n".join(text))
    flags = ["-w", "-O1", "-fwrapv"]
    subprocess.run(["gcc", *flags, "-c", "original.c"], cwd=folder, check=True)
    subprocess.run(["g++", *flags, "-o", "compare", "forms.cpp", "original.o"], cwd=folder, check=True)
    run = subprocess.run([folder / "compare"], capture_output=True, text=True, timeout=60, check=True)
    assert changed > len(rows) // 2
    return len(rows), run.stdout


def test_rewritten_forms_of_random_functions_give_the_same(tmp_path: Path) -> None:
    count, different = compared(range(20), tmp_path)
    assert different == ""
    assert count > 15


@pytest.mark.slow
def test_rewritten_forms_of_more_random_functions_give_the_same(tmp_path: Path) -> None:
    count, different = compared(range(1000, 1060), tmp_path)
    assert different == ""
    assert count > 50
