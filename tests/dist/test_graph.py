"""A graph spread over ranks is the graph of one machine: every view, fact and error."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO
from matchwood import dist
from matchwood.errors import EngineUnavailable
from spread_graphs import FEW_GRIDS, GRIDS, USUAL_GRIDS, blocks, compare, part, slab, tried, whole
from strategies import graphs
from support import REST, some

ORDERS = ("given", "hashed")
EVERYWHERE = ("0x0", "1x1 loop", "rmat, directed", "duplicates, unsorted", "explicit zeros")


def on_ranks(function, grid, *args):
    """The results of all ranks of a grid."""
    return dist.run(function, grid[0] * grid[1], f"{grid[0]}x{grid[1]}", *args)


def spread_rows(comm, grid, A, order="given", layout="stripes", **options):
    share = slab(A, comm.rank, comm.size)
    return blocks(
        matchwood.distribute(share, comm=comm, grid=grid, order=order, layout=layout, **options)
    )


def spread_edges(comm, grid, n, edges, weights, **options):
    share = part(n, edges, weights, comm.rank, comm.size)
    return blocks(matchwood.distribute(share, comm=comm, grid=grid, **options))


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("name", some(ZOO))
def test_rows_of_each_rank_are_the_graph_of_all(name, rest):
    A = ZOO[name]()
    expected = whole(matchwood.graph(A))
    turn = list(ZOO).index(name)
    for k, grid in enumerate(GRIDS):
        if (k + turn) % 8 == 4 * rest or (name in EVERYWHERE and not rest):
            compare(on_ranks(spread_rows, grid, A, ORDERS[(k + turn // 3) % 2]), expected)


@pytest.mark.parametrize(
    "name", ["directed", "duplicates", "rmat", "0x0", "one edge", "skew-symmetric"]
)
def test_the_layout_of_the_thesis_has_the_same_views(name):
    A = ZOO[name]()
    expected = whole(matchwood.graph(A))
    for grid in USUAL_GRIDS:
        compare(on_ranks(spread_rows, grid, A, "given", "ranges"), expected)
    compare(on_ranks(spread_rows, (3, 3), A, "hashed", "ranges"), expected)


EDGES = np.random.default_rng(3).integers(0, 23, (160, 2))
WEIGHTS = np.random.default_rng(4).normal(size=160)
RULES = (None, "sum", "min", "max", "first", "error")


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("rule", some(RULES))
def test_edges_of_each_rank_and_every_rule_for_duplicates(rule, rest):
    kinds = [None, WEIGHTS, WEIGHTS.astype(np.float32), (100 * WEIGHTS).astype(np.int64),
             (100 * WEIGHTS).astype(np.int32), WEIGHTS > 0, np.abs(WEIGHTS)]  # fmt: skip
    for turn, weights in enumerate(kinds):
        one = (23, EDGES) if weights is None else (23, EDGES, weights)
        expected = tried(lambda one=one: whole(matchwood.graph(one, duplicates=rule)))
        found = on_ranks(
            lambda comm, grid, weights=weights: tried(
                lambda: spread_edges(comm, grid, 23, EDGES, weights, duplicates=rule)
            ),
            FEW_GRIDS[(turn + RULES.index(rule) + 2 * rest) % 4],
        )
        if isinstance(expected, str):
            assert set(found) == {expected.replace(" graph:", " distribute:")}
        else:
            compare(found, expected)


@pytest.mark.slow
@settings(max_examples=40)
@given(A=graphs(), at=st.integers(0, len(GRIDS) - 1), order=st.sampled_from(ORDERS))
def test_any_graph_on_any_grid(A, at, order):
    compare(on_ranks(spread_rows, GRIDS[at], A, order), whole(matchwood.graph(A)))


@pytest.mark.slow
@settings(max_examples=40)
@given(A=graphs(weights="any"), at=st.integers(0, len(GRIDS) - 1), kind=st.booleans())
def test_any_edges_on_any_grid(A, at, kind):
    coo = A.tocoo()
    edges = np.stack([coo.row, coo.col], axis=1)
    weights = A.data if kind else None
    G = matchwood.graph((A.shape[0], edges) if weights is None else (A.shape[0], edges, weights))
    found = on_ranks(spread_edges, GRIDS[at], A.shape[0], edges, weights)
    compare(found, whole(G))


@pytest.mark.slow
def test_many_rounds_and_ranges_give_the_same_block(monkeypatch):
    """Entries in rounds of a few, by ranges of a few rows: sums in the order of one machine."""
    from matchwood.gate.distributed import collecting

    monkeypatch.setattr(collecting, "BATCH", 7)
    expected = whole(matchwood.graph((23, EDGES, WEIGHTS), duplicates="sum"))
    plain = whole(matchwood.graph((23, EDGES)))
    for grid in FEW_GRIDS:
        found = on_ranks(
            lambda comm, grid: spread_edges(comm, grid, 23, EDGES, WEIGHTS, duplicates="sum"), grid
        )
        compare(found, expected)
        compare(on_ranks(spread_edges, grid, 23, EDGES, None), plain)


@pytest.mark.slow
def test_wide_ids_travel_too(monkeypatch):
    """As if the graph had more vertices than 32 bits count."""
    from matchwood.gate.distributed import collecting, views

    for module in (collecting, views):
        monkeypatch.setattr(module, "INT32_MAX", 4)
    expected = whole(matchwood.graph((23, EDGES, WEIGHTS)))
    for grid in FEW_GRIDS:
        for order in ORDERS:
            found = on_ranks(
                lambda comm, grid, order=order: spread_edges(
                    comm, grid, 23, EDGES, WEIGHTS, order=order
                ),
                grid,
            )
            compare(found, expected)


def test_a_whole_graph_on_one_rank():
    A = ZOO["duplicates, unsorted"]()
    n, coo = A.shape[0], A.tocoo()
    graphs = [
        matchwood.graph(A),
        matchwood.graph((n, np.stack([coo.row, coo.col], 1), coo.data)),
        matchwood.graph((n, np.stack([coo.row, coo.col], 1), coo.data), duplicates="max"),
        matchwood.graph(A, index_dtype=np.int64),
    ]
    for G in graphs:
        expected = whole(G)
        for root in (0, 5):
            found = on_ranks(
                lambda comm, grid, G=G, root=root: blocks(
                    matchwood.distribute(G if comm.rank == root else None, comm=comm, grid=grid)
                ),
                (2, 3),
            )
            compare(found, expected)


def test_a_networkx_graph_on_one_rank():
    networkx = pytest.importorskip("networkx")
    graph = networkx.karate_club_graph()
    expected = whole(matchwood.graph(graph))
    found = on_ranks(
        lambda comm, grid: blocks(
            matchwood.distribute(graph if comm.rank == 1 else None, comm=comm, grid=grid)
        ),
        (2, 2),
    )
    compare(found, expected)


def test_index_types():
    A = ZOO["rmat"]()
    for kind in (None, np.int32, np.int64):

        def types(comm, grid, kind=kind):
            G = matchwood.distribute(slab(A, comm.rank, 4), comm=comm, index_dtype=kind)
            return G.index_dtype, G.undirected_weights().indices.dtype

        wanted = np.dtype(kind or np.int32)
        assert set(on_ranks(types, (2, 2))) == {(wanted, wanted)}


@pytest.mark.slow
def test_ids_degrees_and_diagonal_are_of_own_vertices():
    A = ZOO["self loops"]()
    G = matchwood.graph(A)

    def look(comm, grid, order):
        D = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, grid=grid, order=order)
        return D.ids, D.degrees.local, D.diagonal(), D.degrees.ids

    for grid in GRIDS:
        for order in ORDERS:
            found = on_ranks(look, grid, order)
            ids = np.concatenate([each[0] for each in found])
            assert sorted(ids.tolist()) == list(range(G.n))
            for own, degrees, diagonal, again in found:
                assert np.array_equal(own, again)
                assert np.array_equal(degrees, G.degrees[own])
                assert np.array_equal(diagonal, G.diagonal()[own])


def test_auto_renumbers_what_is_unevenly_spread():
    rng = np.random.default_rng(0)
    even = rng.integers(0, 4096, (20000, 2))
    heavy = even // 8 * 8  # every vertex is in stripe 0 or 8 of sixteen

    def order(comm, grid, edges):
        G = matchwood.distribute(
            part(4096, edges, None, comm.rank, comm.size), comm=comm, grid=grid
        )
        return "given" if G.order is None else "hashed"

    assert set(on_ranks(order, (4, 4), even)) == {"given"}
    assert set(on_ranks(order, (4, 4), heavy)) == {"hashed"}
    assert set(on_ranks(order, (4, 4), heavy[:50])) == {"given"}  # too few to matter


@pytest.mark.slow
def test_errors_of_values_name_the_entry_of_one_machine():
    rng = np.random.default_rng(5)
    for bad in (np.nan, np.inf, -np.inf):
        weights = rng.random(160)
        weights[[40, 90, 91]] = bad
        expected = whole(matchwood.graph((23, EDGES, weights)))
        assert "must be finite" in expected["undirected_weights"]
        for grid in FEW_GRIDS:
            compare(on_ranks(spread_edges, grid, 23, EDGES, weights), expected)
    large = np.full(160, 1e308)
    A = sp.coo_array((large, tuple(EDGES.T)), shape=(23, 23))
    expected = whole(matchwood.graph(A))
    assert "overflow" in expected["undirected_weights"]
    compare(on_ranks(spread_rows, (2, 3), _rows(A)), expected)
    huge = np.full(160, 2**53 + 2, np.int64)
    expected = whole(matchwood.graph((23, EDGES, huge)))
    found = on_ranks(spread_edges, (2, 2), 23, EDGES, huge)
    for name in ("undirected_weights", "directed_weights"):
        assert {each[name] for each in found} == {expected[name]}


def _rows(A):
    """CSR without joining duplicates."""
    order = np.argsort(A.row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(A.row, minlength=A.shape[0]))])
    return sp.csr_array((A.data[order], A.col[order], indptr), shape=A.shape)


def test_negative_weights_are_refused_alike():
    weights = np.abs(WEIGHTS)
    weights[77] = -3.5
    A = (23, EDGES, weights)
    wanted = tried(lambda: matchwood.graph(A).undirected_weights("f", negative="error"))
    assert "got -3.5" in wanted

    def look(comm, grid):
        G = matchwood.distribute(part(*A, comm.rank, comm.size), comm=comm, grid=grid)
        return tried(lambda: G.undirected_weights("f", negative="error"))

    for grid in FEW_GRIDS:
        assert set(on_ranks(look, grid)) == {wanted}


@pytest.mark.slow
def test_more_ranks_than_vertices():
    for n in (0, 1, 2, 3):
        edges = np.array([[i, (i + 1) % n] for i in range(n)], np.int64).reshape(-1, 2)
        expected = whole(matchwood.graph((n, edges)))
        for grid in GRIDS:
            compare(on_ranks(spread_edges, grid, n, edges, None), expected)


def test_a_distributed_graph_is_not_pickled():
    import pickle

    def look(comm, grid):
        return tried(lambda: pickle.dumps(matchwood.distribute((2, [[0, 1]]), comm=comm)))

    assert "cannot be pickled" in on_ranks(look, (1, 1))[0]


def test_functions_without_a_cluster_engine_say_so():
    def look(comm, grid):
        G = matchwood.distribute((3, [[0, 1]]), comm=comm)
        with pytest.raises(EngineUnavailable, match="condensation: has no 'dist' engine"):
            matchwood.condensation(G)
        return True

    assert on_ranks(look, (1, 1)) == [True]
