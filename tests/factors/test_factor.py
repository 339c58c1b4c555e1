"""[0,n]-factors: all engines give the same arrays, and the check is strict."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, cycle, grid, path, random_graph, rmat, star, with_dtypes
from matchwood.factors import (
    Factor,
    check_factor,
    check_maximal_factor,
    coverage_of_order,
    degree_factor,
    is_factor,
    is_maximal_factor,
)
from matchwood.factors.check import _sorted
from strategies import graphs
from support import REST, some

VARIANTS: list[dict[str, Any]] = [
    {"n": 1},
    {"n": 2},
    {"n": 2, "rounds": None, "ties": "hash"},
    {"n": 3, "rounds": None, "period": 1},
    {"n": 4, "ties": "hash", "charge_probability": 0.3, "uncharged": 1, "rng": 7},
    {"n": 2, "directed": True, "rounds": None},
    {"n": 2, "method": "greedy"},
    {"n": 3, "method": "greedy", "ties": "hash"},
]


THREADS = (1, 2, 3, 5)
TYPES = [
    (np.int32, np.float32),
    (np.int32, np.float64),
    # each compiles its kernels once more
    pytest.param(np.int64, np.float64, marks=pytest.mark.slow),
    pytest.param(np.int64, np.float32, marks=pytest.mark.slow),
]


def same(one: Factor, other: Factor) -> None:
    for a, b in ((one.neighbours, other.neighbours), (one.weights, other.weights)):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    assert (one.rounds, one.maximal) == (other.rounds, other.maximal)


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("place", "name"), some(enumerate(ZOO)))
def test_equals_the_reference(place: int, name: str, rest: bool) -> None:
    """Each graph has half of the variants, the next one the others."""
    zoo_graph = ZOO[name]()
    before = zoo_graph.copy()
    for options in VARIANTS[(place + rest) % 2 :: 2]:
        expected = degree_factor(zoo_graph, engine="reference", **options)
        expected.check(zoo_graph)
        for threads in (1, 3):
            same(degree_factor(zoo_graph, threads=threads, **options), expected)
    assert np.array_equal(zoo_graph.data, before.data)
    assert np.array_equal(zoo_graph.indices, before.indices)


@settings(max_examples=20)
@given(
    graphs(max_n=30, max_m=90),
    st.integers(1, 9),
    st.sampled_from([0, 1, 3, 5, None]),
    st.sampled_from([(1, 0), (2, 1), (5, 0), (5, 1)]),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.integers(0, 5),
    st.sampled_from(["index", "hash"]),
    st.booleans(),
)
def test_random_graphs(
    A: sp.csr_array,
    n: int,
    M: int | None,
    off: tuple[int, int],
    p: float,
    rng: int,
    ties: str,
    directed: bool,
) -> None:
    options = {
        "rounds": M, "period": off[0], "uncharged": off[1], "charge_probability": p, "rng": rng,
        "ties": ties,
    }  # fmt: skip
    expected = degree_factor(A, n, engine="reference", directed=directed, **options)
    for threads in (1, 5):
        same(degree_factor(A, n, directed=directed, threads=threads, **options), expected)
    expected.check(A)
    greedy = degree_factor(A, n, method="greedy", ties=ties, rng=rng)
    rounds = degree_factor(A, n, period=1, rounds=None, ties=ties, rng=rng)
    assert np.array_equal(greedy.neighbours, rounds.neighbours)
    check_maximal_factor(A, greedy)


@pytest.mark.slow
@pytest.mark.parametrize(("index_dtype", "dtype"), TYPES)
def test_larger_graphs(index_dtype: type, dtype: type) -> None:
    for A in (rmat(11, 6), grid(60, 70, 1.0)):
        G = matchwood.graph(with_dtypes(A, index_dtype, dtype), index_dtype=index_dtype)
        for ties in ("index", "hash"):
            one = degree_factor(G, 2, ties=ties, rounds=None, threads=1)
            assert one.neighbours.dtype == index_dtype
            assert one.weights.dtype == dtype
            for threads in THREADS[1:]:
                same(degree_factor(G, 2, ties=ties, rounds=None, threads=threads), one)
            check_maximal_factor(G, one)


def test_one_neighbour_is_a_matching() -> None:
    A = random_graph(200, 800)
    found = degree_factor(A, 1, method="greedy", ties="hash")
    taken: set[int] = set()
    upper = sp.coo_array(sp.triu(A, 1))
    weight = 0.0
    for k in np.argsort(-upper.data):
        u, v = int(upper.row[k]), int(upper.col[k])
        if not taken & {u, v}:
            taken |= {u, v}
            weight += float(upper.data[k])
    assert found.weight == pytest.approx(weight)


def test_enough_room_takes_everything() -> None:
    for A in (complete(7), star(12), cycle(9)):
        found = degree_factor(A, 11, rounds=None)
        assert found.cardinality == A.nnz // 2
        assert found.coverage == pytest.approx(1.0)
        assert found.rounds == 6  # all in round 0; the next without charges sees that


def test_result() -> None:
    A = sp.csr_array([[0, 1, 5, 4], [1, 0, 0, 2], [5, 0, 0, 3], [4, 2, 3, 0]])
    found = degree_factor(A, 2)
    neighbours, weights = found
    assert neighbours.tolist() == [[2, 3], [-1, -1], [0, 3], [0, 2]]
    assert weights.tolist() == [[5, 4], [0, 0], [5, 3], [4, 3]]
    assert (found.n, found.cardinality, found.weight, found.rounds) == (2, 3, 12.0, 5)
    assert found.edges().tolist() == [[0, 2], [0, 3], [2, 3]]
    assert not found.maximal
    assert is_maximal_factor(A, found)
    assert repr(found) == "<Factor: [0,2], 3 edges of 4 vertices, coverage 0.800, 5 rounds>"
    with pytest.raises(ValueError, match="does not know its graph"):
        _ = Factor(neighbours, weights).coverage


def test_values_without_symmetry_are_added() -> None:
    A = sp.csr_array([[0.0, 3.0, 1.0], [1.0, 0.0, 0.0], [4.0, 0.0, 9.0]])
    found = degree_factor(A, 1)
    assert found.edges().tolist() == [[0, 2]]
    assert (found.weight, found.coverage) == (5.0, 5 / 9)  # of |a_ij| with i != j
    directed = degree_factor(A, 1, directed=True, rounds=None)
    assert directed.edges().tolist() == [[0, 1]]
    assert directed.weights.ravel().tolist() == [3.0, 1.0, 0.0]
    assert (directed.weight, directed.coverage) == (2.0, 4 / 9)


def test_charges_break_rows_of_proposals() -> None:
    A = matchwood.generators.path(200)  # equal weights
    plain = degree_factor(A, 1, rounds=5, period=1, ties="index")
    assert plain.cardinality == 5  # one a round, from the end
    assert degree_factor(A, 1, rounds=5).cardinality > 60
    assert degree_factor(A, 1, rounds=5, ties="hash").cardinality > 60


def test_coverage_of_order() -> None:
    assert coverage_of_order(path(9)) == 1.0
    assert coverage_of_order(sp.csr_array((3, 3))) == 0.0
    assert coverage_of_order(sp.csr_array([[7, 1, -2], [0, 1, 0], [0, -3, 1]])) == 4 / 6
    A = matchwood.generators.aniso(1, (40, 40))
    inner = abs(sp.diags_array([A.diagonal(-1), A.diagonal(1)], offsets=[-1, 1])).sum()
    expected = inner / (abs(A).sum() - abs(A.diagonal()).sum())
    assert coverage_of_order(A) == pytest.approx(expected)


def test_bad_arguments() -> None:
    A = path(5)
    for options, message in [
        ({"n": 0}, "n must be at least 1"),
        ({"n": 2, "period": 0}, "period must be at least 1"),
        ({"n": 2, "period": 3, "uncharged": 3}, "uncharged must be below period"),
        ({"n": 2, "rounds": -1}, "rounds must be at least 0"),
        ({"n": 2, "charge_probability": 1.5}, "charge_probability must be"),
        ({"n": 2, "ties": "none"}, "ties must be one of 'index', 'hash'"),
        ({"n": 2, "method": "best"}, "method must be one of 'auto', 'parallel', 'greedy'"),
        ({"n": 2, "method": "greedy", "directed": True}, "directed=True needs method='parallel'"),
    ]:
        with pytest.raises(ValueError, match=f"degree_factor: .*{message}"):
            degree_factor(A, **options)
    with pytest.raises(TypeError, match="n must be an integer"):
        degree_factor(A, 2.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="degree_factor: A must be square"):
        degree_factor(sp.csr_array((2, 3)), 1)
    bad = sp.csr_array([[0, np.nan], [1, 0]])
    for directed in (False, True):
        with pytest.raises(
            ValueError, match="degree_factor: weights must be finite, got nan at row 0"
        ):
            degree_factor(bad, 1, directed=directed)


def test_the_check_sorts_as_lexsort_does() -> None:
    rng = np.random.default_rng(5)
    for size, values in ((0, 1), (1, 1), (300, 3), (300, 2**62)):
        rows = np.sort(rng.integers(0, 20, size))
        keys = [rng.integers(-values, values, size) for _ in range(3)]
        right = np.lexsort((np.arange(size), *keys[::-1], rows))
        assert (_sorted(rows, *keys, np.arange(size)) == right).all()


def test_the_check_finds_every_fault() -> None:
    A = cycle(4)
    right = degree_factor(A, 2)
    check_factor(A, right)
    check_maximal_factor(A, right.neighbours)
    none = [-1, -1]
    for table, message in [
        ([[1, 3], [0, 2], [1, 3], [0, 0]], "vertex 3 lists 0 twice"),
        ([[1, 3], [0, 2], [1, 3], [2, -1]], "vertex 0 lists 3, but 3 does not list 0"),
        ([[2, -1], none, [0, -1], none], r"vertex 0 lists 2, but \(0, 2\) is no edge"),
        ([[0, -1], none, none, none], r"vertex 0 lists 0, but \(0, 0\) is no edge"),
        ([[4, -1], none, none, none], "vertex 0 lists 4, no vertex of 0..3"),
        ([[-2, -1], none, none, none], "vertex 0 lists -2, no vertex"),
        ([[1, 3]], r"must have shape \(4, n\), got \(1, 2\)"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_factor(A, table)
        assert not is_factor(A, table)
    loose = [[1, -1], [0, -1], none, none]
    assert is_factor(A, loose)
    assert not is_maximal_factor(A, loose)
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(0, 3\) could be added.* 1 and 0 of 2"):
        check_maximal_factor(A, loose)
    for weights, message in [
        (2 * right.weights, "weighs 1.0, got 2.0"),
        (right.weights[:, :1], r"weights must have shape \(4, 2\)"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_factor(A, Factor(right.neighbours, weights))
    spare = Factor(np.full((4, 2), -1), np.ones((4, 2)))
    with pytest.raises(matchwood.CheckFailed, match="vertex 0 has no neighbour 0, but a weight 1"):
        check_factor(A, spare)


def test_the_best_method_is_the_default() -> None:
    A = random_graph(60, 200)
    same(degree_factor(A, 2), degree_factor(A, 2, method="parallel"))
    same(degree_factor(A, 2, method="auto"), degree_factor(A, 2))
    check_factor(A, degree_factor(A, 2).neighbours, method="auto")


def test_old_names_give_the_same_with_a_warning() -> None:
    A = random_graph(60, 200)
    words = {"rounds": 7, "period": 3, "uncharged": 1, "charge_probability": 0.4}
    letters = {"M": 7, "m": 3, "k_m": 1, "p": 0.4}
    expected = degree_factor(A, 2, **words)
    with pytest.warns(DeprecationWarning, match="factor is called degree_factor now"):
        same(matchwood.factor(A, 2, **words), expected)
    for old, new in zip(letters, words, strict=True):
        some = {name: value for name, value in words.items() if name != new}
        with pytest.warns(DeprecationWarning, match=f"degree_factor: {old} is called {new}"):
            same(degree_factor(A, 2, **some, **{old: letters[old]}), expected)
        with pytest.warns(DeprecationWarning, match=f"check_factor: {old} is called {new}"):
            check_factor(A, expected, method="auto", **some, **{old: letters[old]})
    with pytest.raises(TypeError, match="degree_factor: unknown argument 'q'"):
        degree_factor(A, 2, q=1)
    with pytest.raises(TypeError, match="check_factor: unknown argument 'q'"):
        check_factor(A, expected, q=1)


def test_the_result_shows_no_internal_field() -> None:
    names = list(inspect.signature(Factor).parameters)
    assert names == ["neighbours", "weights", "rounds", "maximal", "directed", "stats"]
    found = degree_factor(path(5), 2)
    assert not {"view", "plan"} & set(dir(found))
    again = dataclasses.replace(found, rounds=9)  # remembers its graph and its arguments
    assert again.coverage == found.coverage
    with pytest.raises(matchwood.CheckFailed, match="rounds is 9"):
        again.check(path(5))


def test_tables_of_any_class_are_read() -> None:
    found = degree_factor(cycle(6), 2)
    table = np.array(found.neighbours)
    for other in (memoryview(table), table.tolist(), table.view(np.recarray)):
        made = dataclasses.replace(found, neighbours=other)
        assert (made.n, made.cardinality) == (2, 6)
        assert made.edges().tolist() == found.edges().tolist()
        assert "6 edges of 6 vertices" in repr(made)
    masked = dataclasses.replace(found, neighbours=np.ma.masked_array(table, table == 0))
    with pytest.raises(TypeError, match=r"Factor\.n: neighbours must be an array without a mask"):
        _ = masked.n
