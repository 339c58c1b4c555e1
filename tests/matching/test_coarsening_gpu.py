"""Coarsening on the GPU: the reference's bits, and the CPU's."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, disjoint, path, rmat, shuffled, star
from matchwood.check import check_coarsening

pytestmark = pytest.mark.gpu


def assert_same(found, expected, kind: type = np.int32) -> None:
    pairs = [(found.map, expected.map), (found.vertex_weights, expected.vertex_weights)]
    for part in ("indptr", "indices", "data"):
        pairs.append((getattr(found.matrix, part), getattr(expected.matrix, part)))
    for ours, theirs in pairs:
        assert np.array_equal(ours.get(), theirs)
    assert found.map.dtype == kind
    assert found.vertex_weights.dtype == expected.vertex_weights.dtype
    assert found.matrix.dtype == expected.matrix.dtype  # CuPy keeps no other indices than int32


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    mate = matchwood.weighted_matching(A, engine="reference")
    own = np.arange(A.shape[0]) / 7
    for members in (None, own):
        expected = matchwood.coarsen(A, mate, vertex_weights=members, engine="reference")
        for kind in (np.int32, np.int64):
            G = matchwood.graph(A, index_dtype=kind).on("gpu")
            found = matchwood.coarsen(G, mate, vertex_weights=members)
            check_coarsening(A, mate, found, vertex_weights=members)
            assert_same(found, expected, kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("paired", ["by weight", "at random"])
def test_rows_of_every_length(kind: type, paired: str) -> None:
    """Rows sorted by lanes, by a warp, or all edges together; last, all lengths in one matrix."""
    graphs = [complete(9), complete(17), complete(60), complete(250), rmat(8, 16)]
    graphs = [*graphs, disjoint(graphs), complete(300), star(5000)]
    for A in (*graphs, shuffled(disjoint(graphs), isolated=5)):
        G = matchwood.graph(matchwood.generators.random_weights(A, dtype=kind))
        if paired == "by weight":
            mate = matchwood.weighted_matching(G, engine="reference").mate
        else:  # most pairs have no edge between them, and some vertices none
            mate = np.full(G.n, -1)
            order = np.random.default_rng(1).permutation(G.n)[: G.n // 4 * 2].reshape(2, -1)
            mate[order[0]], mate[order[1]] = order[1], order[0]
        expected = matchwood.coarsen(G, mate, engine="reference")
        assert_same(matchwood.coarsen(G.on("gpu"), mate), expected)


@pytest.mark.parametrize(
    ("mate", "text"),
    [
        ([1, 0, 4, -1], r"mate\[2\] is 4, no vertex of 0..3"),
        ([-2, 0, 4, -1], r"mate\[0\] is -2, no vertex of 0..3"),
        ([1, 2, 1, 7], r"mate\[3\] is 7, no vertex of 0..3"),
        ([-1, 2, 3, 2], r"mate\[1\] is 2, but mate\[2\] is 3"),
        ([1, 0, 2, -1], r"mate\[2\] is 2 itself"),
    ],
)
def test_bad_mates(mate: list[int], text: str) -> None:
    import cupy

    G = matchwood.graph(path(4)).on("gpu")
    for kind in (np.int32, np.int64, np.int16):
        with pytest.raises(ValueError, match=text):
            matchwood.coarsen(G, cupy.asarray(mate, kind))
        with pytest.raises(ValueError, match=text):
            matchwood.coarsen(path(4), np.asarray(mate, kind))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_hierarchies_equal_the_cpus(kind: type) -> None:
    for A in (matchwood.generators.random_weights(rmat(10, 8), dtype=kind), star(3000)):
        expected = matchwood.coarsening_hierarchy(A, until=5)
        found = matchwood.coarsening_hierarchy(matchwood.graph(A).on("gpu"), until=5)
        moved = matchwood.coarsening_hierarchy(A, until=5, engine="gpu")
        assert found.sizes == expected.sizes == moved.sizes
        assert np.array_equal(found.map.get(), expected.map)
        assert np.array_equal(moved.map, expected.map)
        for one, two in zip(found, expected, strict=True):
            assert np.array_equal(one.matrix.data.get(), two.matrix.data)
