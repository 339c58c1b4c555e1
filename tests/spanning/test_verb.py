"""`matchwood mst`: tables, JSON and result files hold what Python returns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matchwood
from support import run_verb, run_verb_json


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "graph.csv"
    path.write_text("10,20,2.5\n20,30,0.5\n10,30,1.0\n40,50,4.0\n")
    return str(path)


def test_json() -> None:
    facts = run_verb_json("mst", "grid:8x9", "--check")
    assert (facts["vertices"], facts["edges"], facts["components"]) == (72, 71, 1)
    assert facts["checked"] is True
    assert (
        facts["total"] == matchwood.minimum_spanning_forest(matchwood.generators.grid((8, 9))).total
    )
    assert run_verb_json("mst", "grid:8x9", "--maximum", "--method", "kruskal")["edges"] == 71


def test_table(graph: str) -> None:
    text = run_verb("mst", graph, "--check").stdout
    assert "minimum spanning forest" in text
    assert "right" in text


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".txt", ".csv"])
def test_files(graph: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"forest{suffix}"
    run_verb("mst", graph, "--compact", "-o", str(path))
    edges = [[0, 2], [1, 2], [3, 4]]
    if suffix == ".npy":
        assert np.load(path).tolist() == edges
    elif suffix == ".npz":
        found = np.load(path)
        assert found["edges"].tolist() == edges
        assert found["weights"].tolist() == [1.0, 0.5, 4.0]
        assert found["id"].tolist() == [10, 20, 30, 40, 50]
    elif suffix == ".txt":
        assert path.read_text() == "0 2 1.0\n1 2 0.5\n3 4 4.0\n"
    else:
        assert path.read_text() == "u,v,weight\n10,30,1.0\n20,30,0.5\n40,50,4.0\n"
