"""Components, searches and roots under mpiexec: what one machine finds, checked by the ranks."""

from __future__ import annotations

import pytest

from dist.mpi import RANKS, mpiexec, needs_mpi

pytestmark = needs_mpi

SCRIPT = """
import numpy as np
import matchwood
from dist.mpi import say
from graphs import ZOO, rmat
from spread_graphs import slab

NAMES = ("0x0", "one edge", "disconnected", "directed path")

with matchwood.dist.world() as comm:
    assert comm.kind == ("mpi" if comm.size > 1 else comm.kind)
    for A in (*(ZOO[name]() for name in NAMES), rmat(9, 8, symmetric=False)):
        n = A.shape[0]
        for order in ("given", "hashed") if n > 60 else ("given",):
            G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, order=order)
            right = matchwood.connected_components(A)
            for method in ("auto", "colour"):
                found = matchwood.connected_components(G, method=method)
                assert found.count == right.count
                assert np.array_equal(found.labels.gather(None), right.labels)
            matchwood.check.check_connected_components(G, found)
            sources = sorted({0, n // 2}) if n else []
            search, one = matchwood.bfs(G, sources), matchwood.bfs(A, sources)
            assert np.array_equal(search.level.gather(None), one.level)
            assert np.array_equal(search.parent.gather(None), one.parent)
            assert search.rounds == one.rounds
            matchwood.check.check_bfs(G, sources, search)
            roots = matchwood.forest_roots(search.parent)
            assert np.array_equal(roots.gather(None), matchwood.forest_roots(one.parent))
            matchwood.check.check_forest_roots(search.parent, roots)
            if n > 1:
                broken = G.vector(np.where(G.ids == n - 1, n, roots.local))
                assert not matchwood.check.is_forest_roots(search.parent, broken)
    say("right")
"""


@pytest.mark.parametrize("ranks", RANKS)
def test_answers_are_those_of_one_machine(ranks):
    assert mpiexec(ranks, SCRIPT, timeout=240).lines == ["right"] * ranks
