"""Coarsening on the GPU: the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, rmat, star
from matchwood.check import check_coarsening

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_equals_the_cpu(name: str, kind: type) -> None:
    A = ZOO[name]()
    G = matchwood.graph(A, index_dtype=kind)
    mate = matchwood.weighted_matching(G)
    expected = matchwood.coarsen(G, mate)
    found = matchwood.coarsen(G.on("gpu"), mate)
    check_coarsening(A, mate, found)
    assert np.array_equal(found.map.get(), expected.map)
    assert np.array_equal(found.vertex_weights.get(), expected.vertex_weights)
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(found.matrix, part).get(), getattr(expected.matrix, part))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_hierarchies_equal_the_cpus(kind: type) -> None:
    for A in (matchwood.generators.random_weights(rmat(10, 8), dtype=kind), star(3000)):
        expected = matchwood.multilevel(A, until=5)
        found = matchwood.multilevel(matchwood.graph(A).on("gpu"), until=5)
        moved = matchwood.multilevel(A, until=5, engine="gpu")
        assert found.sizes == expected.sizes == moved.sizes
        assert np.array_equal(found.map.get(), expected.map)
        assert np.array_equal(moved.map, expected.map)
        for one, two in zip(found, expected, strict=True):
            assert np.array_equal(one.matrix.data.get(), two.matrix.data)
