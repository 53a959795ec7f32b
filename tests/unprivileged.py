"""What a user without rights meets, also where the tests are run by root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """Without the rights of root; what is used in here has to be imported before."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
