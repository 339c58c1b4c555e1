"""Upper bounds: always proved, the same on every engine and team, and close to the optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, grid, random_graph, rmat, star
from matchwood import generators
from matchwood.matching import matching_bound, maximal_matching, weighted_matching
from matchwood.matching.bound.check import check_bound
from strategies import graphs
from support import cores

THREADS = sorted({1, 2, 3, 2 * cores() + 1})


@pytest.mark.parametrize("name", ZOO)
def test_proved_and_equal_to_the_reference(name: str) -> None:
    A = ZOO[name]()
    found = weighted_matching(A)
    expected = matching_bound(A, found, engine="reference")
    check_bound(A, expected)
    for threads in THREADS:
        bound = matching_bound(A, found, threads=threads)
        check_bound(A, bound)
        assert bound.value == pytest.approx(expected.value, rel=1e-12)
        np.testing.assert_allclose(bound.dual, expected.dual, rtol=1e-12, atol=1e-300)
    assert found.weight <= bound.value
    assert bound.value <= 2 * found.weight * (1 + 1e-9)  # where the sweeps begin


@pytest.mark.slow
@given(graphs(max_n=16, max_m=40))
def test_any_matching_gives_a_proof(A: sp.csr_array) -> None:
    n = A.shape[0]
    empty, greedy = np.full(n, -1), weighted_matching(A)
    for matching in (None, empty, greedy, weighted_matching(A, method="random_weighted")):
        for sweeps in (0, 1, 7):
            bound = matching_bound(A, matching, sweeps=sweeps)
            check_bound(A, bound)
            assert greedy.weight <= bound.value * (1 + 1e-12)


def test_threads_change_nothing() -> None:
    G = matchwood.graph(rmat(10, 6))
    value, dual = matching_bound(G, threads=1)
    for threads in THREADS[1:]:
        again = matching_bound(G, threads=threads)
        assert value == again.value
        assert np.array_equal(dual, again.dual)


def test_old_names_warn_and_work() -> None:
    A = generators.path(4)
    with pytest.warns(DeprecationWarning, match="upper_bound is now matchwood.matching_bound"):
        assert matchwood.upper_bound is matching_bound
    with pytest.warns(DeprecationWarning, match="is now matchwood.matching.coarsening_hierarchy"):
        old = matchwood.matching.multilevel
    assert old(A, until=2).sizes == matchwood.coarsening_hierarchy(A, until=2).sizes
    assert "upper_bound" not in dir(matchwood)


def test_close_to_the_best() -> None:
    """On bipartite graphs the best bound is the best matching."""
    for A in (grid(30, 30), star(200), generators.path(301), grid(20, 20, 1.0)):
        best = weighted_matching(A, method="exact").weight
        bound = weighted_matching(A).bound
        assert best <= bound * (1 + 1e-12) <= 1.05 * best


def test_sweeps_never_make_it_worse() -> None:
    A = random_graph(300, 900)
    values = [matching_bound(A, sweeps=sweeps).value for sweeps in (0, 1, 2, 4, 8, 16)]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values))


def test_unweighted_matchings_have_one_too() -> None:
    A = grid(20, 20, 1.0)
    check_bound(A, matching_bound(A, maximal_matching(A)))


def test_bad_arguments() -> None:
    A = grid(3, 3)
    with pytest.raises(ValueError, match="mate must have 9 elements, got shape"):
        matching_bound(A, [1, 0])
    with pytest.raises(ValueError, match="sweeps must be at least 0"):
        matching_bound(A, sweeps=-1)
    with pytest.raises(matchwood.EngineUnavailable):  # also where there is a GPU
        matching_bound(A, engine="gpu")
    with pytest.raises(ValueError, match="matching_bound: engine must be None or one of"):
        matching_bound(A, engine="fpga")


def test_the_check_sees_what_is_broken() -> None:
    A = grid(4, 4)
    value, dual = matching_bound(A)
    check_bound(A, (value, dual))
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(\d+, \d+\) weighs"):
        check_bound(A, (value * 0.9, dual * 0.9))
    with pytest.raises(matchwood.CheckFailed, match="the value is"):
        check_bound(A, (value * 0.9, dual))
    negative = dual.copy()
    negative[3] = -1.0
    with pytest.raises(matchwood.CheckFailed, match=r"dual\[3\] is -1.0"):
        check_bound(A, (value, negative))
    with pytest.raises(matchwood.CheckFailed, match="dual must have 16 elements"):
        check_bound(A, (value, dual[:5]))
