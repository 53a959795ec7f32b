"""Who is at work on a run, or an evaluation: a lock of the process that goes with it, however the process ends.

One byte of a file beside the database stands for each run, locked as an open-file-description lock (Linux), so that two
claims conflict even within one process and nothing has to be cleaned up after a `kill -9`. What this does not cover:
a database on a network file system without locks, or processes on two machines.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cudaperf_agent.errors import StoreError

_FLOCK = "hhqqi0q"  # struct flock of 64-bit Linux: type, whence, start, length, process


@contextmanager
def claim(database: Path, run_id: str, refusal: StoreError | None = None) -> Iterator[None]:
    """Hold the run for the time of the block.

    Args:
        database: Whose run; the file of locks lies beside it.
        run_id: Of the run, or the name of what else is held.
        refusal: Raised where another process holds it, if it is no run.

    Raises:
        StoreError: Another process is at work on it, or the file of locks cannot be written.
    """
    path = _lock_file(database)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"the file of locks cannot be written: {error.strerror}", where=str(path)) from error
    try:
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _request(run_id))
        except BlockingIOError as error:
            raise refusal or StoreError(
                f"another process is at work on run {run_id}",
                where=str(database),
                hint=f"Watch it: cudaperf watch {run_id}; or stop that process, then resume.",
            ) from error
        yield
    finally:
        os.close(file)


def is_claimed(database: Path, run_id: str) -> bool:
    """Whether some process is at work on the run now."""
    path = _lock_file(database)
    if not path.exists():
        return False
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _request(run_id))
        return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(file)


def _lock_file(database: Path) -> Path:
    return database.with_name(database.name + "-claims")


def _request(run_id: str) -> bytes:
    byte = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:6], "big")
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
