"""Parts of `benchmarks.verdicts_gpu`: what a GPU is needed for to say how good verdicts are."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

# The cheats lie among the tests, whose folder is no package: one called `tests` in some wheel would be found first.
_TESTS = str(Path(__file__).parents[2] / "tests")
_found = find_spec("tests")
if _found is None or _TESTS not in [str(Path(p)) for p in _found.submodule_search_locations or ()]:
    _ours = ModuleType("tests")
    _ours.__path__ = [_TESTS]
    sys.modules["tests"] = _ours
