"""Rules from ATen operators to the tensor IR; one module per kind of operator."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

_MODULES = ("elementwise", "activations", "layout", "reductions", "normalise", "linear", "windows", "lookups")


@lru_cache(maxsize=1)
def load_rules() -> None:
    """Registers all rules."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
