"""Checks of answers that live on a GPU, and what reaches its kernels."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import cycle, grid, path, random_graph
from matchwood.check import check_coarsening, check_locally_dominant, check_maximal_matching
from matchwood.factors import Factor, check_factor, degree_factor
from matchwood.forests import check_linear_forest, linear_forest, tridiagonal_of
from matchwood.matching import is_locally_dominant, is_matching, is_maximal_matching

pytestmark = pytest.mark.gpu

METHODS = ("greedy", "dominant", "suitor")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ties", ["hash", "index"])
def test_checks_run_where_the_answer_lives(method: str, ties: str) -> None:
    for A in (random_graph(300, 900), grid(15, 15), sp.csr_array((4, 4))):
        G = matchwood.graph(A).on("gpu")
        found = matchwood.weighted_matching(G, method=method, ties=ties)
        found.check(G)
        check_locally_dominant(G, found, ties=ties)
        check_maximal_matching(G, found, weighted=True)
        pickle.loads(pickle.dumps(found)).check(A)
        if found.cardinality:
            empty = dataclasses.replace(found, mate=0 * found.mate - 1, weight=0.0)
            with pytest.raises(matchwood.CheckFailed):
                empty.check(G)


def test_both_places_decide_alike() -> None:
    import cupy

    rng = np.random.default_rng(1)
    A = random_graph(12, 30)
    G = matchwood.graph(A)
    H = G.on("gpu")
    right = matchwood.weighted_matching(G).mate
    for _ in range(60):
        mate = right.copy()
        for v in rng.integers(0, 12, 2):
            mate[v] = rng.integers(-2, 13)
        for decide in (is_matching, is_maximal_matching, is_locally_dominant):
            assert decide(H, cupy.asarray(mate)) == decide(G, mate)
            assert decide(H, mate) == decide(G, mate)


@pytest.mark.parametrize("kind", [np.uint64, np.uint32, np.uint8])
def test_mates_do_not_wrap(kind: type) -> None:
    import cupy

    G = matchwood.graph(path(3)).on("gpu")
    mate = cupy.asarray(np.array([1, 0, np.iinfo(kind).max], kind))
    assert not is_matching(G, mate)
    for function in (matchwood.coarsen, matchwood.matching_bound):
        with pytest.raises(ValueError, match="no vertex of"):
            function(G, mate)
    with pytest.raises(TypeError, match="mate must hold integers"):
        matchwood.coarsen(G, cupy.asarray([1.0, 0.0, -1.0]))


def pairs(w: float, k: int = 2) -> Any:
    return sp.block_diag([[[0, w], [w, 0]]] * k, format="csr")


@pytest.mark.parametrize("method", [*METHODS, "proposal"])
def test_weights_at_the_ends_of_double_precision(method: str) -> None:
    def match(A: Any) -> Any:
        G = matchwood.graph(A).on("gpu")
        if method == "proposal":
            return matchwood.maximal_matching(G, weighted=True)
        return matchwood.weighted_matching(G, method=method)

    for w in (5e-324, 1e-310, 8e307):  # twice 1.6e308 is too much, the weight itself is not
        found = match(pairs(w))
        found.check(pairs(w))
        assert found.weight == 2 * w
        assert 0 < found.quality <= 1
    with pytest.raises(ValueError, match="divide the weights by a power of two"):
        match(pairs(1e308))


def test_coarse_sums() -> None:
    import cupy

    big = 0.6 * float(np.finfo(np.float64).max)
    A = sp.csr_array(np.array([[0, 1, big], [1, 0, big], [big, big, 0]]))
    G = matchwood.graph(A).on("gpu")
    with pytest.raises(ValueError, match="coarsen: the weights of merged edges"):
        matchwood.coarsen(G, [1, 0, -1])
    A = path(3)
    G = matchwood.graph(A).on("gpu")
    for weights in ([2**62, 2**62, 1], [1e308, 1e308, 1.0]):
        with pytest.raises(ValueError, match="coarsen: the vertex_weights of two merged"):
            matchwood.coarsen(G, [1, 0, -1], vertex_weights=cupy.asarray(weights))
    with pytest.raises(ValueError, match="vertex_weights must be finite"):
        matchwood.coarsen(G, [1, 0, -1], vertex_weights=cupy.asarray([1.0, np.nan, 1.0]))
    check_coarsening(G, [1, 0, -1], matchwood.coarsen(G, [1, 0, -1]))


@pytest.mark.parametrize("seed", range(20))
def test_directed_factors_equal_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    edges = rng.integers(0, n, (3 * n, 2))
    A = sp.coo_array((rng.integers(1, 4, 3 * n).astype(float), edges.T), shape=(n, n)).tocsr()
    for k in (1, 2, 3):
        options: dict[str, Any] = {"rounds": None, "period": 3, "rng": seed, "directed": True}
        found, expected = (
            degree_factor(A, k, engine="gpu", **options),
            degree_factor(A, k, engine="reference", **options),
        )
        assert np.array_equal(found.neighbours, expected.neighbours)
        assert (found.rounds, found.maximal) == (expected.rounds, expected.maximal)
        check_factor(A, found)


def test_wrong_factors_and_forests_reach_no_kernel() -> None:
    import cupy

    A = cycle(9)
    G = matchwood.graph(A).on("gpu")
    found = degree_factor(G, 2)
    table = found.neighbours.copy()
    table[0, 0] = 10**6
    for wrong in (
        table,
        Factor(table, found.weights),
        dataclasses.replace(found, neighbours=table),
    ):
        with pytest.raises(ValueError, match="linear_forest: the factor must be one of A"):
            linear_forest(G, factor=wrong)
    assert linear_forest(G, factor=found).factor is found
    forest = linear_forest(G)
    check_linear_forest(G, forest)
    for name in ("place", "position"):
        array = getattr(forest, name).copy()
        array[3] = 10**6
        with pytest.raises(ValueError, match="tridiagonal_of: forest must be a linear forest"):
            tridiagonal_of(G, dataclasses.replace(forest, **{name: array}))
    forest.place[3] = 10**6  # in place: passed over
    for array in tridiagonal_of(G, forest):
        assert type(array) is cupy.ndarray
    walked = pickle.loads(pickle.dumps(linear_forest(G)))
    assert len(tridiagonal_of(G, walked)[0]) == 9
