"""The spanning forest of a graph that is spread over ranks is that of one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, grid, path, rmat
from matchwood import dist, minimum_spanning_forest
from matchwood.check import check_spanning_forest
from matchwood.spanning.forest import ranks as rounds
from matchwood.spanning.forest.ranks import cpu as loops
from matchwood.spanning.forest.ranks import gpu as gpu_loops
from spread_graphs import FEW_GRIDS, GRIDS, USUAL_GRIDS, alike, part, slab, tried
from strategies import graphs
from support import REST, some

EVERYWHERE = ("0x0", "one edge", "rmat, directed")


def spread(comm: Any, A: Any, sides: Any, **options: Any) -> Any:
    share = (
        part(*A, comm.rank, comm.size) if isinstance(A, tuple) else slab(A, comm.rank, comm.size)
    )
    return matchwood.distribute(share, comm=comm, grid=sides, **options)


def found_on(comm: Any, A: Any, sides: Any, maximum: bool, options: dict[str, Any]) -> Any:
    """The forest of all ranks, checked, and each rank's share of it."""
    G = spread(comm, A, sides, **options)
    found = minimum_spanning_forest(G, maximum=maximum)
    check_spanning_forest(G, found, maximum=maximum)
    check_spanning_forest(G, (found.edges[::-1, ::-1], found.weights[::-1]), maximum=maximum)
    assert np.isin(found.edges[:, 0], G.ids).all()
    assert found.tocsr().nnz == found.edges.shape[0]
    edges = np.concatenate(comm.objects(found.edges))
    weights = np.concatenate(comm.objects(found.weights))
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return edges[order], weights[order], found


def compare(A: Any, grids: Any, maximum: bool = False, **options: Any) -> None:
    one = minimum_spanning_forest(A, maximum=maximum)
    for sides in grids:
        for edges, weights, found in dist.run(
            found_on, sides[0] * sides[1], A, sides, maximum, options
        ):
            assert edges.dtype == one.edges.dtype
            assert weights.dtype == one.weights.dtype
            assert np.array_equal(edges, one.edges), sides
            assert weights.tobytes() == one.weights.tobytes()
            assert (found.components, found.n) == (one.components, one.n)
            assert found.rounds == one.rounds
            assert type(found.total) is type(one.total)
            if one.weights.dtype.kind == "i":
                assert found.total == one.total
            else:
                error = 1e-12 * np.abs(one.weights.astype(np.float64)).sum()
                assert abs(found.total - one.total) <= error


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("name", some(ZOO))
def test_the_zoo(name, rest):
    """Each graph on one of the grids, the least or the heaviest forest; some are on all."""
    turn = list(ZOO).index(name)
    for k, sides in enumerate(USUAL_GRIDS):
        if (k + turn) % 8 == 4 * rest or (name in EVERYWHERE and not rest):
            order, maximum = ("given", "hashed")[k % 2], (turn // 2 + k // 4) % 2 == 1
            compare(ZOO[name](), [sides], maximum, order=order)


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
def test_rounds_of_ranks_with_a_gpu(monkeypatch, rest):
    """The same by whole arrays, here NumPy's; the two kernels are replaced."""

    def offer(a: Any, b: Any, best: Any) -> None:
        for labels in (a, b):
            np.minimum.at(best, labels, np.arange(labels.size, dtype=np.uint64))

    monkeypatch.setattr(rounds, "loops_of", lambda G: gpu_loops)
    monkeypatch.setattr(gpu_loops, "first_entries", loops.first_entries)
    monkeypatch.setattr(gpu_loops, "offer", offer)
    for turn, name in enumerate(ZOO):
        order, sides = ("given", "hashed")[turn % 2], [(2, 2), (2, 3), (3, 1)][turn % 3]
        monkeypatch.setattr(gpu_loops, "PIECE", (1 << 25, 7)[turn // 2 % 2])
        if turn // 4 % 2 == rest and ZOO[name]().shape[0] <= 2000:
            compare(ZOO[name](), [sides], bool(turn // 3 % 2), order=order)
    for name in EVERYWHERE:
        compare(ZOO[name](), [(1, 2), (1, 5), (3, 3)])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(graphs(), st.sampled_from(GRIDS), st.sampled_from(["given", "hashed"]), st.booleans())
def test_drawn_graphs(A, sides, order, maximum):
    compare(A, [sides], maximum, order=order)


@pytest.mark.slow
def test_integers_that_no_float_holds():
    A = rmat(8, 6)
    rng = np.random.default_rng(7)
    for kind, base in ((np.int64, 2**62), (np.int64, -(2**63)), (np.uint64, 2**63 - 9)):
        data = rng.integers(0, 9, A.nnz).astype(np.uint64) + np.uint64(base % 2**64)
        B = sp.csr_array((data.astype(kind), A.indices, A.indptr), A.shape)
        compare(B, [(2, 3)])
        compare(B, [(2, 2)], maximum=True, order="hashed")


@pytest.mark.slow
def test_equal_weights_zeros_and_signs():
    A = rmat(8, 6)
    rng = np.random.default_rng(8)
    for data in (
        np.ones(A.nnz, np.float32),
        rng.integers(-1, 2, A.nnz).astype(np.float64),
        np.where(rng.random(A.nnz) < 0.5, -0.0, 0.0),  # equal, but not in their bits
        rng.choice([1e300, -1e300, 5e-324], A.nnz),
    ):
        B = sp.csr_array((data, A.indices, A.indptr), A.shape)
        compare(B, [(2, 2), (1, 3)])
        compare(B, [(3, 2)], maximum=True)


@pytest.mark.slow
def test_long_paths_and_grids():
    A = path(300)
    A = sp.csr_array((np.minimum(A.indices, A.tocoo().row) + 1.0, A.indices, A.indptr), A.shape)
    compare(A, [(2, 2), (5, 1)])
    compare(grid(13, 17), [(3, 3)])
    compare(grid(9, 9), [(4, 4)], layout="ranges")


EDGES = np.random.default_rng(3).integers(0, 19, (150, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_parallel_edges(kind):
    """Of parallel edges the lightest counts, or the heaviest; with a rule, what it says."""
    weights = np.random.default_rng(4).integers(-50, 50, 150).astype(kind)
    compare((19, EDGES, weights), FEW_GRIDS[1:])
    compare((19, EDGES, weights), [(2, 2)], maximum=True)
    compare((19, EDGES, None), [(2, 2)])
    for rule in ("sum", "min", "max", "first"):
        one = minimum_spanning_forest(matchwood.graph((19, EDGES, weights), duplicates=rule))
        for edges, values, _ in dist.run(
            found_on, 3, (19, EDGES, weights), (1, 3), False, {"duplicates": rule}
        ):
            assert np.array_equal(edges, one.edges)
            assert np.array_equal(values, one.weights)


@pytest.mark.slow
def test_many_threads_on_a_rank(monkeypatch):
    module = __import__("matchwood.engines.cpu.crew", fromlist=["x"])
    monkeypatch.setattr(module, "INLINE_WORK", 0)
    monkeypatch.setattr(module, "SECOND_THREAD_WORK", 0)
    for name in ("few weights", "rmat, directed", "star"):
        one = minimum_spanning_forest(ZOO[name]())
        for edges, _, _ in dist.run(
            found_on, 4, ZOO[name](), (2, 2), False, {"order": "hashed"}, threads=3
        ):
            assert np.array_equal(edges, one.edges)


# Arguments


def test_what_is_refused_is_refused_on_all_ranks():
    A = path(6)
    nan = A.astype(np.float64)
    nan.data[3] = np.nan
    huge = sp.csr_array((np.full(A.nnz, 1.7e308), A.indices, A.indptr), A.shape)
    big = sp.csr_array((np.full(A.nnz, 2**64 - 1, np.uint64), A.indices, A.indptr), A.shape)
    twice = sp.csr_array(
        (np.full(4, 2**62), np.array([1, 1, 0, 0], np.int32), np.array([0, 2, 4], np.int32)), (2, 2)
    )
    for B in (nan, huge, big, twice):
        expected = tried(lambda B=B: minimum_spanning_forest(B))
        assert expected.startswith("ValueError: minimum_spanning_forest: ")
        found = dist.run(
            lambda comm, B=B: tried(lambda: minimum_spanning_forest(spread(comm, B, None))), 4
        )
        assert set(found) == {expected}


def test_arguments():
    def ask(comm):
        G = spread(comm, path(5), None)
        return [
            *(
                tried(lambda method=method: minimum_spanning_forest(G, method=method))
                for method in ("kruskal", "filter_kruskal", "awerbuch_shiloach")
            ),
            tried(lambda: minimum_spanning_forest(G, maximum=comm.rank == 1)),
            tried(lambda: minimum_spanning_forest(G, engine="gpu")),
            minimum_spanning_forest(G, method="boruvka", threads=2).components,
        ]

    first = alike(ask, 3)
    for text in first[:3]:
        assert text.startswith("EngineUnavailable: minimum_spanning_forest: method")
    assert first[3].startswith("ValueError: minimum_spanning_forest: maximum must be the same")
    assert first[4].startswith("EngineUnavailable: minimum_spanning_forest: engine must be None")
    assert first[5] == 1


# Checks


def broken(A: Any, one: Any, maximum: bool) -> Any:
    """(edges, weights) that are wrong, one after the other."""
    edges, weights = one.edges.astype(np.int64), one.weights
    other = minimum_spanning_forest(A, maximum=not maximum)
    yield edges[1:], weights[1:]  # does not span
    yield edges[:-2], weights[:-2]
    yield np.concatenate((edges, edges[:1])), np.concatenate((weights, weights[:1]))  # twice
    costs = matchwood.graph(A).undirected_pattern()
    rows = np.repeat(np.arange(costs.n), np.diff(costs.indptr))
    given = set(map(tuple, edges.tolist()))
    pairs = zip(rows.tolist(), costs.indices.tolist(), strict=True)
    extra = [(u, v) for u, v in pairs if u < v and (u, v) not in given]
    if extra:  # closes a cycle
        yield np.concatenate((edges, [extra[0]])), None
        yield np.concatenate((edges[1:], [extra[-1]])), None
    yield np.concatenate((edges[1:], [[0, costs.n - 1]])), None
    yield np.concatenate((edges[1:], [[2, 2]])), None
    spoiled = weights.copy()
    spoiled[spoiled.size // 2] += 1
    yield edges, spoiled
    yield other.edges.astype(np.int64), other.weights


def refusals_on(comm: Any, A: Any, sides: Any, spoiled: list[Any], maximum: bool) -> list[str]:
    """Each rank has some of the edges, in their order."""
    G = spread(comm, A, sides, order="hashed" if sides == (4, 4) else "given")
    texts = []
    for edges, weights in spoiled:
        mine = slice(comm.rank, None, comm.size)
        share = edges[mine] if weights is None else (edges[mine], weights[mine])
        ties = ("index", "any")[len(texts) % 2]
        texts.append(
            tried(lambda: check_spanning_forest(G, share, maximum=maximum, ties=ties))  # noqa: B023
        )
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(
    ("turn", "name"), list(enumerate(["few weights", "rmat", "directed", "integer values"]))
)
def test_spoiled_answers_are_refused_as_on_one_machine(turn, name, rest):
    A = ZOO[name]()
    for maximum in (False, True):
        one = minimum_spanning_forest(A, maximum=maximum)
        spoiled = [(one.edges, one.weights), *broken(A, one, maximum)]
        expected = []
        for edges, weights in spoiled:
            order = np.lexsort(edges.T[::-1])
            answer = edges[order] if weights is None else (edges[order], weights[order])
            ties = ("index", "any")[len(expected) % 2]
            expected.append(
                tried(lambda: check_spanning_forest(A, answer, maximum=maximum, ties=ties))  # noqa: B023
            )
        assert expected[0] is None
        assert sum(text is not None for text in expected) >= 7
        both = ((2, 3), (3, 1)) if maximum else ((1, 1), (4, 4))
        sides = both[(turn + maximum + rest) % 2]
        for found in dist.run(refusals_on, sides[0] * sides[1], A, sides, spoiled, maximum):
            assert found == expected, sides


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_forests_spoiled_on_one_rank_are_refused_on_all(kind):
    A = sp.csr_array(rmat(7, 5))
    A = sp.csr_array((np.ones(A.nnz, kind), A.indices, A.indptr), A.shape)

    def ask(comm):
        G = spread(comm, A, (2, 2))
        found = minimum_spanning_forest(G)
        here = comm.rank == 2
        edges, weights = found.edges, found.weights
        shares = comm.objects(edges)
        order = np.arange(len(edges))[::-1] if here else np.arange(len(edges))
        answers = [
            replace(found, total=found.total + here),
            replace(found, total="all" if here else found.total),
            replace(found, components=found.components + here),
            replace(found, n=found.n + here),
            replace(found, edges=edges[order], weights=weights[order]),
            replace(found, edges=edges[:, ::-1] if here else edges),
            replace(found, edges=shares[comm.rank ^ 1], weights=weights[:0]),
            replace(
                found, edges=shares[comm.rank ^ 1], weights=np.ones(len(shares[comm.rank ^ 1]))
            ),
            replace(found, edges=edges.astype(np.float64) if here else edges),
            replace(found, edges=edges + (here * G.n)),
            replace(found, weights=weights[1:] if here else weights),
            replace(found, weights=None if here else weights),
            replace(found, weights=weights.astype(np.float16) if here else weights),
            edges if here else found,
            None if here else found,
            edges if here else (edges, weights),
        ]
        return [tried(lambda answer=answer: check_spanning_forest(G, answer)) for answer in answers]

    first = alike(ask, 4)
    assert all(first), first
    for text, word in zip(first, ["total", "total", "components", "n is", "ascend", "smaller end"],
                          strict=False):  # fmt: skip
        assert word in text
    assert "must be on the rank that owns" in first[7]
