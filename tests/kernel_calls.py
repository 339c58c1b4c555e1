"""Calls of every public function on small graphs, for 32- and 64-bit indices and weights.

What they make the engine compile is what users meet: the list of kernels has all of it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchwood import registry

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from matchwood.gate.graph import Graph


# Graphs that are distributed over ranks: here the ranks are threads.

RANKS = 2
TILED_VERTICES = 600_000  # vertices; enough for PageRank on ranks to use its kernels with tiles


def steps_on_ranks(
    indices: tuple[str, ...], values: tuple[str, ...], matrices: Callable[[str, str], Any]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, function); `matrices` makes two matrices of given types."""
    for index in indices:
        for value in values:
            run = functools.partial(_views, index, matrices(index, value))
            yield f"distributed graphs, {index}, {value}", run
    yield "distributed graphs, exchanges", _exchanges
    yield "distributed graphs, shared memory", _shared_memory
    yield "distributed graphs, ranking in tiles", _tiles
    yield "distributed graphs, generators", _generators


def _views(index: str, matrices: Any) -> None:
    from matchwood import dist
    from matchwood.gate import distributed
    from matchwood.gate import graph as csr
    from matchwood.matching import weighted_matching
    from matchwood.spanning import minimum_spanning_forest

    def work(comm: Any, A: Any, order: str) -> None:
        G = distributed.distribute(
            csr.graph(A) if comm.rank == 0 else None, comm=comm, order=order, index_dtype=index
        )
        G.undirected_pattern()
        G.undirected_weights()
        G.transposed_weights()
        G.diagonal()
        _ = G.degrees
        weighted_matching(G)
        minimum_spanning_forest(G)

    for A in matrices:
        for order in ("given", "hashed"):
            dist.run(work, RANKS, A, order)


def _exchanges() -> None:
    import numpy as np

    from matchwood import dist
    from matchwood.engines.ranks import grid as grids
    from matchwood.engines.ranks.exchanges import Exchange

    def work(comm: Any) -> None:
        grid = grids.Grid(400, 1, comm.size, comm.rank)
        exchange = Exchange(comm, grid)
        for kind in (np.int32, np.int64, np.float32, np.float64):
            for count in (2, grid.n_rows):
                positions = np.arange(count)
                exchange.fold_changed(positions, np.ones(count, kind), "min")
            exchange.packets(positions, np.ones(positions.size, kind))
            exchange.expand_at(np.ones(4, kind), np.arange(4, dtype=np.uint32))

    dist.run(work, RANKS)


def _shared_memory() -> None:
    import mmap

    from matchwood.engines.ranks.networks import shared

    shared.SharedRegion(mmap.mmap(-1, sum(shared.layout(1, shared.ALIGNED))), 0, 1, shared.ALIGNED)


def _tiles() -> None:
    """PageRank reads blocks with many columns in tiles where few columns have half the entries."""
    import numpy as np

    from matchwood import dist
    from matchwood.gate import distributed
    from matchwood.ranking import pagerank

    leaves = np.arange(1, TILED_VERTICES)
    star = TILED_VERTICES, np.stack([np.zeros_like(leaves), leaves], axis=1)

    def work(comm: Any) -> None:
        for index in ("int32", "int64"):
            G = distributed.distribute(star, comm=comm, index_dtype=index)
            for kind in (np.float32, np.float64):
                pagerank(G, tol=0, max_iterations=1, dtype=kind)

    dist.run(work, 1)


def _generators() -> None:
    import numpy as np

    from matchwood import dist, generators

    def work(comm: Any) -> None:
        for kind in (np.float32, np.float64):
            generators.rmat(6, weights="uniform", dtype=kind, comm=comm)
            generators.erdos_renyi(30, 60, comm=comm)
            generators.dense_random(30, 0.4, comm=comm)
            generators.grid((5, 5), dtype=kind, comm=comm)
            generators.random_geometric(50, 0.3, weights="distance", dtype=kind, comm=comm)

    dist.run(work, RANKS)


MANY = 1 << 17  # vertices; a graph of this size takes the code paths for large graphs


# The calls that the registry lists, and those that need more than options.


def _listed() -> Iterator[tuple[str, bool, Callable[..., Any]]]:
    """(name, whether it takes a graph, function) of the registry's calls."""
    packets = _packets()
    values = {"src": packets[0], "dst": packets[1], "source": packets, "traffic": packets}
    for entry in registry.PROBLEMS:
        for suffix, options in entry.calls.items():
            home = importlib.import_module(f"matchwood.{entry.folder}")
            function = getattr(home, entry.function)
            wanted = inspect.signature(function).parameters
            data = next(iter(wanted))
            call = functools.partial(function, **{**entry.example, **options})
            name = f"{entry.warm}, {suffix}" if suffix else entry.warm
            if data in values:
                given = {key: value for key, value in values.items() if key in wanted}
                yield name, False, functools.partial(call, **given)
            else:
                yield name, True, functools.partial(_on_graph, call, data)


def _on_graph(call: Callable[..., Any], data: str, G: Graph) -> None:
    """Call a function of a graph, of the parents of a search or of one with labels."""
    import numpy as np

    from matchwood.traversal import bfs

    if data == "parent":
        call(bfs(G, 0).parent)
    elif "labels" in inspect.signature(call).parameters:
        call(G, labels=np.zeros(G.n, np.int64))
    else:
        call(G)


def _on_graphs() -> dict[str, Callable[[Graph], Any]]:
    from matchwood.forests import linear_forest, tridiagonal_of
    from matchwood.matching import coarsening_hierarchy, weighted_matching
    from matchwood.primitives import row_reduce
    from matchwood.primitives.inspect import trusted_symmetry
    from matchwood.primitives.symmetrize import trusted_union
    from matchwood.traversal import bfs, forest_roots

    def views(G: Graph) -> None:
        pattern = G.directed_pattern()
        G.undirected_pattern()
        G.undirected_weights()
        trusted_symmetry(*pattern[:2])  # the kernel for large graphs
        trusted_union(*pattern, threads=1)

    return {
        "graph": views,
        **{name: run for name, takes_graph, run in _listed() if takes_graph},
        "bfs, ranks": lambda G: _on_ranks(G, lambda D: forest_roots(bfs(D, 0).parent)),
        "components, ranks": lambda G: _on_ranks(G, _components_of_ranks),
        "matching, bound": lambda G: weighted_matching(G).bound,
        "coarsening_hierarchy": lambda G: coarsening_hierarchy(G, until=5),
        "preconditioners": _preconditioners,
        "forest, tridiagonal": lambda G: tridiagonal_of(G, linear_forest(G)),
        "ordering": _order,
        "gaps": _gaps,
        "refinement": _refined,
        "vertex cover": _covered,
        "row_reduce": lambda G: _reduce_rows(row_reduce, G),
    }


def _gaps(G: Graph) -> None:
    from matchwood import ordering

    ordering.gaps(G)
    ordering.gaps(G, ordering.hub_order(G))


def _refined(G: Graph) -> None:
    from matchwood.ordering import refine_order

    for metric in ("log_gap", "linear_gap"):
        for partners in ("neighbours", "median"):
            refine_order(G, metric=metric, partners=partners, fraction=1.0, threads=2)


def _covered(G: Graph) -> None:
    from matchwood.gate.graph import graph
    from matchwood.generators import path
    from matchwood.partitioning import minimum_vertex_cover

    minimum_vertex_cover(graph(path(9), index_dtype=G.indptr.dtype), threads=2)


def _on_ranks(G: Graph, work: Callable[[Any], Any]) -> None:
    """Call `work` with the graph distributed over four ranks, which are threads."""
    from matchwood import dist
    from matchwood.gate.distributed import distribute

    def body(comm: Any) -> None:
        given = G if comm.rank == 0 else None
        kind = G.indptr.dtype
        for order in ("given", "hashed"):
            work(distribute(given, comm=comm, order=order, index_dtype=kind))

    dist.run(body, 4)


def _components_of_ranks(D: Any) -> None:
    from matchwood.components import connected_components

    for method in ("auto", "colour", "colour/+SP+SW+VQ"):
        connected_components(D, method=method)


def _join() -> None:
    from matchwood.join import fuzzy_join

    for similarity in ("jaccard", "edit", "equal"):
        rows = [["database", "systems"], ["databases", "system"], ["graphs"]]
        fuzzy_join(rows, delta=0.4, similarity=similarity, q=4)
        fuzzy_join(rows, per_left=1, similarity=similarity, threads=2)


def _order(G: Graph) -> None:
    from matchwood.gate.graph import graph
    from matchwood.generators import star
    from matchwood.ordering import (
        permute,
        pseudo_peripheral_vertex,
        rcm_ordering,
        reverse_cuthill_mckee,
    )

    perm = reverse_cuthill_mckee(G)
    for method in ("serial", "leveled", "unordered", "batch_basic", "batch"):
        rcm_ordering(G, start=0, method=method)
    pseudo_peripheral_vertex(G, threads=2)
    large = graph(star(MANY), index_dtype=G.indptr.dtype)
    pseudo_peripheral_vertex(large, threads=2)
    reverse_cuthill_mckee(large)
    permute(G, perm)


def _preconditioners(G: Graph) -> None:
    import numpy as np

    from matchwood import preconditioners

    makers = (
        preconditioners.tridiagonal,
        preconditioners.algebraic_tridiagonal,
        preconditioners.algebraic_block_tridiagonal,
    )
    for make in makers:
        made = make(G, allow_singular=True)
        made.matvec(np.ones(G.n, made.dtype))


def _reduce_rows(row_reduce: Any, G: Graph) -> None:
    import numpy as np

    view = G.undirected_weights()
    row_reduce.spmv(*view, np.ones(G.n, view.data.dtype))
    row_reduce.strongest_neighbours(*view, 2)
    row_reduce.minimum_label(*view[:2], np.arange(G.n, dtype=view.indices.dtype))
    row_reduce.maximum_neighbour(*view[:2], np.ones(G.n, view.data.dtype))


def _once() -> dict[str, Callable[[], Any]]:
    import numpy as np

    from matchwood import generators, graph
    from matchwood.primitives import compact, frontier, hashing, scan, sort, union_find

    def indices(kind: Any) -> None:
        numbers = np.arange(100, dtype=kind)
        scan.exclusive_scan(numbers)
        compact.compact(numbers > 9)
        compact.compact(numbers > 9, numbers)
        frontier.queue_from_bitmap(frontier.bitmap_from_queue(numbers, 100), 100, dtype=kind)
        union_find.union_find(100, numbers[:-1], numbers[1:])
        hashing.mix64(numbers.astype("uint64"))
        hashing.hash2(numbers, numbers, 1)
        hashing.quarter_md5(numbers, 3)
        hashing.random_bit(numbers, 3, 0.5)

    def keys(kind: Any, payload: Any) -> None:
        sort.radix_sort(np.arange(100, dtype=kind), np.arange(100, dtype=payload))

    def graphs(kind: Any) -> None:
        generators.rmat(5, dtype=kind)
        generators.rmat(5, directed=True, dtype=kind)
        generators.erdos_renyi(30, 60, dtype=kind)
        generators.dense_random(30, 0.4, dtype=kind)
        generators.grid((5, 5), dtype=kind)
        generators.mesh((4, 4, 4), dtype=kind)
        generators.aniso(3, (5, 5), dtype=kind)
        generators.random_weights(generators.path(9), dtype=kind)

    def copies() -> None:
        indptr = np.zeros((1 << 18) + 1, np.int32)  # large enough to be copied by a team
        for copy in (True, False):
            graph((indptr, indptr[:0]), copy=copy)

    pairs = [(key, payload) for key in ("uint32", "uint64") for payload in ("int32", "int64")]
    return {
        **{f"primitives, {kind}": functools.partial(indices, kind) for kind in _INDICES},
        **{f"sort, {k}, {p}": functools.partial(keys, k, p) for k, p in pairs},
        **{f"generators, {kind}": functools.partial(graphs, kind) for kind in _VALUES},
        "generators, packets": lambda: [generators.packets(9, kind) for kind in PACKET_KINDS],
        "memory of graphs": copies,
        "io": _files_in_and_out,
        **{name: run for name, takes_graph, run in _listed() if not takes_graph},
        **_sensing(),
        "join": _join,
    }


def _packets() -> tuple[Any, Any]:
    from matchwood import generators

    found: tuple[Any, Any] = generators.packets(500, "zipf", hosts=20)
    return found


def _sensing() -> dict[str, Callable[[], Any]]:
    from matchwood import sensing

    src, dst = _packets()

    def captures() -> None:
        import numpy as np

        number = np.arange(src.size)
        sent = sensing.Packets(src, dst, number, src * 0 + 60, number.astype(np.uint8))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.pcap", "a.pcapng"):
                sensing.write_capture(Path(folder, name), sent)
                sensing.read_capture(Path(folder, name))

    def archives() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.tar")
            sensing.write_archive(path, [sensing.traffic_matrix(src, dst)], compression=None)
            list(sensing.read_archive(path))

    return {
        "sensing, captures": captures,
        "sensing, anonymity": lambda: _anonymized(src),
        "sensing, traffic": lambda: sensing.sum_matrices([sensing.traffic_matrix(src, dst)] * 3),
        "sensing, archives": archives,
    }


def _anonymized(addresses: Any) -> None:
    import importlib.util

    from matchwood.sensing import anonymize

    anonymize(addresses, "permutation", bytes(32))
    if importlib.util.find_spec("cryptography") is not None:
        anonymize(addresses, "cryptopan", bytes(32))


PACKET_KINDS = ("uniform", "zipf")
_INDICES = ("int32", "int64")
_VALUES = ("float32", "float64")


def _files_in_and_out() -> None:
    from matchwood import generators, io

    A = generators.random_weights(generators.path(20))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.mtx", "a.txt", "a.csv", "a.npz"):
            io.write(Path(folder, name), A)
            io.read(Path(folder, name))
        for name in ("a.graph", "a.gr", "a.col", "a.graph-txt"):
            io.write(Path(folder, name), generators.path(20))
            io.read(Path(folder, name))


def steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, function) for everything."""
    for index in _INDICES:
        for value in _VALUES:
            for name, run in _on_graphs().items():
                yield f"{name}, {index}, {value}", functools.partial(_on_both, run, index, value)
    yield from _once().items()
    yield from steps_on_ranks(_INDICES, _VALUES, _matrices)


def _on_both(run: Callable[[Any], Any], index: str, value: str) -> None:
    from matchwood.gate import graph as csr

    for matrix in _matrices(index, value):
        run(csr.graph(matrix, index_dtype=index))


def small_graphs_given_with_wide_indices() -> None:
    from matchwood.gate import graph as csr

    for value in _VALUES:
        for run in _on_graphs().values():
            for matrix in _matrices("int64", value):
                run(csr.graph(matrix))


def _matrices(index: str, value: str) -> tuple[csr_array, csr_array]:
    """A symmetric matrix with sorted rows, and one that is neither."""
    import numpy as np
    import scipy.sparse as sp

    n = 40
    u, v = np.arange(n - 1), np.arange(1, n)
    path = sp.csr_array((np.ones(n - 1), (u, v)), shape=(n, n))
    symmetric = sp.csr_array(path + path.T)
    symmetric.sort_indices()
    indptr = np.arange(0, 3 * n + 1, 3)
    indices = np.stack(((np.arange(n) + 5) % n, np.arange(n), (np.arange(n) + 5) % n), axis=1)
    directed = sp.csr_array((np.ones(3 * n), indices.ravel(), indptr), shape=(n, n))
    return _typed(symmetric, index, value), _typed(directed, index, value)


def _typed(A: csr_array, index: str, value: str) -> csr_array:
    import scipy.sparse as sp

    return sp.csr_array(
        (A.data.astype(value), A.indices.astype(index), A.indptr.astype(index)), shape=A.shape
    )
