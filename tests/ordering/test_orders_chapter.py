"""The tables on the page about orders are those of the file, and noise is not told as a gain."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench import harness
from bench.papers.mandulak import orders_figures as chapter
from bench.papers.mandulak.orders_cache import misses

FOLDER = harness.ROOT / "docs" / "_static" / "measured"


def test_tables_are_those_of_the_file(tmp_path):
    found = json.loads((FOLDER / chapter.NAME).read_text())
    for path in chapter.tables(found, tmp_path):
        assert path.read_text() == (FOLDER / path.name).read_text(), path.name


def graph(**times):
    rows = {name: {"seconds": {"cpu": {"pagerank": given}}} for name, given in times.items()}
    return {"orders": {name.replace("_", ", "): row for name, row in rows.items()}}


def test_gains_inside_the_noise():
    same = graph(natural=[1.0, 1.1, 1.2], natural_again=[1.0, 1.1, 1.3], fast=[0.5, 0.5, 0.6])
    bar = chapter.noise(same, "cpu", "pagerank")
    assert bar > 0
    assert chapter.gain(same, "fast", "cpu", "pagerank") > bar
    apart = graph(natural=[1.0, 1.0], natural_again=[2.0, 2.0], fast=[0.7, 0.7])
    assert chapter.noise(apart, "cpu", "pagerank") == pytest.approx(np.log(2))


@pytest.mark.slow
def test_simulated_misses():
    """A path in its order misses one word in a line; numbered at random nearly all."""
    import matchwood

    n = 1 << 20
    path = matchwood.graph(matchwood.generators.path(n), weight=None)
    shuffled = matchwood.permute(path, np.random.default_rng(1).permutation(n))
    views = {
        "path": path.undirected_pattern(),
        "shuffled": matchwood.graph(shuffled, weight=None).undirected_pattern(),
    }
    found = misses(views, ["pagerank"])
    assert found["path"]["pagerank"]["L1"] == pytest.approx(1 / 32, rel=0.1)
    assert found["shuffled"]["pagerank"]["L1"] > 0.9
