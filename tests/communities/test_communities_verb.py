"""`matchwood communities`."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from matchwood.cli import app
from support import run_verb, run_verb_json


@pytest.mark.parametrize("method", ["louvain", "leiden", "labels"])
def test_json(method, tmp_path):
    file = tmp_path / "labels.npz"
    words = ("communities", "grid:12x15", "--method", method, "--check", "-o", str(file))
    told = run_verb_json(*words)
    assert told["method"] == method
    assert told["vertices"] == 180
    assert told["checked"] is True
    assert 0 < told["modularity"] < 1
    stored = np.load(file)
    assert stored["label"].size == 180
    assert int(stored["count"]) == told["communities"]
    assert set(told["largest"][0]) == {"community", "vertices"}
    assert "components" not in told


def test_table():
    """It called communities components, and did not show their modularity."""
    shown = run_verb("communities", "path:30", "--top", "3").output
    assert "communities of path:30" in shown
    assert "modularity" in shown
    assert "component" not in shown


def test_tolerance():
    rough = run_verb_json("communities", "path:300", "--tolerance", "0.9")
    fine = run_verb_json("communities", "path:300")
    assert rough["communities"] > fine["communities"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "best"), "method must be one of"),
        (("--resolution", "-1"), "resolution must be"),
        (("--method", "labels", "--resolution", "2"), "resolution must be 1"),
        (("--method", "leiden", "--tolerance", "0.1"), "tolerance is for louvain"),
        (("--tolerance", "-1"), "tolerance must be"),
    ],
)
def test_errors(words, message):
    result = CliRunner().invoke(app, ["communities", "path:30", *words])
    assert result.exit_code == 2
    assert message in result.output
