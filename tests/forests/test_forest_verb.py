"""`matchwood forest`: the same as in Python, as tables, JSON and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matchwood
from support import run_verb as run
from support import run_verb_json as run_json


def test_forest(tmp_path: Path) -> None:
    expected = matchwood.linear_forest(matchwood.generators.aniso(2, (9, 8)))
    out = tmp_path / "forest.npz"
    found = run_json("forest", "aniso:2,9x8", "--check", "-o", str(out))
    assert found["paths"] == expected.count
    assert found["cycles"] == len(expected.removed)
    assert found["coverage"] == pytest.approx(expected.coverage)
    assert found["checked"] is True
    assert set(found["seconds"]["phases"]) == {"factor", "paths", "cycles", "permutation"}
    with np.load(out) as written:
        for name in ("path", "position", "place"):
            assert np.array_equal(written[name], getattr(expected, name))


def test_table() -> None:
    words = ("forest", "aniso:2,9x8", "--method", "walk", "--ties", "hash", "-M", "9")
    text = run(*words).stdout
    assert "coverage" in text
    assert "longest path" in text


def test_short_flags() -> None:
    new = run_json("forest", "aniso:2,9x8", "--rounds", "2", "--rng", "3")
    old = run_json("forest", "aniso:2,9x8", "-M", "2", "--seed", "3")
    assert old["coverage"] == new["coverage"]
