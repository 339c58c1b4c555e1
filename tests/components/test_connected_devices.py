"""Connected components on simulated devices: the same labels as everywhere, with little sent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, grid, rmat, shuffled, star
from matchwood import Devices, EngineUnavailable, OutOfMemory
from matchwood.engines.devices import plan as plans
from simulated_devices import simulated
from strategies import graphs
from support import looped

PLENTY = 1 << 30


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    monkeypatch.setattr(plans, "LEAST_CAPACITY", 8)
    monkeypatch.setattr(plans, "LEAST_ROWS", 4)


def on(A, devices=1, memory=PLENTY, method="auto", **options):
    with simulated(memory * devices):
        engine = Devices((0,) * devices, memory=memory, **options)
        return matchwood.connected_components(A, method=method, engine=engine)


def assert_same(found, expected):
    assert found.count == expected.count
    assert found.labels.dtype == expected.labels.dtype
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.slow
@looped("name", ZOO)
def test_zoo(name):
    """Prepared, so that rows may stay, and as it comes, when all rows travel."""
    A = ZOO[name]()
    G = matchwood.graph(A)
    expected = matchwood.connected_components(G, engine="reference")
    shapes = list(itertools.product((1, 2, 3, 4), (None, 1, 3, 5, 10, 40)))
    for devices, batches in shapes[list(ZOO).index(name) % 4 :: 4]:
        for given_graph in (A, G):
            assert_same(on(given_graph, devices, batches=batches), expected)


@given(graphs(), st.integers(1, 4), st.sampled_from((None, 1, 3, 10)), st.booleans())
def test_random_graphs(A, devices, batches, prepared):
    expected = matchwood.connected_components(A, engine="reference")
    assert_same(on(matchwood.graph(A) if prepared else A, devices, batches=batches), expected)


def test_little_travels_where_the_pattern_is_known_to_be_symmetric():
    G = matchwood.graph(rmat(12, 16))
    assert G.has_symmetric_pattern
    found = on(G, batches=4)
    assert found.stats.graph_sizes < 0.12
    degree = np.diff(G.indptr)
    assert found.stats.rounds[0].entries == np.minimum(degree, 2).sum()
    assert on(rmat(12, 16), batches=4).stats.graph_sizes == 1.0


def test_rows_outside_the_largest_component_travel():
    A = shuffled(grid(30, 30), isolated=5)
    found = on(matchwood.graph(A), 2, batches=3)
    assert_same(found, matchwood.connected_components(A))
    assert found.stats.rounds[1].entries <= A.nnz
    assert found.stats.words_exchanged > 0


def test_least_memory():
    A = matchwood.graph(rmat(8, 6))
    with pytest.raises(OutOfMemory, match="connected_components: memory of at least") as told:
        on(A, memory=1)
    least = int(str(told.value).split(" bytes")[0].rpartition(" ")[2].replace(",", ""))
    found = on(A, memory=least)
    assert_same(found, matchwood.connected_components(A))
    assert max(found.stats.memory) <= least


def test_methods():
    A = star(9)
    assert_same(on(A, method="afforest"), matchwood.connected_components(A))
    for method in ("bfs", "fastsv"):
        with pytest.raises(EngineUnavailable, match=f"method '{method}' has no engine for Devices"):
            on(A, method=method)
    assert matchwood.connected_components(A).stats is None
