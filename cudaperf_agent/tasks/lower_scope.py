"""What the lowering of one function knows: unique names, ranks of pointers, tables, callees, pending side effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import FileTable
from cudaperf_agent.tasks.model import CType

# C++ keywords that are names in C, and names that generated code has for itself.
_RESERVED = """
alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl concept const_cast constexpr
decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template this
thread_local throw true try typeid typename using virtual wchar_t xor xor_eq threadIdx blockIdx blockDim gridDim
warpSize stream result scratch
"""
_CPP_WORDS = frozenset(_RESERVED.split())


@dataclass
class Scope:
    """What the lowering of one function knows.

    Attributes:
        names: Unique name of each declaration, by the hash of its cursor.
        taken: Names in use in the function.
        rank: Number of indices of each pointer and array by unique name.
        kinds: Type of the elements of each pointer and array by unique name.
        tables: File-scope variables touched so far.
        called: Definitions of helpers called so far, by name.
        helper_names: What helpers are called that are not called as in the C.
        before, after: Statements that the side effects of the expression being lowered become; `None` where C
            evaluates an expression conditionally or repeatedly, so that nothing may be taken out of it.
    """

    names: dict[int, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    rank: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, CType] = field(default_factory=dict)
    tables: dict[str, FileTable] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)
    helper_names: Mapping[str, str] = field(default_factory=dict)
    before: list[ir.Stmt] | None = None
    after: list[ir.Stmt] | None = None

    def declare(self, cursor: Any) -> str:
        """A fresh name for a declaration, near to what was written."""
        wanted = f"{cursor.spelling}_" if cursor.spelling in _CPP_WORDS else cursor.spelling
        name = self.fresh(wanted)
        self.names[cursor.hash] = name
        return name

    def fresh(self, wanted: str) -> str:
        """An unused name."""
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name
