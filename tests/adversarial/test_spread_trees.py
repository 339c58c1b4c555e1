"""Attacks on matchings and spanning forests of graphs that are spread over ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial.clock import attempts
from matchwood import dist
from matchwood.check import check_spanning_forest
from matchwood.matching.check import check_locally_dominant
from matchwood.matching.dominant.ranks import cpu as engine
from spread_graphs import slab, tried

SIDES = ((1, 1), (1, 2), (3, 1), (2, 2), (1, 5), (2, 3), (3, 3))


def drawn(rng: Any) -> Any:
    """A graph of any density, of few or many weights, with structure in its ids or none."""
    n = int(rng.integers(1, 60))
    m = int(rng.integers(0, 6 * n))
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    shape = rng.integers(0, 4)
    if shape == 1:  # all at one hub, or at vertices of one rank
        u = u // 7 * 7
    elif shape == 2:
        v = np.minimum(u + rng.integers(1, 3, m), n - 1)
    values = [
        rng.random(m), np.ones(m), rng.integers(-3, 4, m), rng.choice([0.0, -0.0, 1.0], m),
        np.arange(m) + 1.0, rng.integers(-(2**46), 2**46, m),
    ][int(rng.integers(0, 6))]  # fmt: skip
    A = sp.coo_array((values, (u, v)), (n, n)).tocsr()
    if rng.integers(0, 2):
        A = sp.csr_array(A + A.T)
    kind = (np.float32, np.float64, None)[int(rng.integers(0, 3))]
    return A if kind is None else A.astype(kind)


def spoiled(mate: Any, rng: Any) -> Any:
    """Mates with a few changes."""
    other = mate.copy()
    for _ in range(int(rng.integers(0, 3))):
        other[rng.integers(0, other.size)] = rng.integers(-1, other.size)
    return other


def answers(comm: Any, A: Any, sides: Any, order: str, wrong: Any, ties: str) -> Any:
    G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, grid=sides, order=order)
    mate = matchwood.weighted_matching(G, ties=ties).mate
    verdict = tried(lambda: check_locally_dominant(G, G.vector(wrong[G.ids]), ties=ties))
    forest = matchwood.minimum_spanning_forest(G)
    check_spanning_forest(G, forest)
    edges = np.concatenate(comm.objects(forest.edges))
    weights = np.concatenate(comm.objects(forest.weights))
    shares = edges[comm.rank :: comm.size], edges[1:][comm.rank :: comm.size]
    fewer = [tried(lambda share=share: check_spanning_forest(G, share)) for share in shares]
    place = np.lexsort(edges.T[::-1])
    return mate.gather(None), verdict, edges[place], weights[place], fewer


@pytest.mark.slow
def test_drawn_graphs_grids_and_wrong_answers(monkeypatch):
    for k in attempts(1):
        rng = np.random.default_rng((29, k))
        A = drawn(rng)
        sides = SIDES[int(rng.integers(0, len(SIDES)))]
        order = ("given", "hashed")[int(rng.integers(0, 2))]
        ties = ("hash", "index")[int(rng.integers(0, 2))]
        monkeypatch.setattr(engine, "ROWS_PER_NEWS_WORD", int(rng.choice([0, 2, 32, 10**6])))
        mate = matchwood.weighted_matching(A, ties=ties).mate
        wrong = spoiled(mate, rng)
        verdict = tried(lambda: check_locally_dominant(A, wrong, ties=ties))  # noqa: B023
        forest = matchwood.minimum_spanning_forest(A)
        for found in dist.run(answers, sides[0] * sides[1], A, sides, order, wrong, ties):
            assert np.array_equal(found[0], mate)
            assert found[1] == verdict
            assert np.array_equal(found[2], forest.edges)
            assert found[3].tobytes() == forest.weights.tobytes()
            assert found[4][0] is None
            assert (found[4][1] is None) == (len(forest.edges) == 0)
