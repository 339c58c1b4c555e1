"""The checks of matchings find every fault, and name the vertices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import ZOO, from_edges
from matchwood.matching import (
    Matching,
    is_locally_dominant,
    is_matching,
    is_maximal_matching,
    maximal_matching,
    weighted_matching,
)
from matchwood.matching.check import check_locally_dominant, check_matching
from matchwood.matching.methods import Origin

SQUARE = sp.csr_array([[0, 4.0, 0, 0], [4.0, 0, 5.0, 0], [0, 5.0, 0, 4.0], [0, 0, 4.0, 0]])


@pytest.mark.parametrize(
    ("mate", "message"),
    [
        ([1, 0, 3], "mate must have 4 elements, got shape"),
        ([1, 0, 4, -1], r"mate\[2\] is 4, no vertex of 0..3"),
        ([1, 0, -2, -1], r"mate\[2\] is -2, no vertex"),
        ([1, 2, 1, -1], r"mate\[0\] is 1, but mate\[1\] is 2"),
        ([1, -1, -1, -1], r"mate\[0\] is 1, but mate\[1\] is -1"),
        ([0, -1, -1, -1], r"mate\[0\] is 0 itself"),
        ([2, -1, 0, -1], r"0 and 2 are matched, but \(0, 2\) is no edge"),
    ],
)
def test_what_is_no_matching(mate: list[int], message: str) -> None:
    assert not is_matching(SQUARE, mate)
    assert not is_maximal_matching(SQUARE, mate)
    assert not is_locally_dominant(SQUARE, mate)
    with pytest.raises(matchwood.CheckFailed, match=message):
        check_matching(SQUARE, mate)


def test_degrees_of_being_right() -> None:
    for mate, right in [
        ([-1, -1, -1, -1], (True, False, False)),
        ([1, 0, -1, -1], (True, False, False)),
        ([1, 0, 3, 2], (True, True, False)),
        ([-1, 2, 1, -1], (True, True, True)),
    ]:
        checks = (is_matching, is_maximal_matching, is_locally_dominant)
        assert tuple(check(SQUARE, mate) for check in checks) == right


def test_the_blocking_edge_is_named() -> None:
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(1, 2\) of weight 5.0 comes before"):
        check_locally_dominant(SQUARE, [1, 0, 3, 2])
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(1, 2\) of weight 1.0"):
        check_locally_dominant(from_edges(3, [1], [2]), [-1, -1, -1])


def test_ties_count() -> None:
    """Of the maximal matchings of a path of equal weights one is the greedy one."""
    A = from_edges(4, [0, 1, 2], [1, 2, 3])
    candidates = ([1, 0, 3, 2], [-1, 2, 1, -1])
    for ties in ("hash", "index"):
        for rng in range(8):
            right = [is_locally_dominant(A, mate, rng=rng, ties=ties) for mate in candidates]
            assert sum(right) == 1
    assert is_locally_dominant(A, candidates[0], ties="index")


def test_weight_and_bound_are_checked() -> None:
    right = weighted_matching(SQUARE)
    right.check(SQUARE)
    mate, weight = right
    with pytest.raises(matchwood.CheckFailed, match=r"the edges weigh 5.0, not 6.0"):
        Matching(mate, 6.0, method="suitor").check(SQUARE)
    with pytest.raises(matchwood.CheckFailed, match=r"exceeds its bound 4.0"):
        Matching(mate, weight, method="suitor", _origin=Origin(bound=4.0)).check(SQUARE)
    assert right.bound > 0
    right.check(SQUARE)


def test_zeros_are_edges_of_the_pattern_only() -> None:
    A = ZOO["explicit zeros"]()
    heavy, any_edges = weighted_matching(A), maximal_matching(A)
    heavy.check(A)
    any_edges.check(A)
    assert is_maximal_matching(A, heavy)
    assert is_maximal_matching(A, any_edges)
    zeros = from_edges(2, [0], [1], 0.0)
    assert is_maximal_matching(zeros, [-1, -1], weighted=True)
    assert not is_maximal_matching(zeros, [-1, -1])
    assert is_matching(zeros, [1, 0])
    assert not is_matching(zeros, [1, 0], weighted=True)


@pytest.mark.parametrize("name", ZOO)
def test_one_swap_is_seen(name: str) -> None:
    """Taking any edge out of a right answer makes it wrong."""
    A = ZOO[name]()
    mate = weighted_matching(A).mate.astype(np.int64)
    assert is_locally_dominant(A, mate)
    for u in np.flatnonzero(mate >= 0)[:3].tolist():
        wrong = mate.copy()
        wrong[mate[u]] = wrong[u] = -1
        assert is_matching(A, wrong)
        assert not is_maximal_matching(A, wrong, weighted=True)
        assert not is_locally_dominant(A, wrong)
