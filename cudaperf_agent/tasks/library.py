"""What is known of the C library: which functions compute, which copy, and which reach outside the program."""

from __future__ import annotations

COPIES = frozenset({"memcpy", "memmove", "__builtin_memcpy", "__builtin_memmove"})
"""``f(to, from, bytes)``."""

FILLS = frozenset({"memset", "__builtin_memset"})
"""``f(to, value, bytes)``."""

READERS = frozenset({"memcmp", "strlen", "strcmp", "strncmp", "strchr", "strrchr", "memchr", "free", "strnlen"})
"""Functions that change nothing behind their pointer arguments."""
