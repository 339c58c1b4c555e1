"""What `warmup` compiles for graphs that are spread over ranks: here the ranks are threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

RANKS = 2
MANY = 600_000  # vertices; PageRank on ranks has other kernels for so many


def steps(
    indices: tuple[str, ...], values: tuple[str, ...], matrices: Callable[[str, str], Any]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(what, function that makes it compile); `matrices` makes two of given types."""
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

    leaves = np.arange(1, MANY)
    star = MANY, np.stack([np.zeros_like(leaves), leaves], axis=1)

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
