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
    assert int(stored["count"]) == told["components"]


def test_table():
    assert "communities of path:30" in run_verb("communities", "path:30", "--top", "3").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "best"), "method must be one of"),
        (("--resolution", "-1"), "resolution must be"),
        (("--method", "labels", "--resolution", "2"), "resolution must be 1"),
    ],
)
def test_errors(words, message):
    result = CliRunner().invoke(app, ["communities", "path:30", *words])
    assert result.exit_code == 2
    assert message in result.output
