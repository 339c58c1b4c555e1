"""Ranges of vertices on ranks: the permutation, its choice, and one machine's answers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import ZOO, grid, path, rmat, shuffled
from matchwood import dist
from matchwood.gate.distributed.sources import ContiguousOrder
from spread_graphs import slab, tried


def whole_forest(G):
    edges = matchwood.minimum_spanning_forest(G).edges
    if hasattr(G, "comm"):
        edges = np.concatenate(G.comm.objects(edges))
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


CALLS = {
    "bfs": lambda G: matchwood.bfs(G, 0).parent,
    "components": lambda G: matchwood.connected_components(G).labels,
    "colour": lambda G: (
        matchwood.connected_components(G, method="colour" if hasattr(G, "comm") else "auto").labels
    ),
    "labels": lambda G: matchwood.label_propagation(G).labels,
    "matching": lambda G: matchwood.weighted_matching(G).mate,
    "pagerank": lambda G: matchwood.pagerank(G).scores,
    "forest": whole_forest,
}


def test_the_permutation():
    for n in (0, 1, 2, 5, 12, 13, 97):
        for p in (1, 2, 3, 5, 12, 20):
            order, ids = ContiguousOrder(n, p), np.arange(n)
            inside = order.inside(ids)
            assert np.array_equal(np.sort(inside), ids)
            assert np.array_equal(order.user(inside), ids)
            owners = inside % p
            assert (np.diff(owners) >= 0).all()  # ranges, one after the other
            counts = np.bincount(owners, minlength=p)
            assert counts.max() - counts.min() <= 1
            assert order.inside(ids.astype(np.int32)).dtype == np.int32


def weighted(A):
    A = sp.csr_array(A).astype(np.float64)
    A.data[:] = 1.0
    return matchwood.generators.random_weights(sp.csr_array(A.maximum(A.T)), rng=5)


def compared(matrices, shapes, calls, **places):
    places = places or {"order": "contiguous"}
    for A in matrices:
        expected = {name: CALLS[name](matchwood.graph(A)) for name in calls}

        def body(comm, shape, A=A):
            G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, grid=shape, **places)
            if places == {"order": "contiguous"}:
                assert G.order is not None
                assert np.array_equal(np.diff(G.ids), np.ones(max(G.ids.size - 1, 0)))
            matchwood.weighted_matching(G).check(G)
            found = {name: CALLS[name](G) for name in calls}
            return {
                name: each.gather(None) if hasattr(each, "gather") else each
                for name, each in found.items()
            }

        for R, C in shapes:
            for found in dist.run(body, R * C, (R, C)):
                for name, right in expected.items():
                    if name == "pagerank":
                        assert np.allclose(found[name], right, rtol=1e-9, atol=0)
                    else:
                        assert np.array_equal(found[name], right), (name, R, C)


@pytest.mark.slow
def test_answers_are_those_of_one_machine():
    compared([weighted(grid(12, 9))], ((2, 2), (3, 1)), CALLS)


@pytest.mark.slow
def test_answers_on_many_grids_and_graphs():
    matrices = [weighted(A) for A in (grid(30, 7), path(90), rmat(7, 4), shuffled(grid(9, 9)))]
    shapes = ((1, 2), (2, 1), (5, 1), (1, 3), (2, 3), (3, 4))
    compared(matrices, shapes, CALLS)
    zoo = [ZOO[name]() for name in ("disconnected", "star", "no edges", "one edge")]
    compared(zoo, shapes, ("bfs", "components", "colour"))


def test_the_choice_looks_at_the_entries():
    """Meshes stay together, graphs without locality do not; small ones keep their numbers."""
    wide = sp.csr_array(matchwood.graph(matchwood.generators.rmat(12)).sparse())
    cases = [(grid(80, 80), "contiguous"), (path(9000), "contiguous"), (wide, None),
             (shuffled(grid(80, 80)), None), (grid(9, 9), None)]  # fmt: skip

    def body(comm, A, layout="stripes"):
        G = matchwood.distribute(slab(A, comm.rank, 4), comm=comm, layout=layout)
        return getattr(G.order, "name", None)

    for A, expected in cases:
        assert dist.run(body, 4, A) == [expected] * 4
    assert dist.run(body, 4, grid(80, 80), "ranges") == ["hashed"] * 4


def test_an_order_that_a_layout_cannot_use():
    def body(comm):
        part, said = slab(path(9), comm.rank, 4), []
        for order in ("contiguous", "rcm", "partition"):
            options = {"layout": "ranges", "order": order}
            said.append(tried(lambda: matchwood.distribute(part, comm=comm, **options)))  # noqa: B023
        return said

    for ranks in dist.run(body, 4):
        for order, text in zip(("contiguous", "rcm", "partition"), ranks, strict=True):
            assert f"order '{order}' needs the layout 'stripes', got 'ranges'" in text


@pytest.mark.slow
def test_the_layout_of_ranges_serves_all_functions():
    """Where steps need stripes, in a copy of the graph, which `stats` names."""
    compared([weighted(grid(9, 5))], ((2, 3),), CALLS, layout="ranges", order="hashed")
    few = [ZOO[name]() for name in ("0x0", "disconnected", "self loops", "int64 indices")]
    compared(few, ((3, 2), (1, 1)), ("components", "matching"), layout="ranges")

    def body(comm):
        comm.shared_array = lambda nbytes: None  # as between hosts
        part = slab(weighted(grid(9, 5)), comm.rank, 4)
        G = matchwood.distribute(part, comm=comm, layout="ranges", index_dtype=np.int64)
        mate = matchwood.weighted_matching(G).mate
        parts = matchwood.connected_components(G).labels
        assert np.array_equal(parts.gather(None), np.zeros(45))
        copies = [G.in_stripes() is G.in_stripes(), G.in_stripes().grid.layout]
        return G.stats, copies, mate.dtype, parts.dtype, mate.grid is G.grid

    where = "on all 4 ranks, in a copy of the graph in stripes"
    for stats, copies, *kinds, same in dist.run(body, 4):
        assert stats == {"weighted_matching": where, "connected_components": where}
        assert copies == [True, "stripes"]
        assert kinds == [np.int64] * 2
        assert same


@pytest.mark.slow
@pytest.mark.parametrize("order", ["rcm", "partition"])
def test_orders_that_the_first_rank_finds(order):
    """A shuffled mesh: answers of one machine, and neighbours on one rank again."""
    A = weighted(shuffled(grid(24, 20)))
    compared([A], ((2, 2), (3, 1)), CALLS, order=order)
    few = [ZOO[name]() for name in ("0x0", "1x1", "one edge", "self loops", "directed")]
    compared(few, ((1, 1), (3, 2)), ("components", "matching"), order=order)

    def within(comm, order):
        G = matchwood.distribute(slab(A, comm.rank, 4), comm=comm, order=order)
        owner = G.vector(np.full(G.grid.owned, comm.rank)).gather(None)
        rows, columns = A.nonzero()
        taken = G.vector(G.ids % 3 > 0)
        H, ids = G.subgraph(taken)
        other = matchwood.distribute(slab(grid(24, 20), comm.rank, 4), comm=comm, order=order)
        again = matchwood.distribute(slab(A, comm.rank, 4), comm=comm, order=order)
        assert again.subgraph(taken)[0].n == H.n
        if order != "given":  # a vector that is spread in another way
            assert "vertices must be spread as" in tried(lambda: other.subgraph(taken))
        kept = owner[ids.gather(None)] == H.vector(np.full(H.grid.owned, comm.rank)).gather(None)
        part = A[ids.gather(None)][:, ids.gather(None)]
        assert np.array_equal(H.tocsr(None).toarray(), part.toarray())
        return (owner[rows] == owner[columns]).mean(), np.bincount(owner), kept.mean()

    for near, sizes, kept in dist.run(within, 4, order):
        assert near > 0.8
        assert np.ptp(sizes) <= 1
        assert kept > 0.8  # parts of a graph stay in its order
    assert dist.run(within, 4, "given")[0][0] < 0.4
