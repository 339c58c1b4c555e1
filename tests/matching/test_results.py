"""Results can be pickled, copied and returned by a worker; each is checked by its method."""

from __future__ import annotations

import concurrent.futures
import copy
import dataclasses
import inspect
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import matchwood
from graphs import cycle, grid, path, random_graph
from matchwood.factors import Factor, degree_factor
from matchwood.factors.result import origin_of
from matchwood.forests import linear_forest, tridiagonal_of
from matchwood.matching import (
    Matching,
    coarsen,
    coarsening_hierarchy,
    maximal_matching,
    weighted_matching,
)


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("send", [sent, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deep"])
def test_a_matching_travels(send: Any) -> None:
    A = random_graph(60, 200)
    for found in (
        weighted_matching(A),
        weighted_matching(A, method="streaming"),
        maximal_matching(A),
        maximal_matching(A, weighted=True),
    ):
        other = send(found)
        assert np.array_equal(other.mate, found.mate)
        assert dict(other.seconds) == dict(found.seconds)
        assert (other.method, other.matched_by_round) == (found.method, found.matched_by_round)
        other.check(A)
        assert other.bound == found.bound  # from its graph, or known
        again = send(found)  # now the bound is known, and the graph stays behind
        assert "bound" in vars(again) or again._origin.bound is not None
        assert again._origin.graph is None
        assert again.quality == found.quality


@pytest.mark.parametrize("send", [sent, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deep"])
def test_factors_and_forests_travel(send: Any) -> None:
    A = cycle(9)
    for directed in (False, True):
        found, forest = degree_factor(A, 2, directed=directed), linear_forest(A, directed=directed)
        other = send(found)
        assert np.array_equal(other.neighbours, found.neighbours)
        assert (other.coverage, other.weight, origin_of(other).plan) == (
            found.coverage, found.weight, origin_of(found).plan,
        )  # fmt: skip
        other.check(A)
        assert np.array_equal(linear_forest(A, factor=other).perm, forest.perm)
        walked = send(forest)
        walked.check(A)
        assert walked.removed.tolist() == forest.removed.tolist()
        assert walked.seconds == forest.seconds
        assert (walked.weight, walked.coverage) == (forest.weight, forest.coverage)
        for one, two in zip(tridiagonal_of(A, walked), tridiagonal_of(A, forest), strict=True):
            assert np.array_equal(one, two)


def test_coarsenings_travel() -> None:
    A = grid(4, 4)
    found = weighted_matching(A)
    level, levels = sent(coarsen(A, found)), sent(coarsening_hierarchy(A, until=2))
    matchwood.check.check_coarsening(A, found, level)
    assert levels.sizes == coarsening_hierarchy(A, until=2).sizes
    assert sent(matchwood.matching_bound(A)).value == matchwood.matching_bound(A).value


def _match(seed: int) -> Matching:
    return weighted_matching(random_graph(30, 60), rng=seed, threads=1)


@pytest.mark.slow
def test_a_worker_of_a_pool_returns_a_matching() -> None:
    """Also one that starts from nothing, as on Windows and macOS."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.submit(weighted_matching, random_graph(30, 60), threads=1).result()
    expected = _match(0)
    assert np.array_equal(found.mate, expected.mate)
    assert found.bound == expected.bound
    found.check(random_graph(30, 60))


def refuses_an_empty_matching(A: Any, method: str) -> None:
    found = weighted_matching(A, method=method)
    found.check(A)
    empty = dataclasses.replace(found, mate=np.full(A.shape[0], -1), weight=0.0)
    with pytest.raises(matchwood.CheckFailed):
        empty.check(A)


def test_an_empty_matching_is_not_the_heaviest() -> None:
    pytest.importorskip("rustworkx", reason="a heaviest matching needs rustworkx here")
    refuses_an_empty_matching(random_graph(20, 60), "exact")


def test_an_empty_matching_is_refused_by_every_method() -> None:
    A = random_graph(20, 60)
    for method in ("greedy", "dominant", "suitor", "augmented", "streaming", "random_weighted"):
        refuses_an_empty_matching(A, method)
    for weighted in (False, True):
        found = maximal_matching(A, weighted=weighted)
        found.check(A)
        empty = dataclasses.replace(
            found, mate=np.full(20, -1), weight=0.0, _origin=found._origin._replace(bound=None)
        )
        with pytest.raises(matchwood.CheckFailed, match="can be added"):
            empty.check(A)


def test_a_factor_of_another_graph_is_refused() -> None:
    A, B = cycle(8), matchwood.generators.path(8)
    with pytest.raises(ValueError, match=r"linear_forest: the factor .* \(0, 7\) is no edge"):
        linear_forest(B, factor=degree_factor(A, 2))
    heavier = degree_factor(2 * A, 2)
    with pytest.raises(ValueError, match=r"edge \(0, 7\) weighs 1.0, got 2.0"):
        linear_forest(A, factor=heavier)
    G = matchwood.graph(A)
    found = degree_factor(G, 2)
    assert linear_forest(G, factor=found).factor is found


def test_the_arrays_of_factors_and_forests_cannot_be_changed() -> None:
    forest = linear_forest(matchwood.graph(cycle(8)))
    for array in (*forest.factor, *forest, forest.place):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 10**6
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_results_see_that_the_matrix_they_keep_has_changed() -> None:
    A = cycle(8).astype(float)
    matching, factor = weighted_matching(A), degree_factor(A, 2)
    M = matchwood.preconditioners.algebraic_tridiagonal(A, allow_singular=True)
    known = matching.bound, factor.coverage, M.coverage
    later = weighted_matching(A), degree_factor(A, 2)
    A.data *= 2
    assert known == (matching.bound, factor.coverage, M.coverage)  # found out before
    for ask in (lambda: later[0].bound, lambda: later[1].coverage, lambda: M.definite):
        with pytest.raises(ValueError, match=r"A must stay as it was .* got other values of data"):
            ask()


def test_a_factor_by_hand_needs_no_weights_of_its_own_type() -> None:
    """Integers, or another precision: the weights are those of the graph."""
    A = cycle(6).astype(np.float32)
    found = degree_factor(A, 2)
    for kind in (np.float32, np.float64, np.int64):
        mine = Factor(found.neighbours.astype(np.int64), found.weights.astype(kind))
        assert np.array_equal(linear_forest(A, factor=mine).perm, linear_forest(A).perm)


def test_fields_of_the_first_version_warn() -> None:
    """0.1.0 had `graph` and `known_bound`, which were not described, but could be read."""
    A = random_graph(20, 40)
    found, known = weighted_matching(A), weighted_matching(A, method="streaming")
    with pytest.warns(DeprecationWarning, match="keep the graph yourself"):
        assert found.graph is found._origin.graph
    with pytest.warns(DeprecationWarning, match="ask for bound"):
        assert known.known_bound == known.bound
    with pytest.raises(AttributeError):
        found.graph = None


def test_a_matching_pickled_by_the_first_version_is_read() -> None:
    A = random_graph(20, 40)
    found = weighted_matching(A)
    old = {key: value for key, value in vars(found).items() if key != "_origin"}
    read = object.__new__(Matching)
    read.__setstate__({**old, "graph": found._origin.graph, "known_bound": None})
    assert read.bound == found.bound
    read.__setstate__({**old, "graph": None, "known_bound": 7.5})
    assert read._origin.bound == 7.5
    read.check(A)


def test_the_result_shows_no_internal_field() -> None:
    names = list(inspect.signature(Matching).parameters)
    assert names == ["mate", "weight", "rounds", "method", "seconds", "matched_by_round", "stats"]
    found = weighted_matching(path(5))
    assert not {"origin", "seed", "ties"} & set(dir(found))
