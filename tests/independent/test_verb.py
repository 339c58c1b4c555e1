"""`matchwood mis`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from matchwood.report import sketches
from support import run_verb, run_verb_json


@pytest.mark.parametrize("method", ["luby", "lexicographic", "luby_sampling"])
def test_mis(method: str, tmp_path: Path) -> None:
    out = tmp_path / "set.npz"
    words = ("mis", "rmat:7", "--method", method, "--rng", "4", "--check", "-o", str(out))
    found = run_verb_json(*words)
    A = matchwood.generators.rmat(7)
    members = matchwood.maximal_independent_set(A, method=method, rng=4)
    assert (found["vertices"], found["members"]) == (128, int(members.sum()))
    assert found["checked"] is True
    written = np.load(out)
    assert np.array_equal(written["member"], members)
    assert written["count"] == members.sum()


def test_mis_in_words(tmp_path: Path) -> None:
    text = run_verb("mis", "star:9", "--check", "-o", str(tmp_path / "set.csv")).stdout
    assert "8" in text
    assert "right" in text
    assert (tmp_path / "set.csv").read_text().startswith("vertex,member\n0,0\n1,1\n")


def test_mis_refuses_what_it_does_not_know() -> None:
    result = CliRunner().invoke(app, ["mis", "star:9", "--method", "greedy"])
    assert result.exit_code == 2


def test_the_picture() -> None:
    sketch = sketches.sketch_independent(80)
    assert len(sketch.drawings) == 2
    assert "members" in sketch.drawings[0].markup()
