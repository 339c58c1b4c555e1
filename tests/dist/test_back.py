"""From ranks back to one machine, and from a graph to a part of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from dist.mpi import SHARES, clean_environment, mpiexec
from dist.test_shared import neighbour
from graphs import ZOO, grid, path, rmat
from matchwood import dist
from matchwood.gate.distributed import one_host
from spread_graphs import slab, tried

WEB = Path(__file__).resolve().parents[2] / "examples" / "clusters" / "web.py"
PLACES = ({}, {"order": "hashed"}, {"order": "contiguous"}, {"layout": "ranges"})
EDGES = np.array([[0, 3], [3, 0], [0, 3], [2, 2], [6, 1], [0, 3], [5, 6], [2, 2]])
WEIGHTS = np.array([1.0, 2.0, 4.0, 3.0, 0.0, -8.0, 5.0, 7.0])


def parts():
    """What each rank passes, what one machine passes, and options of both."""
    values = rmat(6, 4).astype(np.float64)
    values.data[:] = np.arange(values.nnz) % 13 - 6  # zeros and negative ones are entries too
    matrices = (values, values.astype(np.float32), grid(5, 7), ZOO["0x0"](), sp.csr_array((4, 4)))
    for A in matrices:
        yield lambda rank, size, A=A: slab(A, rank, size), A, {}
    for rule in (None, "sum", "min", "first"):
        yield (
            lambda rank, size: (7, EDGES[rank::size], WEIGHTS[rank::size]),
            lambda size: (
                7,
                np.concatenate([EDGES[rank::size] for rank in range(size)]),
                np.concatenate([WEIGHTS[rank::size] for rank in range(size)]),
            ),
            {"duplicates": rule},
        )
    yield lambda rank, size: (7, EDGES[rank::size]), (7, EDGES), {}


def same_values(vector, one):
    return np.array_equal(vector.gather(None), one) and vector.dtype == one.dtype


def same_graph(found, expected):
    assert (found.n, found.edges) == (expected.n, expected.edges)
    assert found.weighted == expected.weighted
    mine, right = found.sparse(), expected.sparse()
    assert mine.dtype == right.dtype
    assert np.array_equal(mine.toarray(), right.toarray())
    assert found.directed_pattern().nnz == expected.directed_pattern().nnz
    for view in ("undirected_weights", "heaviest_weights"):
        for a, b in zip(getattr(found, view)(), getattr(expected, view)(), strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_the_whole_graph_on_one_rank_or_on_all(places):
    for part, whole, options in parts():

        def body(comm, part=part, options=options):
            mine = part(comm.rank, comm.size)
            G = matchwood.distribute(mine, comm=comm, **options, **places)
            return G.gather(), G.gather(comm.size - 1), G.gather(None), G.tocsr(), G.tocsr(None)

        for size in (1, 4):
            given = whole(size) if callable(whole) else whole
            expected = matchwood.graph(given, **options)
            found = dist.run(body, size)
            for rank, (first, last, every, csr, every_csr) in enumerate(found):
                assert (first is None) == (csr is None) == (rank > 0)
                assert (last is None) == (rank < size - 1)
                for graph in (first, last, every):
                    if graph is not None:
                        same_graph(graph, expected)
                assert isinstance(every_csr, sp.csr_array)
                assert np.array_equal(every_csr.toarray(), expected.sparse().toarray())


def test_indices_that_were_asked_for():
    def body(comm):
        G = matchwood.distribute(slab(path(9), comm.rank, 3), comm=comm, index_dtype=np.int64)
        return G.gather(None).index_dtype

    assert dist.run(body, 3) == [np.int64] * 3


def test_a_root_that_is_none():
    def body(comm, root):
        G = matchwood.distribute(slab(path(9), comm.rank, 2), comm=comm)
        return tried(lambda: G.gather(root)), tried(lambda: G.tocsr(comm.rank))

    for root, text in ((2, "gather: root must lie within 0..1, got 2"), ("x", "must be an integ")):
        for gathered, differing in dist.run(body, 2, root):
            assert text in gathered
            assert "gather: root must be the same on all ranks" in differing


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_parts_of_a_graph(places):
    """By bools and by labels: those entries of one machine's matrix, in the order of vertices."""
    values = rmat(7, 4).astype(np.float64)
    values.data[:] = np.arange(values.nnz) % 13 + 1
    for A in (values, sp.block_diag([grid(5, 7), path(9), values], format="csr")):
        n = A.shape[0]
        expected = matchwood.connected_components(A).labels
        groups = np.arange(n) * 7 % 5

        def body(comm, A=A, groups=groups):
            G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, **places)
            mine = groups[G.ids]
            found = [
                G.subgraph(G.vector(mine < 2)),
                G.subgraph(G.vector(mine), 3),
                G.subgraph(G.vector(mine.astype(np.uint8)), 9),
                G.subgraph(G.vector(np.ones(mine.size, bool))),
            ]
            if G.grid.layout == "stripes":
                found.append(G.subgraph(matchwood.connected_components(G).labels, 0))
            return [(H.gather(None), ids.gather(None), H.nnz, H.order is None) for H, ids in found]

        taken = [groups < 2, groups == 3, groups == 9, groups >= 0, expected == 0]
        for size in (1, 4):
            for found in dist.run(body, size):
                for (H, ids, nnz, given), right in zip(found, taken, strict=False):
                    assert np.array_equal(ids, np.flatnonzero(right))
                    part = A[ids][:, ids]
                    assert H.n == ids.size
                    assert nnz == part.nnz
                    assert np.array_equal(H.sparse().toarray(), part.toarray())
                    assert given == (
                        "order" not in places or (size == 1 and "hashed" not in str(places))
                    )


def test_parallel_edges_of_a_part_stay_as_they_were():
    def body(comm):
        G = matchwood.distribute((7, EDGES[comm.rank :: 2], WEIGHTS[comm.rank :: 2]), comm=comm)
        H, _ = G.subgraph(G.vector(G.ids != 1))
        K, _ = H.subgraph(H.vector(np.ones(H.grid.owned, bool)))
        return K.gather(None)

    keep = np.concatenate([np.arange(0, 8, 2), np.arange(1, 8, 2)])
    keep = keep[(EDGES[keep] != 1).all(1)]
    edges = EDGES[keep] - (EDGES[keep] > 1)
    expected = matchwood.graph((6, edges, WEIGHTS[keep]))
    for found in dist.run(body, 2):
        same_graph(found, expected)
        assert found.nnz == expected.nnz


def test_parts_that_make_no_sense():
    def body(comm):
        G = matchwood.distribute(slab(path(9), comm.rank, 2), comm=comm)
        other = matchwood.distribute(slab(path(8), comm.rank, 2), comm=comm)
        bools, labels = G.vector(G.ids > 3), G.vector(G.ids)
        return [
            tried(lambda: G.subgraph(np.ones(9, bool))),
            tried(lambda: G.subgraph(other.vector(other.ids > 3))),
            tried(lambda: G.subgraph(G.vector(G.ids * 1.0))),
            tried(lambda: G.subgraph(bools, 1)),
            tried(lambda: G.subgraph(labels)),
            tried(lambda: G.subgraph(labels, 1.5)),
            tried(lambda: G.subgraph(labels, comm.rank)),
            G.subgraph(bools)[0].n,
        ]

    texts = (
        "TypeError: subgraph: vertices must be a DistributedVector, got ndarray",
        "ValueError: subgraph: vertices must be spread as the graph is",
        "TypeError: subgraph: vertices must hold bools or integers, got float64",
        "ValueError: subgraph: label must be None where vertices are bools",
        "TypeError: subgraph: label must be an integer where vertices are, got None",
        "TypeError: subgraph: label must be an integer where vertices are, got 1.5",
        "ValueError: subgraph: label must be the same on all ranks",
    )
    for found in dist.run(body, 2):
        for text, got in zip(texts, found, strict=False):
            assert text in got
        assert found[-1] == 5


def test_a_saved_graph_is_read_without_ranks(tmp_path):
    for number, (part, whole, options) in enumerate(parts()):
        folder = tmp_path / str(number)

        def body(comm, part=part, options=options, folder=folder):
            matchwood.distribute(part(comm.rank, comm.size), comm=comm, **options).save(folder)

        dist.run(body, 3)
        given = whole(3) if callable(whole) else whole
        found = matchwood.io.read(folder)
        assert isinstance(found, matchwood.Graph)
        same_graph(found, matchwood.graph(given, **options))
    for name, value in (
        ("format", "edges"), ("dtype", np.float32), ("pattern", True), ("base", 1),
        ("most_bytes", 10), ("symmetric", True), ("duplicates", "min"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"read: {name} cannot be set for a saved graph"):
            matchwood.io.read(folder, **{name: value})
    (folder / "matchwood-graph.json").unlink()
    with pytest.raises(IsADirectoryError, match="no graph was saved here"):
        matchwood.io.read(folder)


# Small graphs that are referred to the first rank of a host


def referred(comm, A, options):
    """What functions find on ranks that share memory, by the threads of one process."""
    G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=neighbour(comm), **options)
    marks = G.vector(np.isin(G.ids, (3, 40)))
    for directed in (False, True):
        for sources, same in ((5, 5), ([40, 3], [3, 40]), (marks, [3, 40])):
            one = matchwood.bfs(A, same, directed=directed, depth_limit=3)
            found = matchwood.bfs(G, sources, directed=directed, depth_limit=3)
            assert same_values(found.level, one.level)
            assert same_values(found.parent, one.parent)
            assert found.rounds == one.rounds
    found, one = matchwood.connected_components(G), matchwood.connected_components(A)
    assert same_values(found.labels, one.labels)
    assert found.count == one.count
    for options in ({}, {"ties": "index"}, {"method": "dominant"}):
        found = matchwood.weighted_matching(G, **options)
        one = matchwood.weighted_matching(A, **options)
        assert same_values(found.mate, one.mate)
        assert (found.cardinality, found.weight) == (one.cardinality, pytest.approx(one.weight))
        found.check(G)
    p = np.arange(64.0)
    for options in ({}, {"weighted": True, "personalization": p, "dtype": np.float32}):
        found, one = matchwood.pagerank(G, **options), matchwood.pagerank(A, **options)
        assert found.iterations == one.iterations
        assert found.scores.dtype == one.scores.dtype
        assert np.allclose(found.scores.gather(None), one.scores, rtol=0, atol=1e-6)
    found = matchwood.pagerank(G, personalization=G.vector(p[G.ids]))
    one = matchwood.pagerank(A, personalization=p)
    assert np.allclose(found.scores.gather(None), one.scores, rtol=0, atol=1e-10)
    labels = matchwood.label_propagation(G, rng=3, max_rounds=9)
    forest = matchwood.minimum_spanning_forest(G, maximum=True)
    matchwood.check.check_spanning_forest(G, forest, maximum=True)
    edges, weights = (np.concatenate(G.comm.objects(part)) for part in forest)
    order = np.lexsort(edges.T[::-1])
    return labels, labels.labels.gather(None), forest, edges[order], weights[order], G.stats


@pytest.mark.skipif(not SHARES, reason="the system has no anonymous files")
@pytest.mark.parametrize("most", [pytest.param(0, marks=pytest.mark.slow), None])
def test_small_graphs_run_on_the_first_rank(monkeypatch, most):
    """With the same answers, and `stats` says so."""
    if most is not None:
        monkeypatch.setenv("MATCHWOOD_DIST_COPY", "0")
    A = sp.csr_array(rmat(6, 4).astype(np.float64))
    A.data[:] = (np.arange(A.nnz) * 7) % 11 + 1.0
    A = sp.csr_array(A.maximum(A.T))
    labels = matchwood.label_propagation(A, rng=3, max_rounds=9)
    forest = matchwood.minimum_spanning_forest(A, maximum=True)
    where = "on the first of 3 ranks, 1 thread"
    if most == 0:
        where = "on all 3 ranks: MATCHWOOD_DIST_COPY is 0"
    for options in ({}, {"order": "hashed"}, {"order": "contiguous", "grid": "3x1"}):
        for mine, found, tree, edges, weights, stats in dist.run(referred, 3, A, options):
            assert np.array_equal(found, labels.labels)
            assert found.dtype == labels.labels.dtype
            assert (mine.count, mine.rounds) == (labels.count, labels.rounds)
            assert mine.modularity == labels.modularity
            assert np.array_equal(edges, forest.edges)
            assert edges.dtype == forest.edges.dtype
            assert weights.tobytes() == forest.weights.tobytes()
            assert (tree.components, tree.n, tree.rounds) == (forest.components, 64, forest.rounds)
            assert tree.total == pytest.approx(forest.total, rel=1e-12)
            assert set(stats.values()) == {where}
            assert sorted(stats) == [
                "bfs", "connected_components", "label_propagation", "minimum_spanning_forest",
                "pagerank", "weighted_matching",
            ]  # fmt: skip


@pytest.mark.skipif(not SHARES, reason="the system has no anonymous files")
def test_larger_graphs_are_referred_where_that_pays(monkeypatch):
    """At once where rounds are many; in others by the second call, if there is room."""
    monkeypatch.setattr(one_host, "FEW_ENTRIES", 10)

    def body(comm):
        told = []
        for calls in (("bfs", "pagerank", "bfs"), ("weighted_matching", "connected_components")):
            G = matchwood.distribute(slab(path(40), comm.rank, 3), comm=neighbour(comm))
            for call in calls:
                getattr(matchwood, call)(G, *([0] if call == "bfs" else []))
                told.append(G.stats[call].partition(" ranks")[0])
        G = matchwood.distribute(slab(path(40), comm.rank, 3), comm=neighbour(comm))
        room = one_host.FREE_PART * one_host._room(G)
        for free in (None, room, room - 1, 0):
            G = matchwood.distribute(slab(path(40), comm.rank, 3), comm=neighbour(comm))
            monkeypatch.setattr(one_host.resources, "available_memory", lambda free=free: free)
            comm.barrier()
            found = matchwood.label_propagation(G)
            told.append(G.stats["label_propagation"])
        return told, found.count

    right = matchwood.label_propagation(path(40)).count
    everyone, first = "on all 3", "on the first of 3"
    for (*told, unknown, enough, less, none), count in dist.run(body, 3):
        assert told == [everyone, first, first, first, first]
        assert unknown == enough == "on the first of 3 ranks, 1 thread"
        assert less == none == "on all 3 ranks: the first has no room for the graph"
        assert count == right


def on_the_first(comm, A, options):
    """Values that are found there, and what is refused."""
    G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, **options)
    both = G.on_first(
        lambda one: (
            matchwood.louvain(one).labels,
            matchwood.strongly_connected_components(one).labels,
        )
    )
    wrong = (np.zeros(63), np.zeros((64, 1)), [0] * 64, np.array(["a"] * 64))
    works = [
        *(lambda one, given=given: given for given in wrong),
        lambda one: matchwood.bfs(one, 64),
    ]
    refused = [tried(lambda work=work: G.on_first(work)) for work in works]
    chosen = G.on_first(matchwood.maximal_independent_set)
    again = (
        matchwood.louvain(G).labels,
        matchwood.strongly_connected_components(G, threads=1).labels,
        matchwood.maximal_independent_set(G, rng=np.random.default_rng(4)),
    )
    parts = matchwood.leiden(G, resolution=1.5)
    seed = np.random.default_rng(4)
    one = G.gather(None)
    assert np.array_equal(again[2].gather(None), matchwood.maximal_independent_set(one, rng=seed))
    right = matchwood.leiden(one, resolution=1.5)
    assert np.array_equal(parts.labels.gather(None), right.labels)
    assert (parts.count, parts.modularity) == (right.count, right.modularity)
    where = f"on the first of {comm.size} ranks"
    names = ("louvain", "leiden", "strongly_connected_components", "maximal_independent_set")
    assert [G.stats[name] for name in ("on_first", *names)] == [where] * 5
    return [values.gather(None) for values in (*both, chosen, *again[:2])], refused


@pytest.mark.parametrize("size", [1, 3, pytest.param(70, marks=pytest.mark.slow)])
def test_functions_of_one_machine_on_the_first_rank(size):
    """Their values are spread; what is none is refused on all ranks, which go on."""
    A = rmat(6, 4, symmetric=False)
    right = (
        matchwood.louvain(A).labels,
        matchwood.strongly_connected_components(A).labels,
        matchwood.maximal_independent_set(A),
    )
    right += right[:2]
    start = "ValueError: on_first: work must return arrays of one number for each of 64 vertices"
    for options in PLACES:
        for found, refused in dist.run(on_the_first, size, A, options):
            for mine, one in zip(found, right, strict=True):
                assert np.array_equal(mine, one)
                assert mine.dtype == one.dtype
            assert [text.startswith(start) for text in refused] == [True] * 4 + [False]
            assert refused[-1].startswith("ValueError: bfs: ")


def test_arguments_of_functions_that_the_first_rank_calls():
    """All ranks raise the same error, and go on."""

    def body(comm):
        G = matchwood.distribute(slab(path(9), comm.rank, 3), comm=comm)
        odd = comm.rank == 1
        said = [
            tried(lambda: matchwood.louvain(G, resolution=1.0 + odd)),
            tried(lambda: matchwood.louvain(G, resolution="x")),
            tried(lambda: matchwood.louvain(G, rng="x" if odd else 0)),
            tried(lambda: matchwood.leiden(G, iterations=0)),
            tried(lambda: matchwood.maximal_independent_set(G, method="x" if odd else "auto")),
            tried(lambda: matchwood.maximal_independent_set(G, threads=0 if odd else None)),
            tried(lambda: matchwood.strongly_connected_components(G, engine="gpu")),
            tried(lambda: matchwood.condensation(G)),
        ]
        with pytest.raises(TypeError):
            matchwood.louvain(G, 1.0)
        return said, matchwood.louvain(G).count

    found = dist.run(body, 3)
    assert [each[0] for each in found] == [found[0][0]] * 3
    expected = (
        "resolution must be the same on all ranks, got 1.0 on rank 0 and 2.0 on rank 1",
        "TypeError: louvain: resolution", "TypeError: louvain: rng", "ValueError: leiden: iterat",
        "method must be the same on all ranks", "maximal_independent_set: threads must be",
        "strongly_connected_components: engine must be None or 'cpu', where the Distributed",
        "EngineUnavailable: condensation",
    )  # fmt: skip
    for text, part in zip(found[0][0], expected, strict=True):
        assert part in text
    assert found[0][1] == matchwood.louvain(path(9)).count


@pytest.mark.skipif(not SHARES, reason="the system has no anonymous files")
def test_errors_of_the_first_rank_are_raised_on_all(monkeypatch):
    A = sp.csr_array(path(9) * -1.0)

    def body(comm):
        G = matchwood.distribute(slab(A, comm.rank, 3), comm=neighbour(comm))
        return tried(lambda: matchwood.label_propagation(G))

    few = dist.run(body, 3)
    monkeypatch.setenv("MATCHWOOD_DIST_COPY", "0")
    assert few == dist.run(body, 3)
    assert len(set(few)) == 1
    assert few[0].startswith("ValueError: label_propagation: ")


@pytest.mark.slow
def test_a_graph_is_coarsened_by_the_first_rank():
    """The matrix, the map and the weights of one machine, spread over the ranks again."""
    A = matchwood.generators.random_weights(grid(9, 7), rng=2)
    one = matchwood.matching.coarsen(A, matchwood.weighted_matching(A))
    weights = np.arange(63) % 5
    heavier = matchwood.matching.coarsen(A, one_pair := np.r_[1, 0, np.full(61, -1)],
                                         vertex_weights=weights)  # fmt: skip

    def body(comm, options):
        G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, **options)
        first = matchwood.matching.coarsen(G, matchwood.weighted_matching(G))
        other = matchwood.matching.coarsen(
            G, G.vector(one_pair[G.ids]), vertex_weights=G.vector(weights[G.ids])
        )
        H = first.matrix
        assert H.grid.name == G.grid.name
        again = matchwood.matching.coarsen(H, matchwood.weighted_matching(H))  # and so on
        said = [
            tried(lambda: matchwood.matching.coarsen(G, one_pair)),
            tried(lambda: matchwood.matching.coarsen(G, G.vector(np.zeros(G.ids.size, int)))),
            tried(lambda: matchwood.matching.coarsen(H, G.vector(one_pair[G.ids]))),
            tried(lambda: matchwood.matching.coarsen(G, G.vector(one_pair[G.ids]), threads=0)),
        ]
        found = [
            (each.matrix.tocsr(None).toarray(), each.map.gather(None),
             each.vertex_weights.gather(None), repr(each)) for each in (first, other)
        ]  # fmt: skip
        return found, G.stats["coarsen"], said, again.matrix.n

    twice = matchwood.matching.coarsen(one.matrix, matchwood.weighted_matching(one.matrix))
    for size, options in ((1, {}), (4, {"order": "hashed"}), (3, {"layout": "ranges"})):
        for found, where, said, smallest in dist.run(body, size, options):
            for (matrix, map, sums, shown), right in zip(found, (one, heavier), strict=True):
                assert np.array_equal(matrix, right.matrix.toarray())
                assert np.array_equal(map, right.map)
                assert np.array_equal(sums, right.vertex_weights)
                assert sums.dtype == right.vertex_weights.dtype
                assert shown == repr(right)
            assert where == f"on the first of {size} ranks"
            assert smallest == twice.matrix.shape[0]
            expected = (
                "TypeError: coarsen: matching must be a DistributedVector", "ValueError: coarsen: ",
                "matching must be spread as the graph is", "threads must be at least 1",
            )  # fmt: skip
            for text, part in zip(said, expected, strict=True):
                assert part in text


# The program of the page on clusters


@pytest.mark.slow
@pytest.mark.mpi
def test_a_program_from_a_file_to_ranks_and_back(tmp_path):
    """Alone and on three ranks it prints the same, and leaves the same graph."""
    parts = [rmat(6, 4), path(40)]
    file = tmp_path / "web.txt"
    matchwood.io.write(file, sp.csr_array(sp.block_diag(parts)))
    told, graphs = [], []
    for ranks in (1, 3):
        out = tmp_path / str(ranks)
        if ranks == 1:
            words = [sys.executable, str(WEB), str(file), str(out)]
            done = subprocess.run(
                words, env=clean_environment(), capture_output=True, text=True, check=True
            )
        else:
            done = mpiexec(ranks, WEB, str(file), str(out))
        first, *rest = done.stdout.splitlines()
        assert first.startswith(f"{ranks} ranks: ")
        told.append((first.partition(":")[2], rest))
        graphs.append((matchwood.io.read(out / "graph").sparse(), np.load(out / "ids.npy")))
    assert told[0] == told[1]
    assert len(told[0][1]) == 4
    (A, ids), (B, others) = graphs
    assert (A != B).nnz == 0
    assert np.array_equal(ids, others)
    labels = matchwood.connected_components(sp.block_diag(parts)).labels
    assert np.array_equal(ids, np.flatnonzero(labels == np.bincount(labels).argmax()))
