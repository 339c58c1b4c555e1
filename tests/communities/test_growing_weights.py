"""Communities where weights grow with the numbers of vertices: matrices of smooth coefficients.

Each vertex wants to join the next one.  So joining makes chains, and moving moves few vertices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchwood
from matchwood.communities import louvain_leiden
from matchwood.communities.louvain_leiden import CHAIN_DOUBLINGS, MOST_STALLS, partitions
from support import same

FUNCTIONS: dict[str, Any] = {
    "auto": matchwood.louvain,
    "moving": lambda G, **o: matchwood.louvain(G, method="moving", **o),
    "leiden": matchwood.leiden,
}


def growing_path(n: int) -> Any:
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return n, edges, np.arange(1.0, n)


def growing_grid(side: int) -> Any:
    """A grid whose edges weigh as much as the larger end."""
    number = np.arange(side * side).reshape(side, side)
    pairs = ((number[:, :-1], number[:, 1:]), (number[:-1], number[1:]))
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    return side * side, edges, 1.0 + edges[:, 1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_engines_agree(name: str) -> None:
    for A in (growing_path(160), growing_grid(12)):
        expected = FUNCTIONS[name](A, rng=3, engine="reference")
        for threads in (1, 3):
            found = FUNCTIONS[name](A, rng=3, threads=threads)
            assert same(found.labels, expected.labels)
            assert (found.levels, found.rounds) == (expected.levels, expected.rounds)
        matchwood.check.check_communities(A, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_levels_and_good_communities(name: str) -> None:
    """Levels grow as the logarithm of n.  Equal parts of a path or a grid bound what is good."""
    n, side = 4000, 60
    path, grid = matchwood.graph(growing_path(n)), matchwood.graph(growing_grid(side))
    found = FUNCTIONS[name](path)
    assert found.levels <= 24
    assert found.modularity >= matchwood.modularity(path, np.arange(n) // 100) - 0.01
    found = FUNCTIONS[name](grid)
    squares = np.arange(side) // 12
    blocks = (squares[:, None] * side + squares).ravel()
    assert found.levels <= 24
    assert found.modularity >= matchwood.modularity(grid, blocks) - 0.02


def test_levels_stay_numbered_by_smallest_vertices() -> None:
    last = None
    for count, labels in partitions(growing_path(400)):
        first = np.unique(labels, return_index=True)[1]
        assert count == first.size
        assert same(first, np.sort(first))
        last = labels
    assert same(last, matchwood.louvain(growing_path(400), method="moving").labels)


def test_chains_end_at_their_border() -> None:
    """A tree of 32 joins is no chain, one of 33 is; a star of any size is none."""
    border = 1 << CHAIN_DOUBLINGS
    for joins, chained in ((border, False), (border + 1, True)):
        target = np.minimum(np.arange(joins + 1) + 1, joins)
        assert louvain_leiden._has_chain(target, np.zeros(joins + 1, np.int64)) is chained
    assert not louvain_leiden._has_chain(np.zeros(1000, np.int64), np.zeros(1000, np.int64))


def test_other_graphs_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers by hash are for levels that stall, many in a row: no other graph sees them."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("numbered by hash")

    monkeypatch.setattr(louvain_leiden.Steps, "mix", refuse)
    for A in (matchwood.generators.path(3000), matchwood.generators.grid((40, 40))):
        for call in FUNCTIONS.values():
            call(A)
    with pytest.raises(AssertionError, match="numbered by hash"):
        matchwood.louvain(growing_path(100 * MOST_STALLS), method="moving")
