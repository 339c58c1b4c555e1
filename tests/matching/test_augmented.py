"""Short augmentations: one answer, never lighter than greedy, and no exchange left that gains."""

from __future__ import annotations

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, complete, from_edges, grid, path, rmat
from matchwood.errors import CheckFailed
from matchwood.matching import weighted_matching
from matchwood.matching.augmented import LIMIT, exponent_of, two_factors
from matchwood.matching.augmented.check import check_augmented
from strategies import graphs
from support import some

THREADS = (1, 2, 3, 7)
TIES = ("hash", "index")


def assert_one_answer(A, rng=0, threads=THREADS, ties=TIES, rounds=None):
    for tie in ties:
        options = {"method": "augmented", "ties": tie, "rng": rng, "rounds": rounds}
        expected = weighted_matching(A, engine="reference", **options)
        for count in threads:
            found = weighted_matching(A, threads=count, **options)
            assert np.array_equal(found.mate, expected.mate)
            assert found.mate.dtype == expected.mate.dtype
            assert found.rounds == expected.rounds
            assert found.weight == pytest.approx(expected.weight, rel=1e-12)
        found.check(A)
        greedy = weighted_matching(A, ties=tie, rng=rng)
        assert found.weight >= greedy.weight * (1 - 1e-12)


@pytest.mark.parametrize("name", some(ZOO))
def test_equals_the_reference(name):
    assert_one_answer(ZOO[name](), rng=3)


@pytest.mark.slow
@given(graphs())
def test_random_graphs(A):
    assert_one_answer(A, threads=(1, 3))


def with_weights(A, draw):
    upper = sp.triu(A, 1).tocoo()
    w = draw(np.random.default_rng(5), upper.nnz)
    return from_edges(A.shape[0], upper.row, upper.col, w)


WEIGHTS = {
    "two levels": lambda rng, m: rng.integers(1, 3, m),
    "many": lambda rng, m: rng.random(m),
    "wide range": lambda rng, m: rng.lognormal(0, 9, m),
    "subnormal": lambda rng, m: rng.integers(1, 9, m) * 5e-324,
    "huge": lambda rng, m: rng.random(m) * 1e300,
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name):
    for A in (grid(12, 13), rmat(7, 6), complete(17)):
        assert_one_answer(with_weights(A, WEIGHTS[name]), threads=(1, 3))


@pytest.mark.parametrize("kind", some([np.float64, np.float32]))
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types(kind, index):
    A = with_weights(rmat(7, 6), lambda rng, m: rng.integers(1, 1000, m)).astype(kind)
    A = sp.csr_array((A.data, A.indices.astype(index), A.indptr.astype(index)), shape=A.shape)
    assert_one_answer(A, threads=(2,))


def test_two_thirds():
    """Of the heaviest matching, on graphs where that can be found."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        n = int(rng.integers(2, 14))
        A = with_weights(complete(n), lambda rng, m: rng.integers(1, 20, m))
        found = weighted_matching(A, method="augmented")
        best = nx.max_weight_matching(nx.from_scipy_sparse_array(A))
        assert 3 * found.weight >= 2 * sum(A[u, v] for u, v in best)


def test_a_path_is_exchanged():
    A = from_edges(4, [0, 1, 2], [1, 2, 3], [4, 5, 4])
    assert weighted_matching(A, method="augmented").edges().tolist() == [[0, 1], [2, 3]]


def test_a_cycle_is_exchanged():
    """10 + 1 against 9 + 5: neither edge gains by arms alone."""
    A = from_edges(4, [0, 2, 1, 0], [1, 3, 2, 3], [1, 10, 9, 5])
    assert weighted_matching(A).weight == 11
    assert weighted_matching(A, method="augmented").weight == 14


def test_rounds_are_bounded():
    """A long chain of exchanges, each of which the next one waits for."""
    A = from_edges(3000, np.arange(2999), np.arange(1, 3000), np.arange(2999) * 3 % 2999 + 1)
    found = weighted_matching(A, method="augmented")
    assert found.rounds <= LIMIT
    found.check(A)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_fewer_rounds(rounds):
    for A in (grid(12, 13), rmat(7, 6), complete(17)):
        assert_one_answer(with_weights(A, WEIGHTS["many"]), threads=(1, 3), rounds=rounds)


def test_each_round_wins():
    A = with_weights(grid(30, 31), WEIGHTS["many"])
    all_of_it = weighted_matching(A, method="augmented")
    found = [
        weighted_matching(A, method="augmented", rounds=k + 1) for k in range(all_of_it.rounds)
    ]
    assert [one.rounds for one in found] == list(range(1, all_of_it.rounds + 1))
    weights = [weighted_matching(A).weight, *(one.weight for one in found)]
    assert len(weights) > 3
    assert np.all(np.diff(weights) > 0)
    assert np.array_equal(found[-1].mate, all_of_it.mate)
    for one in found:
        one.check(A)
    check_augmented(A, found[0], rounds=1)
    with pytest.raises(CheckFailed):  # that it was stopped is not known
        check_augmented(A, found[0])
    more = weighted_matching(A, method="augmented", rounds=2**63 - 1)
    assert np.array_equal(more.mate, all_of_it.mate)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "1", True, [1]])
def test_wrong_rounds(rounds):
    with pytest.raises((TypeError, ValueError), match="weighted_matching: rounds must be"):
        weighted_matching(path(5), method="augmented", rounds=rounds)


def test_rounds_of_another_method():
    with pytest.raises(ValueError, match="rounds needs method=\"augmented\", got 'auto'"):
        weighted_matching(path(5), rounds=1)


def test_huge_sums():
    A = from_edges(6, [0, 2, 4], [1, 3, 5], [1.7e308, 1.0, 1e308])
    with pytest.raises(ValueError, match="weight of the matching"):
        weighted_matching(A, method="augmented")


def test_the_check_can_fail():
    A = from_edges(6, [0, 1, 2, 4], [1, 2, 3, 5], [4, 5, 4, 1])
    check_augmented(A, [1, 0, 3, 2, 5, 4])
    with pytest.raises(CheckFailed, match="exchanged for more"):
        check_augmented(A, [-1, 2, 1, -1, 5, 4])
    with pytest.raises(CheckFailed, match="free and joined"):
        check_augmented(A, [1, 0, 3, 2, -1, -1])
    with pytest.raises(CheckFailed, match="below that of the greedy"):
        check_augmented(A, [1, 0, -1, -1, -1, -1])
    square = from_edges(4, [0, 2, 1, 0], [1, 3, 2, 3], [1, 10, 9, 5])
    with pytest.raises(CheckFailed, match="heavier than the edges"):
        check_augmented(square, [1, 0, 3, 2])


def test_breaking_answers():
    """Two edges exchanged by hand: the check sees what was lost."""
    A = with_weights(grid(9, 9), lambda rng, m: rng.random(m))
    right = weighted_matching(A, method="augmented").mate
    check_augmented(A, right)
    for u in np.flatnonzero(right > np.arange(right.size))[::5]:
        wrong = right.copy()
        wrong[[u, right[u]]] = -1
        with pytest.raises(CheckFailed):
            check_augmented(A, wrong)


def test_factors():
    for heaviest in (5e-324, 1e-300, 1.0, 3.0, 1e300, 1.7e308):
        first, second = two_factors(heaviest)
        assert 2**59 <= heaviest * first * second < 2**60
        assert np.log2(first) + np.log2(second) == exponent_of(heaviest)


def test_an_empty_graph():
    for n in (0, 1, 5):
        found = weighted_matching(sp.csr_array((n, n)), method="augmented")
        assert found.mate.tolist() == [-1] * n
        assert (found.weight, found.rounds) == (0, 0)


@pytest.mark.skipif("MATCHWOOD_DATA" not in os.environ, reason="needs real graphs")
def test_real_graphs():
    data = Path(os.environ["MATCHWOOD_DATA"])
    for name in ("graphs/cora_citations.mtx.gz", "graphs/astro-ph.mtx.gz"):
        if not (data / name).exists():
            continue
        G = matchwood.graph(matchwood.io.read(data / name))
        greedy, found = weighted_matching(G), weighted_matching(G, method="augmented")
        found.check(G)
        assert found.weight > 1.05 * greedy.weight


def test_a_path_of_equal_weights():
    """Greedy leaves free vertices three edges apart; an exchange of the middle one joins both."""
    A = path(2001)
    A.data[:] = 1
    greedy, found = weighted_matching(A), weighted_matching(A, method="augmented")
    assert found.cardinality > greedy.cardinality
    check_augmented(A, found)


@pytest.mark.slow
def test_many_schedules():
    """More members than cores are interrupted anywhere; every run gives the one answer."""
    for A in (rmat(11, 8), grid(50, 50)):
        for draw in (WEIGHTS["two levels"], WEIGHTS["many"]):
            G = matchwood.graph(with_weights(A, draw))
            expected = weighted_matching(G, method="augmented", threads=1)
            for k in range(12):
                found = weighted_matching(G, method="augmented", threads=2 + k % 7)
                assert np.array_equal(found.mate, expected.mate)
                assert found.rounds == expected.rounds
                assert found.weight == expected.weight
