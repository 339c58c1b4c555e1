"""`matchwood match|factor|components --devices ...`: the answers, and the file of statistics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from simulated_devices import simulated
from support import run_verb_json as run_json

GRAPH = "delaunay:n=60,seed=2"


@pytest.mark.slow
def test_the_three_verbs(tmp_path: Path) -> None:
    words = ["--devices", "0,0", "--memory", "1MiB", "--batches", "3"]
    for verb in ("match", "factor", "components"):
        kind = np.float32 if verb == "factor" else np.float64  # for which others compile it, too
        A = matchwood.generators.delaunay(60, rng=2, dtype=kind)
        given = tmp_path / f"{verb} of.npz"
        matchwood.io.write(given, A)
        stats = tmp_path / f"{verb}.json"
        out = tmp_path / f"{verb}.npz"
        with simulated(8 << 20):
            run_json(verb, str(given), *words, "--stats", str(stats), "--check", "-o", str(out))
        told = json.loads(stats.read_text())
        assert told["devices"] == [0, 0]
        assert told["batches"] == [3, 3]
        assert told["rounds"][0]["entries"] > 0
        found = np.load(out)
        if verb == "match":
            expected = matchwood.weighted_matching(A).mate
            np.testing.assert_array_equal(found["mate"], expected)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--memory", "1MiB"], "--memory needs --devices"),
        (["--batches", "3"], "--batches needs --devices"),
        (["--stats", "x.json"], "--stats needs --devices"),
        (["--devices", "0", "--engine", "cpu"], "cannot both be given"),
        (["--devices", "zero"], "must be numbers with commas"),
        (["--devices", ""], "must be numbers with commas"),
        (["--devices", "0", "--memory", "much"], "memory must be bytes or text"),
        (["--devices", "9"], "there is no device 9"),
    ],
)
def test_what_is_refused(words: list[str], told: str) -> None:
    with simulated(1 << 20):
        result = CliRunner().invoke(app, ["match", GRAPH, *words])
    assert result.exit_code != 0
    said = " ".join((result.output + str(result.exception)).split())
    assert told in said.replace("│ ", "").replace(" │", "")
