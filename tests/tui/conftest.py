"""A store per test, and the helpers of `tui_world` on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("textual", reason="the tui extra is not installed")

from cudaperf_agent.store.repository import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'runs.sqlite'}") as opened:
        yield opened
