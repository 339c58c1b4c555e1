"""The checks of communities: what they refuse, what only a replay does, and their options."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import complete, disjoint, grid, shuffled
from matchwood.communities import is_communities, is_label_propagation


def test_checks_can_fail() -> None:
    A = disjoint([complete(5), complete(6)])
    found = matchwood.louvain(A)
    labels = found.labels.copy()
    labels[0] = 1  # not connected to the other clique
    assert not is_communities(A, labels, numbering="any")
    with pytest.raises(matchwood.CheckFailed, match=r"label 1 .* must come before label 0"):
        matchwood.check.check_communities(A, 1 - found.labels)
    matchwood.check.check_communities(A, 1 - found.labels, numbering="any")
    wrong = matchwood.Communities(found.count, found.labels, found.modularity + 1e-6)
    with pytest.raises(matchwood.CheckFailed, match="communities: modularity is"):
        matchwood.check.check_communities(A, wrong)
    for field, value in (("levels", 0), ("rounds", -1)):
        wrong = dataclasses.replace(found, **{field: value})
        with pytest.raises(matchwood.CheckFailed, match=f"{field} is {value}, but must be"):
            matchwood.check.check_communities(A, wrong)
    with pytest.raises(matchwood.CheckFailed, match="count is 3"):
        matchwood.check.check_communities(A, (3, found.labels))
    with pytest.raises(TypeError, match="check_communities: labels must hold integers"):
        matchwood.check.check_communities(A, found.labels.astype(float))
    assert not is_label_propagation(A, labels, numbering="any")
    with pytest.raises(matchwood.CheckFailed, match="vertex 0 has label 1 of weight 0"):
        matchwood.check.check_label_propagation(A, labels, numbering="any")
    matchwood.check.check_label_propagation(A, labels, numbering="any", settled=False)
    with pytest.raises(matchwood.CheckFailed, match="modularity: modularity is"):
        matchwood.check.check_modularity(A, labels, 0.25)


def test_every_vertex_moved_alone_is_seen_by_the_check() -> None:
    A = shuffled(disjoint([complete(5), complete(6), complete(7)]))
    found = matchwood.label_propagation(A)
    for v in range(18):
        labels = found.labels.copy()
        labels[v] = (labels[v] + 1) % 3
        assert not is_label_propagation(A, labels, numbering="any")
        assert not is_communities(A, labels, numbering="any")


def other_communities(A: Any, found: Any) -> Iterator[tuple[str, Any]]:
    """Communities that are numbered and described rightly, and not those that were found."""
    n, labels = A.shape[0], found.labels.astype(np.int64)
    u, v = sp.coo_array(A).coords
    for a, b in zip(u.tolist(), v.tolist(), strict=True):
        moved = labels.copy()
        moved[a] = labels[b]
        if labels[a] != labels[b] and is_communities(A, moved, numbering="any", settled=False):
            break
    merged = np.where(labels == labels[a], labels[b], labels)
    for name, other in (
        ("each alone", np.arange(n)),
        ("all in one", np.zeros(n, np.int64)),
        ("merged", merged),
        ("moved", moved),
    ):
        smallest = {c: v for v, c in reversed(list(enumerate(other.tolist())))}
        names = {c: k for k, c in enumerate(sorted(smallest, key=smallest.__getitem__))}
        fresh = np.array([names[c] for c in other.tolist()])
        quality = matchwood.modularity(A, fresh)
        yield name, dataclasses.replace(found, count=len(names), labels=fresh, modularity=quality)


@pytest.mark.parametrize("name", ["louvain", "leiden"])
def test_other_communities_are_refused_by_a_replay(name: str) -> None:
    A = grid(8, 9)
    found = getattr(matchwood, name)(A, rng=5)
    matchwood.check.check_communities(A, found, replay=name, rng=5)
    for what, other in other_communities(A, found):
        with pytest.raises(matchwood.CheckFailed, match="but the replay gives"):
            matchwood.check.check_communities(A, other, replay=name, rng=5)
        assert is_communities(A, other) == (what != "each alone")
        assert is_communities(A, other, settled=False)
    for field in ("levels", "rounds"):
        wrong = dataclasses.replace(found, **{field: getattr(found, field) + 1})
        with pytest.raises(matchwood.CheckFailed, match=f"{field} is .* but the replay gives"):
            matchwood.check.check_communities(A, wrong, replay=name, rng=5)


def test_other_labels_are_refused_by_a_replay() -> None:
    A = grid(8, 9)
    found = matchwood.label_propagation(A, rng=5)
    matchwood.check.check_label_propagation(A, found, replay=True, rng=5)
    for what, other in other_communities(A, found):
        assert not is_label_propagation(A, other, replay=True, rng=5)
        if what == "all in one":
            assert is_label_propagation(A, other)
    few = matchwood.label_propagation(A, max_rounds=1)
    assert not is_label_propagation(A, few)
    assert is_label_propagation(A, few, replay=True, max_rounds=1)


def test_runs_that_were_cut_short_are_not_settled() -> None:
    """Where weights grow along a path, few vertices move on a level."""
    n = 100
    A = (n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.arange(1.0, n))
    found = matchwood.louvain(A, max_levels=1)
    with pytest.raises(matchwood.CheckFailed, match=r"9. of 100 vertices gain by moving; vertex 0"):
        matchwood.check.check_communities(A, found)
    matchwood.check.check_communities(A, found, settled=False)
    matchwood.check.check_communities(A, found, replay="louvain", max_levels=1)


def test_options_of_a_replay() -> None:
    A = grid(3, 3)
    found = matchwood.louvain(A)
    for check, wrong, message in (
        ("communities", {"rng": 1}, "check_communities: rng is for a replay"),
        ("communities", {"replay": "louvain", "threads": 1}, "threads is no option of a replay"),
        ("communities", {"replay": "louvain", "iterations": 1}, "iterations"),
        ("communities", {"replay": True}, "check_communities: replay must be one of"),
        ("communities", {"settled": 1}, "check_communities: settled must be True or False"),
        ("label_propagation", {"tol": 0.1}, "check_label_propagation: tol is for a replay"),
        ("label_propagation", {"replay": 1}, "replay must be True or False"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            getattr(matchwood.check, f"check_{check}")(A, found, **wrong)
