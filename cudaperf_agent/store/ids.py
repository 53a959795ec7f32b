"""Run ids: ten characters that sort by time, are easy to read aloud, and rarely meet."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: without i, l, o and u
_EPOCH = 1_735_689_600  # 2025-01-01, in Unix seconds
_TICKS_PER_SECOND = 32
_TIME_CHARACTERS = 7
_RANDOM_CHARACTERS = 3


def new_run_id(now: float) -> str:
    """Seven characters of time (1/32 s, good until 2059) and three of chance.

    Args:
        now: Unix time in seconds.
    """
    ticks = max(0, int((now - _EPOCH) * _TICKS_PER_SECOND))
    return _digits(ticks, _TIME_CHARACTERS) + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_CHARACTERS))


def _digits(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, rest = divmod(number, len(_ALPHABET))
        text = _ALPHABET[rest] + text
    return text
