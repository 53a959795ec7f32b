"""From what the user names to the suite."""

from __future__ import annotations

from pathlib import Path

from cudaperf_agent.errors import UsageError
from training.evaluation.suite import Suite
from training.evaluation.suites.babeltower import babeltower_suite
from training.evaluation.suites.folder import c_suite
from training.evaluation.suites.own import handed, held_out, own_c, validation

OWN = {"own-c": own_c, "held-out": held_out, "handed": handed, "validation": validation}
_FORMS = (
    f"{', '.join(OWN)}, a folder of .c files (with .cu files beside them), a folder of PyTorch modules (KernelBench), "
    "or a .jsonl file of BabelTower"
)


def find_suite(name: str) -> Suite:
    """The suite of a name or a path.

    Raises:
        UsageError: There is no such suite, or it holds no task.
    """
    if name in OWN:
        return OWN[name]()
    path = Path(name)
    if not path.exists():
        raise UsageError(f"there is no suite `{name}`", where="--suite", hint=f"one of {_FORMS}")
    suite = _from(path)
    if suite is None or not suite.items:
        raise UsageError("no tasks are there", where=name, hint=f"a suite is {_FORMS}")
    return suite


def _from(path: Path) -> Suite | None:
    if path.is_dir():
        suite = c_suite(path)
        # Imported where it is needed: a suite of C files needs nothing of PyTorch.
        if not suite.items and any(path.rglob("*.py")):
            from training.evaluation.suites.modules import module_suite

            return module_suite(path)
        return suite
    return babeltower_suite(path) if path.suffix in (".jsonl", ".ndjson") else None
