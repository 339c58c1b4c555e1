"""Graphs that are spread over ranks with GPUs: the answers are those of one machine.

Up to four ranks share one GPU: see `ON_GPU`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from dist.mpi import mpiexec
from graphs import ZOO
from matchwood import engines
from spread_graphs import slab

NAMES = (
    "0x0", "one edge", "few weights", "rmat", "rmat, directed", "star", "path", "float32",
    "int64 indices", "self loops", "explicit zeros",
)  # fmt: skip


def whole(vector: Any) -> Any:
    assert engines.location(vector.local) == "gpu"
    return vector.gather(None)


def forest(comm: Any, found: Any) -> tuple[Any, Any]:
    edges = np.concatenate(comm.objects(engines.moved(found.edges, "cpu")))
    weights = np.concatenate(comm.objects(engines.moved(found.weights, "cpu")))
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return edges[order], weights[order]


def matchings(G: Any, A: Any) -> None:
    for ties in ("hash", "index"):
        one = mw.weighted_matching(A, method="dominant", ties=ties, rng=5, engine="reference")
        found = mw.weighted_matching(G, method="dominant", ties=ties, rng=5)
        found.check(G)
        assert np.array_equal(whole(found.mate), one.mate)
        assert np.isclose(found.weight, one.weight, rtol=1e-12, atol=0)
        assert found.rounds == one.rounds or G.grid.p == 1
        fastest = mw.weighted_matching(G, ties=ties, rng=5)
        assert np.array_equal(whole(fastest.mate), one.mate)
        assert fastest.cardinality == one.cardinality
        assert np.isclose(fastest.weight, one.weight, rtol=1e-12, atol=0)


def forests(comm: Any, G: Any, A: Any) -> None:
    for maximum in (False, True):
        one = mw.minimum_spanning_forest(A, maximum=maximum)
        found = mw.minimum_spanning_forest(G, maximum=maximum)
        mw.check.check_spanning_forest(G, found, maximum=maximum)
        edges, weights = forest(comm, found)
        assert np.array_equal(edges, one.edges)
        assert weights.tobytes() == one.weights.tobytes()
        assert found.components == one.components
        assert found.rounds == one.rounds or G.grid.p == 1


def searches(G: Any, A: Any) -> None:
    for directed in (False, True):
        found = mw.bfs(G, 0, directed=directed)
        one = mw.bfs(A, 0, directed=directed, engine="reference")
        mw.check.check_bfs(G, 0, found, directed=directed)
        assert np.array_equal(whole(found.level), one.level)
        assert np.array_equal(whole(found.parent), one.parent)
    roots = mw.forest_roots(found.parent)
    mw.check.check_forest_roots(found.parent, roots)
    assert np.array_equal(whole(roots), mw.forest_roots(one.parent, engine="reference"))


def components(G: Any, A: Any) -> None:
    one = mw.connected_components(A, engine="reference")
    for method in ("auto", "auto", "colour"):  # from the second call on more is known of G
        found = mw.connected_components(G, method=method)
        mw.check.check_connected_components(G, found)
        assert found.count == one.count
        assert np.array_equal(whole(found.labels), one.labels)


def ranks_and_labels(G: Any, A: Any) -> None:
    for weighted in (False, True):
        found = mw.pagerank(G, weighted=weighted)
        one = mw.pagerank(A, weighted=weighted, engine="reference")
        mw.check.check_pagerank(G, found, weighted=weighted)
        assert np.abs(whole(found.scores) - one.scores).max(initial=0) < 1e-10
    found, one = mw.label_propagation(G), mw.label_propagation(A, engine="reference")
    mw.check.check_label_propagation(G, found, settled=False)
    assert np.array_equal(whole(found.labels), one.labels)
    assert (found.count, found.rounds) == (one.count, one.rounds)
    assert np.isclose(found.modularity, one.modularity, rtol=0, atol=1e-12)


PARTS = ("matchings", "forests", "components", "searches", "ranks_and_labels")
FEW = ("one edge", "few weights", "rmat, directed", "int64 indices")
"""For what has many rounds, or where another test has all graphs: processes that share a GPU take
turns on it, and each wait for it takes as long as the turns of all others.  Of each graph they have
one order; made-up GPUs have both."""


def compare(
    comm: Any, A: Any, order: str, grid: Any = None, parts: tuple[str, ...] = PARTS
) -> None:
    """All that takes a graph on GPUs, on all ranks of a communicator, beside the definition.

    Forests beside one machine's: the definition has no rounds.
    """

    def spread(A: Any) -> Any:
        part = slab(A, comm.rank, comm.size)
        return mw.distribute(part, comm=comm, order=order, grid=grid).on("gpu")

    G = spread(A)
    if "matchings" in parts:
        matchings(G, A)
    if "forests" in parts:
        forests(comm, G, A)
    if "components" in parts:
        components(G, A)
    if "searches" in parts and A.shape[0]:
        searches(G, A)
    if "ranks_and_labels" in parts:
        A = abs(A)
        ranks_and_labels(spread(A), A)


ON_GPU = """
import sys
import matchwood as mw
from dist.test_algorithms_gpu import FEW, NAMES, compare
from graphs import ZOO

some, everywhere = (tuple(parts.split()) for parts in sys.argv[2:])
with mw.dist.world("gpu", transport=sys.argv[1]) as comm:
    for place, name in enumerate(NAMES):
        parts = (*everywhere, *some) if name in FEW else everywhere
        if parts:
            turn = FEW.index(name) if name in FEW else place
            order = ("given", "hashed")[turn % 2]
            compare(comm, ZOO[name](), order, parts=parts)
            if comm.rank == 0:
                print("right:", name, order, parts, flush=True)
"""
JOBS = {  # parts for few graphs, parts for all of them: what one start of the ranks has to do
    ("auto", 1): [("matchings components", ""), ("forests searches ranks_and_labels", "")],
    ("host", 2): [(" ".join(PARTS), "")],
    ("auto", 4): [("matchings components", "forests"), ("ranks_and_labels", "searches")],
}


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize(("transport", "ranks"), JOBS)
def test_answers_of_ranks_with_gpus(transport, ranks):
    """On a new machine most of it is compiling: a single rank first, so that others find it done.

    Threads have all graphs in the other parts, see below.
    """
    jobs = JOBS[transport, ranks]
    with ThreadPoolExecutor(len(jobs)) as starts:
        for done in [starts.submit(mpiexec, ranks, ON_GPU, transport, *job) for job in jobs]:
            done.result()


def by_letters(comm: Any, A: Any) -> None:
    """Where ranks do not see each other's memory."""
    comm.lend = lambda arrays: None
    compare(comm, A, "given", parts=("matchings", "components"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_answers_of_threads_that_share_a_gpu(name):
    A = ZOO[name]()
    for grid, order in (("2x2", "given"), ("1x3", "hashed"), ("3x1", "given")):
        ranks = int(grid[0]) * int(grid[2])
        mw.dist.run(compare, ranks, A, order, grid, ("matchings", "components"))
    mw.dist.run(by_letters, 4, A)
