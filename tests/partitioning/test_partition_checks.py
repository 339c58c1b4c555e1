"""Checks of partitions: right answers pass, spoiled ones do not."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest

import matchwood
from graphs import grid, path
from matchwood import CheckFailed
from matchwood.check import check_partition
from matchwood.partitioning import Partition, is_partition

A = grid(8, 8, 1.0)


def spoiled(**changes: Any) -> Partition:
    return dataclasses.replace(matchwood.partition(A, 4), **changes)


def test_right_answers_pass() -> None:
    P = matchwood.partition(A, 4, rng=2)
    check_partition(A, P)
    check_partition(A, (P.cut, P.labels))
    check_partition(A, P.labels.tolist())
    check_partition(A, P, k=4, balanced=True, replay=True, rng=2)
    check_partition(A, P.labels[::-1].copy())
    assert is_partition(A, P)


def test_wrong_descriptions_are_found() -> None:
    P = matchwood.partition(A, 4)
    labels = P.labels.copy()
    swapped = labels.copy()
    swapped[labels == 0], swapped[labels == 1] = 1, 0
    cases: dict[str, Any] = {
        "the cut is": spoiled(cut=P.cut + 1),
        r"weights\[0\] is": spoiled(weights=P.weights + np.array([1, 0, 0, 0])),
        r"limits\[2\] is": spoiled(limits=P.limits + np.array([0, 0, 1, 0])),
        "block 3 is empty": spoiled(labels=np.where(labels == 3, 2, labels)),
        "not in 0..3": spoiled(labels=np.where(labels == 3, 4, labels)),
        "must have 64 elements": spoiled(labels=labels[1:]),
        "more than its limit": spoiled(labels=np.where(np.arange(64) < 60, 0, [*range(4)] * 16)),
    }
    for message, wrong in cases.items():
        with pytest.raises(CheckFailed, match=message):
            check_partition(A, wrong)
        assert not is_partition(A, wrong)
    with pytest.raises(CheckFailed, match="but the replay gives"):
        check_partition(A, swapped, replay=True)
    with pytest.raises(TypeError, match="cut must be a number, got None"):
        check_partition(A, spoiled(cut=None))
    last = P.levels[-1]._replace(after=P.cut - 1)
    with pytest.raises(CheckFailed, match="levels must be the 1 of the replay"):
        check_partition(A, dataclasses.replace(P, levels=(last,)), replay=True)
    described: list[tuple[str, Any]] = [
        ("boundary", np.arange(3)), ("boundary", P.boundary[::-1]), ("volume", P.volume + 1),
        ("volume", None), ("pieces", np.full(4, 2)), ("pieces", np.ones(5, int)),
    ]  # fmt: skip
    for name, value in described:
        wrong = matchwood.partition(A, 4)
        wrong.__dict__[name] = value  # what the cached properties would have found
        with pytest.raises(CheckFailed, match=name):
            check_partition(A, wrong)


def test_excess_is_of_numbers_and_never_wraps() -> None:
    P = spoiled(weights=np.array([1, 2, 3, 4], np.uint8), limits=np.full(4, 3, np.uint8))
    assert P.excess == 1
    records = np.zeros(4, [("a", int), ("b", float)])
    for changes in ({"weights": records}, {"limits": list("abcd")}, {"weights": [object()] * 4}):
        with pytest.raises(TypeError, match=r"Partition\.excess: (weights|limits) must hold real"):
            spoiled(**changes).excess
    with pytest.raises(ValueError, match="must have 4 elements"):
        spoiled(weights=np.ones(3, int)).excess


def test_quotients_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    P = matchwood.partition(A, 4)
    strange = dataclasses.replace(P, _origin=matchwood.partition(path(64), 4)._origin)
    with pytest.raises(CheckFailed):
        check_partition(A, strange)
    right = P.quotient()
    heavier, moved = right.copy(), right.copy()
    heavier.data[0] *= 1.001
    moved.indices[0] = 0
    fewer = right.copy()
    fewer[0] = 0
    fewer.eliminate_zeros()
    for wrong in (heavier, moved, fewer):
        monkeypatch.setattr(Partition, "quotient", lambda self, wrong=wrong: wrong)
        with pytest.raises(CheckFailed, match="quotient"):
            check_partition(A, P)


def test_fixed_vertices_are_checked() -> None:
    fixed = np.full(64, -1)
    fixed[5] = 2
    P = matchwood.partition(A, 4, fixed=fixed)
    P.check(A)
    fixed[5] = (P.labels[5] + 1) % 4
    with pytest.raises(CheckFailed, match="vertex 5 is fixed to block"):
        check_partition(A, P, fixed=fixed)
    held = [0, 1, -1, -1]  # two vertices for two blocks that nothing is fixed to
    check_partition(path(4), matchwood.partition(path(4), 4, fixed=held), fixed=held)
    with pytest.raises(CheckFailed, match="block 3 is empty"):
        check_partition(path(4), [0, 1, 2, 2], k=4, fixed=held, imbalance=1.0)
    held = [0, 0, -1]  # one for two
    check_partition(path(3), [0, 0, 1], k=3, fixed=held, imbalance=1.0)


@pytest.mark.slow
def test_a_million_entries_are_checked_at_once() -> None:
    G = matchwood.graph(grid(500, 500, 1.0))
    labels = np.random.default_rng(1).integers(0, 64, G.n)
    P = matchwood.refine_partition(G, labels, effort=0)
    check_partition(G, P)  # what it needs has been imported
    began = time.process_time()
    check_partition(G, P)
    assert time.process_time() - began < 2


def test_balance_is_asked_for_where_weights_differ() -> None:
    weights = np.ones(64, int)
    weights[:4] = 9
    labels = np.arange(64) // 32
    check_partition(A, labels, vertex_weights=weights)
    with pytest.raises(CheckFailed, match="block 0 weighs 64, more than its limit 49"):
        check_partition(A, labels, vertex_weights=weights, balanced=True)


def test_arguments() -> None:
    with pytest.raises(TypeError, match="rng is for a replay"):
        check_partition(A, np.zeros(64, int), rng=1)
    with pytest.raises(ValueError, match="an option of a replay"):
        check_partition(A, np.zeros(64, int), replay=True, threads=1)
    with pytest.raises(TypeError, match="labels must hold integers"):
        check_partition(A, np.zeros(64))
    with pytest.raises(TypeError, match="cut must be a number"):
        check_partition(A, ("none", np.zeros(64, int)))
