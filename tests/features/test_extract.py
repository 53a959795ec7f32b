"""Extraction: the eleven from a source, with evidence, gaps and no exception."""

from __future__ import annotations

import math
from pathlib import Path

from cudaperf_agent.features.extract import extract
from cudaperf_agent.features.model import ORDER

GOLDEN = Path(__file__).parent / "golden"


def test_saxpy_gives_the_eleven_with_evidence() -> None:
    features = extract((GOLDEN / "saxpy.cu").read_text())
    assert tuple(features.values) == ORDER
    assert features["coal"] == 1.0
    assert features["ai"] == math.log1p(2 / 12)
    assert features["occ"] == 1.0
    assert features["tpb"] == 256.0
    assert features["gmem"] == math.log1p(3)
    assert not features.gaps
    assert {(e.feature, e.value) for e in features.evidence if e.line == 21} == {
        ("occ", 1),
        ("kernels", 1),
        ("tpb", 256),
    }
    assert {(e.text, e.value) for e in features.evidence if e.feature == "coal"} == {("y[i]", 1.0), ("x[i]", 1.0)}
