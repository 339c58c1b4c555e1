"""Joins by every method: rows of the collections that are there, none where there are none."""

import gzip

import numpy as np
import pytest
from rich.console import Console

import matchwood
from bench.papers.mandulak import join_methods as bench


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MATCHWOOD_DATA", str(tmp_path))
    (tmp_path / "sets").mkdir()
    return tmp_path / "sets"


def shown(found):
    console = Console(width=200)
    with console.capture() as text:
        console.print(bench.table(found))
    return text.get()


def test_rows_of_what_is_there(folder):
    lines = ["graph;join;sets", "sets;join;graph", "join;graph;sets;of", "trees;paths"]
    packed = gzip.compress("\n".join(lines).encode())
    (folder / "tokenjoin_yelp_sample.csv.gz").write_bytes(packed)
    said = []
    (row,) = bench.run(1, said.append)
    assert said == ["join of Yelp sample"]
    assert (row["collection"], row["sets"], row["pairs"]) == ("Yelp sample", 4, 3)
    assert set(row["seconds"]) == set(bench.METHODS)
    assert all(0 < value < np.inf for value in row["seconds"].values())
    assert all(0 < value <= 1 for kind in ("recall", "precision") for value in row[kind].values())
    assert "Yelp sample" in shown([row])


def test_nothing_is_there(folder):
    assert bench.run(1) == []
    assert "MATCHWOOD_DATA" in shown([])


def test_a_missing_pair_is_told():
    tags = [["graph", "join"], ["graphs", "join"], ["graph", "join"]]
    whole, few = (matchwood.fuzzy_join(tags, delta=delta) for delta in (0.5, 1.0))
    answers = dict.fromkeys(bench.METHODS, whole)
    bench._compare("tags", answers)
    with pytest.raises(matchwood.CheckFailed, match="tags: EV and HG"):
        bench._compare("tags", {**answers, "EV": few})
    with pytest.raises(matchwood.CheckFailed, match="tags: GD reports a false pair"):
        bench._compare("tags", {**dict.fromkeys(bench.METHODS, few), "GD": whole})
