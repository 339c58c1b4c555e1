"""`matchwood match`, `factor` and `coarsen`: the answers of the functions, as tables and files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from support import NO_RUSTWORKX
from support import run_verb as run
from support import run_verb_json as run_json

GRAPH = "delaunay:n=60,seed=2"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with weights of 64 bits: for these most other tests compile the methods."""
    path = tmp_path_factory.mktemp("graphs") / "delaunay.npz"
    matchwood.io.write(path, matchwood.generators.delaunay(60, rng=2, dtype=np.float64))
    return str(path)


def test_match(tmp_path: Path) -> None:
    A = matchwood.generators.delaunay(60, rng=2)
    expected = matchwood.weighted_matching(A)
    facts = run_json("match", GRAPH, "--check", "-o", str(tmp_path / "mate.npy"))
    assert facts["edges"] == expected.cardinality
    assert facts["checked"] is True
    assert 0.5 <= facts["quality"] <= 1
    np.testing.assert_array_equal(np.load(tmp_path / "mate.npy"), expected.mate)
    text = run("match", GRAPH, "--method", "greedy", "--check").stdout
    assert "at least" in text
    assert "right" in text


@pytest.mark.parametrize("method", ["proposal", "serial"])
def test_maximal(method: str) -> None:
    facts = run_json("match", GRAPH, "--method", method, "--check", "--rng", "3")
    assert facts["method"] == method
    assert facts["weight"] == facts["edges"]
    by_degree = run_json("match", GRAPH, "--method", method, "--check", "--prefer", "degree")
    A = matchwood.generators.delaunay(60, rng=2)
    expected = matchwood.maximal_matching(A, method=method, prefer="degree")
    assert by_degree["edges"] == expected.cardinality
    assert CliRunner().invoke(app, ["match", GRAPH, "--prefer", "degree"]).exit_code == 2
    for unread in (("--method", method), ("--maximum",)):  # was ignored
        result = CliRunner().invoke(app, ["match", GRAPH, *unread, "--ties", "index"])
        assert result.exit_code == 2
        assert "--ties is for heavy matchings" in " ".join(result.stderr.split())


def test_factor(tmp_path: Path) -> None:
    facts = run_json(
        "factor", "aniso:2,9x9", "-n", "2", "--check", "-o", str(tmp_path / "near.csv")
    )
    assert 0.5 < facts["coverage"] < 1
    lines = (tmp_path / "near.csv").read_text().splitlines()
    assert lines[0] == "vertex,neighbour1,neighbour2"
    assert len(lines) == 82
    whole = run_json("factor", "aniso:2,9x9", "--rounds", "0")
    assert whole["maximal"] is True
    assert "of the weight" in run("factor", "path:9", "--method", "greedy").stdout


def test_coarsen(tmp_path: Path) -> None:
    facts = run_json(
        "coarsen", "star:200", "--until", "5",
        "-o", str(tmp_path / "part.npy"), "--coarsest", str(tmp_path / "last.mtx"),
    )  # fmt: skip
    assert facts["sizes"][0] == 200
    assert facts["sizes"][-1] <= 5
    part = np.load(tmp_path / "part.npy")
    assert part.shape == (200,)
    assert part.max() == facts["sizes"][-1] - 1
    assert matchwood.io.read(tmp_path / "last.mtx").shape == (facts["sizes"][-1],) * 2
    assert "largest weight" in run("coarsen", "path:40", "--until", "9").stdout


@pytest.mark.parametrize(
    "method", ["suitor", "augmented", "streaming", "random_weighted", "exact", "proposal"]
)
def test_match_check_refuses_an_empty_matching(
    method: str, wide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "exact" and NO_RUSTWORKX:
        pytest.skip(NO_RUSTWORKX)
    name = "maximal_matching" if method == "proposal" else "weighted_matching"
    real = getattr(matchwood, name)

    def nothing(A: Any, **options: Any) -> Any:
        found = real(A, **options)
        return dataclasses.replace(found, mate=np.full(len(found.mate), -1), weight=0.0)

    args = ["match", wide, "--method", method, "--check"]
    assert CliRunner().invoke(app, args).exit_code == 0
    monkeypatch.setattr(matchwood, name, nothing)
    assert CliRunner().invoke(app, args).exit_code != 0


def test_match_with_one_round(wide: str) -> None:
    one = run_json("match", wide, "--method", "augmented", "--rounds", "1", "--check")
    assert one["rounds"] <= 1
    refused = CliRunner().invoke(app, ["match", wide, "--rounds", "1"])
    assert refused.exit_code == 2
    assert "--rounds needs --method augmented" in refused.output


def test_match_augmented_and_maximum(wide: str) -> None:
    greedy = run_json("match", wide)
    heavier = run_json("match", wide, "--method", "augmented", "--check")
    assert heavier["weight"] >= greedy["weight"]
    largest = run_json("match", wide, "--maximum", "--check")
    assert largest["edges"] >= heavier["edges"]
    assert largest["method"] == "blossom"
    forced = run_json("match", "path:9", "--method", "hopcroft_karp", "--check")
    assert forced["edges"] == 4
