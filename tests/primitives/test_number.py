"""Roots numbered by a team: as the reference does, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.engines.cpu import barrier, crew, kernel, share
from matchwood.errors import CheckFailed
from matchwood.primitives.community_merge import cpu as community_merge
from matchwood.primitives.contract import cpu as contract
from matchwood.primitives.number import cpu, number_labels, reference
from matchwood.primitives.number.check import check_numbers
from matchwood.primitives.number.cpu import NO_OFFER, flatten, number_roots, number_wanted
from support import looped


@kernel
def _all(team, up, numbers, sums):
    lo, hi = share(team, up.size)
    if not flatten(up, lo, hi):
        sums[team.size] = -1
    if barrier(team):
        return
    number_roots(team, up, numbers, sums)


@kernel
def _wanted(team, root, offers, numbers, sums):
    total = number_wanted(team, root, root.size, offers, False, numbers, sums)
    if team.me == 0:
        sums[team.size] = total


def trees(rng, n: int, roots: int) -> np.ndarray:
    """Chains and stars: every vertex hangs under a smaller one, or is one of the first."""
    up = np.minimum(rng.integers(0, np.arange(n) + 1), np.arange(n))
    up[:roots] = np.arange(roots)
    return up.astype(np.uint32)


@pytest.mark.slow
@looped(("n", "roots"), [(1, 1), (7, 7), (50, 1), (1000, 1), (5000, 70)])
def test_roots_are_numbered_in_the_order_of_vertices(n, roots):
    rng = np.random.default_rng(n)
    up = trees(rng, n, roots)
    root = up.copy()
    for v in range(n):
        root[v] = root[up[v]] if up[v] != v else v
    count, expected = reference.number_roots(root)
    offers = np.where(rng.random(n) < 0.5, NO_OFFER, np.uint64(1))
    wanted = np.flatnonzero((root == np.arange(n)) & (offers != NO_OFFER))
    for threads in (1, 2, 3, 8):
        team = crew(threads, work=1 << 40)
        sums = np.zeros(team.size + 1, np.int64)
        hung, numbers = up.copy(), np.empty(n, np.uint32)
        team.run(_all, hung, numbers, sums)
        assert np.array_equal(hung, root)
        assert sums[-1] == count
        assert np.array_equal(numbers, expected)
        check_numbers(root, numbers, count)
        team.run(_wanted, root, offers, numbers, sums)
        assert sums[-1] == wanted.size
        kept = np.isin(root, wanted)
        assert np.array_equal(numbers[kept], np.searchsorted(wanted, root[kept]))


def test_without_numbers_nothing_is_written(monkeypatch):
    """Ctrl-C comes while roots are counted: what has not been numbered is no place to write to."""

    class Alone:
        me, size = 0, 1

    def all_of(team, n):
        return 0, n

    for name, stand_in in (("barrier", lambda team: True), ("share", all_of)):
        monkeypatch.setattr(cpu, name, stand_in)
    monkeypatch.setattr(cpu, "number_wanted", number_wanted.py_func)
    for module in (contract, community_merge):
        monkeypatch.setattr(module, "number_roots", number_roots.py_func)
        monkeypatch.setattr(module, "barrier", lambda team: False)
        monkeypatch.setattr(module, "share", all_of)
    monkeypatch.setattr(community_merge, "flatten", lambda *given: True)
    mate, sums = np.array([1, 0, -1]), np.zeros(2, np.int64)
    root, numbers, weights, roots = np.zeros(3, int), np.full(3, 2), np.zeros(3), np.zeros(3)
    contract._number_pairs.py_func(Alone, mate, mate * 0 + 1, root, sums, numbers, weights)
    community_merge._trees.py_func(Alone, np.arange(3), root, numbers, roots, sums)
    assert not weights.any()
    assert not roots.any()


def test_the_check_fails():
    root = np.array([0, 0, 2, 2, 4])
    numbers = np.array([0, 0, 1, 1, 2])
    check_numbers(root, numbers, 3)
    check_numbers(root[:0], numbers[:0], 0)
    spoiled = [
        (root, numbers, 2, "there are 3 roots"),
        (root, numbers[:4], 3, "must have 5 elements"),
        (root, np.array([1, 1, 0, 0, 2]), 3, "root 0 must have number 0, got 1"),
        (root, np.array([0, 0, 1, 2, 2]), 3, "vertex 3 has number 2, its root 2 has 1"),
        (np.array([0, 0, 1, 2, 4]), numbers, 3, "1, above vertex 2, is no root"),
        (np.array([0, 0, 9, 2, 4]), numbers, 3, "9, above vertex 2, is no root"),
    ]
    for up, given, count, says in spoiled:
        with pytest.raises(CheckFailed, match=says):
            check_numbers(up, given, count)
    with pytest.raises(TypeError, match="check_numbers: numbers must hold integers"):
        check_numbers(root, numbers / 2, 3)


def test_a_way_without_a_root_is_seen():
    up = np.array([1, 2, 0], np.uint32)
    sums = np.zeros(2, np.int64)
    team = crew(1, work=1)
    team.run(_only_flatten, up, sums)
    assert sums[0] == 1


@kernel
def _only_flatten(team, up, found):
    found[0] = 1 if not flatten(up, 0, up.size) else 0


def test_labels_are_numbered() -> None:
    rng = np.random.default_rng(7)
    for n in (0, 1, 5, 1000):
        for kind in (np.int32, np.int64):
            labels = rng.integers(0, max(n, 1), n).astype(kind)
            count, numbers = number_labels(labels, engine="reference")
            assert numbers.dtype == kind
            first = [int(np.flatnonzero(numbers == c)[0]) for c in range(count)]
            assert first == sorted(first)
            for threads in (1, 3):
                found = number_labels(labels, threads=threads)
                assert found[0] == count
                assert np.array_equal(found[1], numbers)
