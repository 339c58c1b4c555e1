"""`matchwood scc`, and the picture of strong components."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from matchwood.report import sketches
from strong_graphs import chain_of_cycles
from support import run_verb, run_verb_json


@pytest.fixture
def chain(tmp_path: Path) -> str:
    path = tmp_path / "chain.mtx"
    scipy.io.mmwrite(path, chain_of_cycles(5, 3, backwards=True).tocoo())
    return str(path)


@pytest.mark.parametrize("method", ["auto", "multistep"])
def test_scc(chain: str, method: str, tmp_path: Path) -> None:
    out = tmp_path / "labels.npz"
    found = run_verb_json("scc", chain, "--method", method, "--check", "-o", str(out))
    assert (found["vertices"], found["components"], found["trivial"]) == (15, 5, 0)
    assert found["largest"][0] == {"component": 0, "vertices": 3}
    assert (found["checked"], found["ordered"]) == (True, False)
    assert np.load(out)["label"].tolist() == [v // 3 for v in range(15)]


def test_scc_in_topological_order(chain: str, tmp_path: Path) -> None:
    out = tmp_path / "labels.npz"
    found = run_verb_json("scc", chain, "--ordered", "--check", "-o", str(out))
    assert found["ordered"] is True
    assert np.load(out)["label"].tolist() == [4 - v // 3 for v in range(15)]


def test_scc_in_words(chain: str) -> None:
    text = run_verb("scc", chain, "--check", "--top", "2").stdout
    assert "right" in text
    assert "20.0%" in text


def test_scc_refuses_what_it_does_not_know(chain: str) -> None:
    for words in (["--method", "kosaraju"], ["--method", "propagation"]):
        assert CliRunner().invoke(app, ["scc", chain, *words]).exit_code == 2


def test_the_picture() -> None:
    sketch = sketches.sketch_strong(120)
    assert len(sketch.drawings) == 2
    assert "strong components" in sketch.drawings[0].markup()


def test_one_way_streets() -> None:
    A = matchwood.generators.grid((6, 6))
    none, all_ = sketches.one_way(A, 0.0), sketches.one_way(A, 1.0)
    assert (none.nnz, all_.nnz) == (A.nnz // 2, A.nnz)
    assert (none + none.T).nnz == A.nnz
