"""Linear forests: all methods give the same arrays, and the check is strict."""

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
from forests.tables import paths_and_cycles
from graphs import ZOO, grid, path, rmat, with_dtypes
from matchwood.factors import Factor, degree_factor
from matchwood.forests import LinearForest, check_linear_forest, linear_forest, tridiagonal_of
from matchwood.forests import cpu as forests_cpu
from strategies import graphs
from support import REST, some

ARRAYS = ("perm", "path", "position", "place", "offsets", "removed")
METHODS = ("splitters", "ranges", "walk", "doubling")
METHODS_AND_THREADS = (
    ("auto", 1), ("auto", 2), ("auto", 5), ("splitters", 1), ("splitters", 5), ("ranges", 2),
    ("ranges", 7),
)  # fmt: skip


def same(one: LinearForest, other: LinearForest) -> None:
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype, name
        assert np.array_equal(a, b), name


def all_methods(A: Any, expected: LinearForest, **options: Any) -> None:
    for method in METHODS:
        threads = 3 if method in ("splitters", "ranges") else 1
        same(linear_forest(A, method=method, threads=threads, **options), expected)


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("place", "name"), some(enumerate(ZOO)))
def test_zoo(place: int, name: str, rest: bool) -> None:
    zoo_graph = ZOO[name]()
    before = zoo_graph.copy()
    options: Any = ({}, {"rounds": None, "directed": True})[(place + rest) % 2]
    expected = linear_forest(zoo_graph, engine="reference", **options)
    expected.check(zoo_graph)
    all_methods(zoo_graph, expected, **options)
    assert np.array_equal(zoo_graph.data, before.data)
    assert np.array_equal(zoo_graph.indices, before.indices)


@pytest.mark.slow
@settings(max_examples=20)
@given(graphs(max_n=30, max_m=60), st.sampled_from([1, 3, 1 << 13]), st.booleans())
def test_random_graphs(A: sp.csr_array, spacing: int, directed: bool) -> None:
    expected = linear_forest(A, engine="reference", directed=directed, rounds=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forests_cpu, "SPACING", spacing)
        for method, threads in METHODS_AND_THREADS:
            found = linear_forest(A, method=method, threads=threads, directed=directed, rounds=None)
            same(found, expected)
    expected.check(A)
    dl, d, du = tridiagonal_of(A, expected, threads=3)
    B = A.toarray()[np.ix_(expected.perm, expected.perm)].astype(d.dtype)
    joined = np.zeros(A.shape[0], bool)
    joined[1:] = np.diff(expected.path[expected.perm]) == 0  # with the one before
    assert np.array_equal(d, np.diag(B))
    assert np.array_equal(dl[1:], np.diag(B, -1) * joined[1:])
    assert np.array_equal(du[:-1], np.diag(B, 1) * joined[1:])
    assert not dl[:1].any()
    assert not du[-1:].any()


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_paths_beside_cycles(ties: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for seed in range(6):
        paths, cycles = rng.integers(1, 40, 5).tolist(), rng.integers(3, 40, 5).tolist()
        A = paths_and_cycles(paths, cycles, seed=seed, shuffled=seed % 2 == 0, ties=ties)
        expected = linear_forest(A, engine="reference")
        assert expected.count == 10
        assert len(expected.removed) == 5
        assert sorted(np.diff(expected.offsets)) == sorted(paths + cycles)
        check_linear_forest(A, expected)
        all_methods(A, expected)
        for spacing in (1, 2, 5):
            monkeypatch.setattr(forests_cpu, "SPACING", spacing)
            for threads in (1, 3):
                same(linear_forest(A, method="splitters", threads=threads), expected)
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("index_dtype", "dtype"),
    [
        (np.int32, np.float32),
        (np.int32, np.float64),
        # compiles every kernel once more
        pytest.param(np.int64, np.float64, marks=pytest.mark.slow),
    ],
)
def test_types(index_dtype: type, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forests_cpu, "SPACING", 50)
    for A in (rmat(9, 6), grid(30, 40, 1.0), paths_and_cycles([300, 1], [200, 3])):
        G = matchwood.graph(with_dtypes(A, index_dtype, dtype), index_dtype=index_dtype)
        one = linear_forest(G, method="walk")
        assert one.perm.dtype == index_dtype
        same(linear_forest(G, threads=2), one)
        assert all(array.dtype == dtype for array in tridiagonal_of(G, one))
        one.check(G)


def test_edges_lie_next_to_the_diagonal() -> None:
    A = matchwood.generators.aniso(2, (30, 30))
    forest = linear_forest(A)
    dl, d, du = tridiagonal_of(A, forest)
    B = sp.csr_array(A)[forest.perm][:, forest.perm]
    inside = sp.diags_array([dl[1:], d, du[:-1]], offsets=[-1, 0, 1]).toarray()
    assert np.array_equal(inside != 0, (B.toarray() != 0) & (inside != 0))
    assert forest.coverage == pytest.approx(0.666, abs=0.02)
    assert forest.weight == pytest.approx(abs(du).sum())
    assert len(forest.edges()) == A.shape[0] - forest.count
    total = abs(A).sum() - abs(A.diagonal()).sum()
    assert forest.coverage == pytest.approx(2 * forest.weight / total)


def test_result() -> None:
    A = sp.csr_array([[0, 3, 0, 5, 0], [3, 0, 0, 4, 0], [0, 0, 0, 0, 9], [5, 4, 0, 0, 0],
                      [0, 0, 9, 0, 0]])  # fmt: skip
    forest = linear_forest(A)
    perm, path_of, position = forest
    assert perm.tolist() == [0, 3, 1, 2, 4]
    assert path_of.tolist() == [0, 0, 2, 0, 2]
    assert position.tolist() == [1, 3, 1, 2, 2]
    assert forest.place.tolist() == [0, 2, 3, 1, 4]
    assert forest.offsets.tolist() == [0, 3, 5]
    assert forest.removed.tolist() == [[0, 1]]
    assert forest.removed_weights.tolist() == [3.0]
    assert (forest.count, forest.weight, forest.coverage) == (2, 18.0, pytest.approx(18 / 21))
    assert forest.edges().tolist() == [[0, 3], [3, 1], [2, 4]]
    assert set(forest.seconds) == {"factor", "paths", "cycles", "permutation"}
    assert repr(forest) == "<LinearForest: 2 paths of 5 vertices, 1 cycles cut>"


def test_a_given_factor() -> None:
    A = rmat(8, 5)
    greedy = degree_factor(A, 2, method="greedy")
    from_it = linear_forest(A, factor=greedy)
    from_it.check(A)
    assert "factor" not in from_it.seconds
    same(linear_forest(A, factor=greedy.neighbours), from_it)
    matching = linear_forest(A, factor=degree_factor(A, 1))
    matching.check(A)
    assert np.diff(matching.offsets).max() == 2
    same(linear_forest(A, factor=degree_factor(A, 1).neighbours), matching)
    assert matching.weight == pytest.approx(degree_factor(A, 1).weight)


def test_of_a_directed_factor() -> None:
    """The weakest edge of a cycle is the one whose two entries have the least mean."""
    A = sp.csr_array([[0, 5, 4.0], [5, 0, 3], [1, 6, 0]])
    forest = linear_forest(A, directed=True, rounds=None)
    forest.check(A)
    assert forest.removed.tolist() == [[0, 2]]
    assert forest.removed_weights.tolist() == [2.5]


def test_bad_arguments() -> None:
    A = path(5)
    with pytest.raises(ValueError, match="linear_forest: method must be one of 'auto'"):
        linear_forest(A, method="best")
    with pytest.raises(TypeError, match="linear_forest: unknown argument 'k'"):
        linear_forest(A, k=3)
    with pytest.raises(
        TypeError, match="linear_forest: 'rounds' is for the factor, which is given"
    ):
        linear_forest(A, factor=degree_factor(A, 2), rounds=3)
    with pytest.raises(ValueError, match=r"the factor must have shape \(5, 2\).*got \(5, 3\)"):
        linear_forest(A, factor=degree_factor(A, 3))
    with pytest.raises(ValueError, match=r"linear_forest: the factor .* 0 lists 1, but 1 does not"):
        linear_forest(A, factor=[[1, -1], [2, -1], [1, -1], [-1, -1], [-1, -1]])
    with pytest.raises(ValueError, match="linear_forest: A must be square"):
        linear_forest(sp.csr_array((2, 3)))
    with pytest.raises(ValueError, match="the forest has 5 vertices, the matrix 6 rows"):
        tridiagonal_of(path(6), linear_forest(A))
    with pytest.raises(ValueError, match="must be finite, got nan"):
        linear_forest(sp.csr_array([[0, np.nan], [1, 0]]))


def test_the_check_finds_every_fault() -> None:
    A = paths_and_cycles([4, 3], [5], shuffled=False)
    right = linear_forest(A)
    check_linear_forest(A, right)
    u, v = right.removed[0].tolist()
    swapped = right.perm.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    place = np.empty_like(swapped)
    place[swapped] = np.arange(12)
    moved = right.position.copy()
    moved[3] = 1
    renamed = right.path.copy()
    renamed[:4] = 3
    other_end = dataclasses.replace(
        right, perm=np.array([3, 2, 1, 0, *right.perm[4:]]),
        position=np.array([4, 3, 2, 1, *right.position[4:]]),
        place=np.array([3, 2, 1, 0, *right.place[4:]]),
    )  # fmt: skip
    none = Factor(np.full((12, 2), -1, np.int32), np.zeros((12, 2)))
    for wrong, message in [
        (dataclasses.replace(right, perm=right.perm[:-1]), "perm must have 12 elements"),
        (dataclasses.replace(right, perm=right.perm + 1), r"perm\[11\] is 12, no vertex"),
        (dataclasses.replace(right, perm=swapped), r"perm\[0\] is 1, but place\[1\] is 1"),
        (dataclasses.replace(right, perm=swapped, place=place), "vertex 1 has position 2, but"),
        (dataclasses.replace(right, position=moved), "vertex 3 has position 1, but comes as"),
        (dataclasses.replace(right, path=renamed), "path 3 runs from 0 to 3; it must"),
        (other_end, "path 0 runs from 3 to 0; it must"),
        (dataclasses.replace(right, factor=none), "is not in the factor"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_linear_forest(A, wrong)
    B = A.copy()
    B[u, v] = B[v, u] = 99.0  # no longer the weakest
    heavier = degree_factor(B, 2)
    with pytest.raises(matchwood.CheckFailed, match="is the weakest of a cycle and must be"):
        check_linear_forest(B, dataclasses.replace(right, factor=heavier))
    cut_in_two = sp.csr_array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 3], [0, 0, 3, 0]])
    apart = linear_forest(path(4), factor=[[1, -1], [0, -1], [3, -1], [2, -1]])
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(1, 2\) of the factor is missing"):
        check_linear_forest(path(4), dataclasses.replace(apart, factor=degree_factor(path(4), 2)))
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(1, 2\) is not in the factor"):
        check_linear_forest(cut_in_two, _pretend(apart))


def _pretend(forest: LinearForest) -> LinearForest:
    """All four vertices as one path."""
    return dataclasses.replace(
        forest,
        perm=np.array([0, 1, 2, 3]), place=np.array([0, 1, 2, 3]),
        path=np.array([0, 0, 0, 0]), position=np.array([1, 2, 3, 4]),
    )  # fmt: skip


def test_old_letters_give_the_same_with_a_warning() -> None:
    A = rmat(7, 5)
    expected = linear_forest(A, rounds=7, period=3)
    with pytest.warns(DeprecationWarning, match="linear_forest: M is called rounds now"):
        same(linear_forest(A, M=7, period=3), expected)
    with pytest.raises(TypeError, match="linear_forest: 'm' is for the factor, which is given"):
        linear_forest(A, factor=expected.factor, m=3)


def test_the_result_shows_no_internal_field() -> None:
    names = list(inspect.signature(LinearForest).parameters)
    assert names == ["perm", "path", "position", "place", "factor"]
    assert not {"found", "factor_seconds"} & set(dir(linear_forest(path(5))))


def test_coefficients_equal_the_reference() -> None:
    for A in (rmat(8, 5), paths_and_cycles([30, 1], [20, 3]), sp.csr_array([[0.0, 2.0], [-3, 4]])):
        forest = linear_forest(A)
        expected = tridiagonal_of(A, forest, engine="reference")
        for threads in (1, 3):
            for one, other in zip(
                tridiagonal_of(A, forest, threads=threads), expected, strict=True
            ):
                assert one.dtype == other.dtype
                assert np.array_equal(one, other)


@pytest.mark.slow
def test_long_ones() -> None:
    """Ten million vertices in random order: one cycle, one path."""
    n = 10_000_000
    name = np.random.default_rng(0).permutation(n).astype(np.int32)
    table = np.empty((n, 2), np.int32)
    table[name, 0], table[name, 1] = np.roll(name, 1), np.roll(name, -1)
    weights = np.ones((n, 2), np.float32)
    for cycle in (True, False):
        if not cycle:
            table[name[0], 0] = table[name[-1], 1] = -1
            table[name[0]] = table[name[0], ::-1]
        one, other = (
            forests_cpu.forest(table, weights, method=method) for method in ("splitters", "walk")
        )
        for a, b in zip(one[:4], other[:4], strict=True):
            assert np.array_equal(a, b)
