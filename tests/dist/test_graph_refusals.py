"""What the gate of distributed graphs refuses: all ranks raise the same, before any work."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood import dist
from matchwood.errors import EngineUnavailable
from matchwood.gate.distributed.sources import Agreed, Share
from matchwood.gate.inputs import is_distributed
from matchwood.registry import PROBLEMS
from spread_graphs import slab, tried

EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
A = sp.random_array((6, 6), density=0.5, rng=1, format="csr")


def wrong(rank, usual, other, **options):
    """A call in which one rank gives something else than the others."""

    def work(comm):
        given = other if comm.rank == rank else usual
        given = given(comm) if callable(given) else given
        return tried(lambda: matchwood.distribute(given, comm=comm, **options))

    return work


def options_of(**by_name):
    """A call in which rank 2 has other options."""

    def work(comm):
        mine = {name: pair[comm.rank == 2] for name, pair in by_name.items()}
        return tried(lambda: matchwood.distribute((5, EDGES), comm=comm, **mine))

    return work


CASES = {
    "vertices": (wrong(1, (5, EDGES), (6, EDGES)),
        "ValueError: distribute: the number of vertices must be the same on all ranks, "
        "got 5 on ranks 0, 2, 3 and 6 on rank 1"),
    "n and A": (wrong(1, (5, EDGES), (5, EDGES), n=7),
        "ValueError: distribute: n must be that of A, 5, got 7"),
    "types": (wrong(3, (5, EDGES, np.ones(4)), (5, EDGES, np.ones(4, np.float32))),
        "ValueError: distribute: the dtype of the weights must be the same on all ranks, "
        "got <f8 on ranks 0, 1, 2 and <f4 on rank 3"),
    "some weights": (wrong(0, (5, EDGES, np.ones(4)), (5, EDGES)),
        "ValueError: distribute: the dtype of the weights must be the same on all ranks"),
    "range": (wrong(2, (5, EDGES), (5, EDGES + 1)),
        "ValueError: distribute: edges must join vertices 0..4, got (4, 5) as edge 3 (on rank 2)"),
    "negative": (wrong(2, (5, EDGES), (5, EDGES - 1)),
        "ValueError: distribute: edges must join vertices 0..4, got (-1, 0) as edge 0 (on rank 2)"),
    "floats": (wrong(1, (5, EDGES), (5, EDGES + 0.5)),
        "TypeError: distribute: edges must hold integers, got dtype float64 (on rank 1)"),
    "shape": (wrong(1, (5, EDGES), (5, EDGES.ravel())),
        "ValueError: distribute: edges must have shape (m, 2), got (8,) (on rank 1)"),
    "text": (wrong(1, (5, EDGES), "edges"), "TypeError: distribute: A must be edges of shape"),
    "words": (wrong(1, (5, EDGES, np.ones(4)), (5, EDGES, np.array(list("abcd")))),
        "TypeError: distribute: weights must be real numbers, got dtype <U1 (on rank 1)"),
    "lengths": (wrong(1, (5, EDGES), (5, EDGES, np.ones(3))),
        "ValueError: distribute: weights must have one value for each of the 4 edges"),
    "kinds": (wrong(1, lambda comm: slab(A, comm.rank, 4), (6, EDGES)),
        "ValueError: distribute: the kind of A must be the same on all ranks, "
        "got rows on ranks 0, 2, 3 and edges on rank 1"),
    "rows": (wrong(1, lambda comm: slab(A, comm.rank, 4), A),
        "ValueError: distribute: the rows of all ranks together must be as many as columns, 6"),
    "two graphs": (wrong(1, lambda comm: matchwood.graph(A), None),
        "ValueError: distribute: a whole graph must be given on one rank and None on the others, "
        "got one on ranks 0, 2, 3"),
    "nothing": (wrong(1, None, None),
        "ValueError: distribute: A must be given on one rank at least, got None on all"),
    "no vertices": (wrong(1, (-1, EDGES), (-1, EDGES)),
        "ValueError: distribute: the number of vertices must be within 0..2**62, got -1"),
    "too many": (wrong(1, (2**62, EDGES), (2**62, EDGES)), "OutOfMemory: distribute: a graph of"),
    "grid": (options_of(grid=("3x1", "3x1")),
        "ValueError: distribute: grid must have as many places as ranks, 4, got 3x1"),
    "grids": (options_of(grid=("2x2", "4x1")),
        "ValueError: distribute: grid must be the same on all ranks"),
    "orders": (options_of(order=("given", "hashed")),
        "ValueError: distribute: order must be the same on all ranks"),
    "order": (options_of(order=("sorted", "sorted")),
        "ValueError: distribute: order must be one of"),
    "layout": (options_of(layout=("rows", "rows")),
        "ValueError: distribute: layout must be one of"),
    "exchange": (options_of(exchange=("mail", "mail")),
        "ValueError: distribute: exchange must be one of 'own', 'thesis'"),
    "rule": (options_of(duplicates=("sum", "max")),
        "ValueError: distribute: duplicates must be the same on all ranks"),
    "n": (options_of(n=(5, 6)), "ValueError: distribute: n must be the same on all ranks"),
    "index": (options_of(index_dtype=(np.int16, np.int16)),
        "TypeError: distribute: index_dtype must be int32 or int64, got int16"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_ranks_raise_the_same(name):
    work, text = CASES[name]
    found = dist.run(work, 4)
    assert len(set(found)) == 1, found
    assert found[0].startswith(text)


def test_ranks_on_a_gpu_among_others():
    nothing = np.empty(0, np.int64)

    def work(comm):
        place = "gpu" if comm.rank == 1 else "cpu"
        share = Share("edges", 5, 0, nothing, nothing, None, True, place=place)
        return tried(lambda: Agreed(comm, share, None, "distribute"))

    assert set(dist.run(work, 3)) == {
        "ValueError: distribute: the device of A must be the same on all ranks, "
        "got cpu on ranks 0, 2 and gpu on rank 1"
    }


def test_no_communicator():
    for comm in (None, 4, "mpi"):
        with pytest.raises(TypeError, match="distribute: comm must be a communicator"):
            matchwood.distribute((5, EDGES), comm=comm)
    with pytest.raises(TypeError, match="path: comm must be a communicator"):
        matchwood.generators.path(4, comm=4)
    with pytest.raises(TypeError, match="read: comm must be a communicator"):
        matchwood.io.read("graph.txt", comm=4)


def test_the_input_is_as_it_was_and_the_communicator_goes_on():
    def work(comm):
        edges, weights = EDGES.copy(), np.arange(4.0)
        for _ in range(3):
            with pytest.raises(ValueError, match="same on all ranks"):
                matchwood.distribute((5 + comm.rank, edges, weights), comm=comm)
        G = matchwood.distribute((5, edges, weights) if comm.rank == 1 else None, comm=comm)
        assert np.array_equal(edges, EDGES)
        assert np.array_equal(weights, np.arange(4.0))
        return G.nnz

    assert dist.run(work, 3) == [4, 4, 4]


def test_empty_ranks_have_no_say_in_types():
    def work(comm):
        mine = (5, EDGES, np.ones(4, np.float32)) if comm.rank == 2 else (5, [], [])
        G = matchwood.distribute(mine, comm=comm)
        return G.undirected_weights().data.dtype, G.nnz

    assert set(dist.run(work, 4)) == {(np.dtype(np.float32), 4)}


def test_the_number_of_vertices_may_be_left_out():
    def work(comm):
        mine = EDGES + 5 if comm.rank == 1 else EDGES[:0]
        return matchwood.distribute(mine, comm=comm).n, matchwood.distribute(
            mine, comm=comm, n=20
        ).n

    assert set(dist.run(work, 3)) == {(10, 20)}


CALLS = {
    "permute": lambda G: (G, np.arange(5)),
    "refine_order": lambda G: (G, np.arange(5)),
    "modularity": lambda G: (G, np.zeros(5, np.int64)),
    "degree_factor": lambda G: (G, 2),
    "partition": lambda G: (G, 2),
    "refine_partition": lambda G: (G, np.zeros(5, np.int64)),
    "solve": lambda G: (G, np.ones(5)),
    "locality_ordering": lambda G: (G, "degree"),
    "streaming_matching": lambda G: None,  # takes edges, not a graph
}
"""Arguments of functions that take more than a graph."""
SPREAD = {
    "bfs", "connected_components", "forest_roots", "label_propagation", "minimum_spanning_forest",
    "pagerank", "weighted_matching",
}  # fmt: skip
"""Functions that have a cluster engine."""
OF_FIRST = {
    "coarsen", "leiden", "louvain", "maximal_independent_set", "strongly_connected_components",
}  # fmt: skip
"""Functions that the first rank calls."""
NO_GRAPH = ("sensing", "join", "tridiagonal", "preconditioners")


def test_functions_without_dist_say_so():
    """Over the registry: a function without a cluster engine refuses a distributed graph."""
    tested = []

    def work(comm):
        G = matchwood.distribute((5, EDGES), comm=comm)
        for problem in PROBLEMS:
            if problem.family in NO_GRAPH or problem.function in SPREAD | OF_FIRST:
                continue
            arguments = CALLS.get(problem.function, lambda G: (G,))(G)
            if arguments is None:
                continue
            with pytest.raises(EngineUnavailable, match=f"{problem.function}.*'dist' engine"):
                getattr(matchwood, problem.function)(*arguments)
            tested.append(problem.function)
        for name in ("jacobi", "tridiagonal", "linear_forest"):
            if hasattr(matchwood.preconditioners, name):
                with pytest.raises(EngineUnavailable):
                    getattr(matchwood.preconditioners, name)(G)
        with pytest.raises(EngineUnavailable):
            matchwood.io.write("never.mtx", G)
        with pytest.raises(EngineUnavailable):
            matchwood.graph(G)

    dist.run(work, 1)
    assert len(tested) > 15


def test_is_distributed_does_not_import_anything():
    assert not is_distributed((5, EDGES))
