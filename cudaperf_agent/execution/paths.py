"""Where things lie on the user's machine: one place that decides, so that tests can point it elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Things that can be made again: compiled runners, emulator runtimes, converted weights.

    ``CUDAPERF_CACHE_DIR`` overrides it.
    """
    return _folder("CUDAPERF_CACHE_DIR", platformdirs.user_cache_path("cudaperf"))


def data_dir() -> Path:
    """Things that are kept: the store and the checkpoints. ``CUDAPERF_DATA_DIR`` overrides it."""
    return _folder("CUDAPERF_DATA_DIR", platformdirs.user_data_path("cudaperf"))


def config_dir() -> Path:
    """The user's configuration. ``CUDAPERF_CONFIG_DIR`` overrides it."""
    return _folder("CUDAPERF_CONFIG_DIR", platformdirs.user_config_path("cudaperf"))


def _folder(variable: str, default: Path) -> Path:
    override = os.environ.get(variable)
    return Path(override).expanduser().absolute() if override else default
