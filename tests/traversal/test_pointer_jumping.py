"""Roots of forests: every engine equals the reference, cycles are named, the check finds faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO
from matchwood.check import check_forest_roots, is_forest_roots
from support import THREADS, looped


def shuffled(parent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same forest with its vertices in another order."""
    place = rng.permutation(parent.size)
    made = np.empty_like(parent)
    made[place] = np.where(parent < 0, -1, place[parent])
    return made


def a_forest(n: int, back: int, seed: int = 0) -> np.ndarray:
    """A parent at most `back` before each vertex; those of the first lead to -1 or themselves."""
    rng = np.random.default_rng(seed)
    parent = np.arange(n) - rng.integers(0, back + 1, n)
    return shuffled(np.maximum(parent, -1), rng)


def outcome(parent: np.ndarray, **options: object) -> object:
    """The roots, or what the error says."""
    try:
        return matchwood.forest_roots(parent, **options).tolist()
    except ValueError as error:
        return str(error)


@given(st.lists(st.integers(-1, 29), max_size=30))
def test_random_parents(parents: list[int]) -> None:
    """Most have a cycle: all engines name the same vertex."""
    parent = np.array([min(p, len(parents) - 1) for p in parents], np.int64)
    expected = outcome(parent, engine="reference")
    for threads in THREADS:
        assert outcome(parent, threads=threads) == expected
    if isinstance(expected, list):
        check_forest_roots(parent, expected)
    else:
        with pytest.raises(ValueError, match="^check_" + expected):
            check_forest_roots(parent, parent)


@looped(("n", "back"), [(0, 1), (1, 1), (2, 3), (50, 2), (3000, 1), (3000, 40), (200_000, 1)])
def test_forests_of_all_depths(n: int, back: int) -> None:
    for kind in (np.int32, np.int64):
        parent = a_forest(n, back).astype(kind)
        before = parent.copy()
        found = matchwood.forest_roots(parent)
        assert found.dtype == kind
        check_forest_roots(parent, found)
        if n <= 3000:
            assert np.array_equal(found, matchwood.forest_roots(parent, engine="reference"))
        for threads in THREADS:
            assert np.array_equal(matchwood.forest_roots(parent, threads=threads), found)
        assert np.array_equal(parent, before)


@pytest.mark.parametrize("name", ZOO)
def test_roots_of_a_search_are_its_sources(name: str) -> None:
    A = ZOO[name]()
    n = A.shape[0]
    if n == 0:
        return
    sources = sorted({0, n // 2, n - 1})
    search = matchwood.bfs(A, sources)
    roots = matchwood.forest_roots(search.parent)
    reached = search.level >= 0
    assert set(roots[reached].tolist()) == set(sources)
    assert np.array_equal(roots[~reached], np.flatnonzero(~reached))


@looped("length", [2, 3, 4, 8, 1000, 1024, 70_000])
def test_a_cycle_is_refused(length: int) -> None:
    """Also one of 2^k vertices, whose pointers come back to themselves."""
    rng = np.random.default_rng(length)
    n = 3 * length
    parent = np.where(np.arange(n) > 0, np.arange(n) - 1, -1)
    parent[length] = 2 * length - 1  # a cycle in the middle; what follows leads into it
    place = rng.permutation(n)
    given = np.empty_like(parent)
    given[place] = np.where(parent < 0, -1, place[parent])
    lost = int(place[length:].min())
    for threads in THREADS:
        with pytest.raises(ValueError, match=f"roots, got a cycle above vertex {lost}$"):
            matchwood.forest_roots(given, threads=threads)
    with pytest.raises(ValueError, match=f"^check_forest_roots: .* above vertex {lost}$"):
        check_forest_roots(given, given)


@looped(
    ("parent", "kind", "text"),
    [
        ([0.0, 1.0], TypeError, "parent must hold integers, got dtype float64"),
        ([True, False], TypeError, "parent must hold integers, got dtype bool"),
        ([[0], [1]], ValueError, r"parent must be one-dimensional, got shape \(2, 1\)"),
        ([0, 2], ValueError, r"parent must lie within -1\.\.1, got 2 at 1"),
        ([-2, 0], ValueError, r"parent must lie within -1\.\.1, got -2 at 0"),
        ([0, 2**40], ValueError, "parent must lie within"),
        (3, ValueError, "parent must be one-dimensional"),
    ],
)
def test_what_is_no_forest(parent: object, kind: type, text: str) -> None:
    with pytest.raises(kind, match=f"^forest_roots: {text}"):
        matchwood.forest_roots(parent)
    with pytest.raises(kind, match=f"^check_forest_roots: {text}"):
        check_forest_roots(parent, [0, 0])


@pytest.mark.slow
def test_the_check_finds_every_change() -> None:
    parent = a_forest(40, 5, seed=2)
    right = matchwood.forest_roots(parent)
    check_forest_roots(parent, right)
    for v in range(40):
        for wrong in range(-1, 41):
            answer = right.copy()
            answer[v] = wrong
            assert is_forest_roots(parent, answer) == (wrong == right[v])
    other = right.copy()  # a whole tree under another root
    roots = np.unique(right)
    other[right == roots[0]] = roots[1]
    assert not is_forest_roots(parent, other)
    with pytest.raises(matchwood.CheckFailed, match="root must have 40 elements"):
        check_forest_roots(parent, right[:-1])
    with pytest.raises(TypeError, match="root must hold integers"):
        check_forest_roots(parent, right.astype(float))
