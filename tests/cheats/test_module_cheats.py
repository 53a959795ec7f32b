"""No PyTorch cheat is rewarded: each file of `modules/` is scored as failed, or as the honest work that it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.find import load_module_task
from cudaperf_agent.tasks.modules.spec import ModuleMode

from .module_files import HERE, ModuleAttempt, module_attempts

pytest.importorskip("torch", reason="PyTorch is not installed")


class Bench:
    """One verifier for all files, with each module described once."""

    def __init__(self) -> None:
        self.verifier = Verifier(VerifierConfig(), gpu=None)
        self._tasks: dict[tuple[str, str], Task] = {}

    async def task(self, name: str, mode: str) -> Task:
        if (name, mode) not in self._tasks:
            loaded = load_module_task(HERE / "tasks" / f"{name}.py", mode=cast(ModuleMode, mode))
            self._tasks[name, mode] = await self.verifier.modules.reference.described(loaded)
        return self._tasks[name, mode]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.verifier.aclose()


@pytest.mark.slow  # all of them together
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("attempt", [a for a in module_attempts() if a.emulated], ids=lambda a: a.name)
async def test_a_cheat_in_a_module_is_not_rewarded(attempt: ModuleAttempt, bench: Bench) -> None:
    task = await bench.task(attempt.task, attempt.mode)
    verdict = await bench.verifier.test(task, attempt.source, hidden=attempt.hidden)
    assert verdict.status in attempt.expected, f"{attempt.what}: {verdict.status}: {verdict.message}"
    if verdict.status != "correct":
        assert verdict.message


REACHES = {
    "pasted": ("#define P(a, b) a##b", 'P(get, env)("X")'),
    "by its address": ("static char *(*const f)(const char *) = getenv;", 'f("X")'),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", REACHES)
async def test_a_name_is_found_however_the_cuda_of_a_module_hides_it(name: str, bench: Bench) -> None:
    declared, call = REACHES[name]
    text = (HERE / "00_honest.py").read_text().replace("    if (n > 0)", f"    if (n > 0 || {call})")
    text = text.replace("#include <cuda_runtime.h>", f"#include <cuda_runtime.h>\n#include <cstdlib>\n{declared}")
    line = text[: text.index("P(get" if name == "pasted" else "getenv")].count("\n") + 1
    verdict = await bench.verifier.test(await bench.task("affine_relu", "pure-cuda"), text)
    assert verdict.status == "cheat"
    assert verdict.message.startswith(f"line {line}: a translation has no use for `getenv`")


def test_rows_of_the_list_that_are_about_modules_are_tried() -> None:
    rows = {attempt.row for attempt in module_attempts()}
    assert rows >= {1, 2, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 18, 19, 20, 23, 24, 26, 27, 28, 36}
