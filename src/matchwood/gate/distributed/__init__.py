"""The gate of graphs that are distributed over ranks: it makes each rank's block.

The rules are those of gate/graph.py, bit for bit: a view of a block holds those entries of the same
view of the whole matrix that this rank keeps (engines/ranks/grid).  All ranks call every function
here.

    sources.py      what a rank may pass; entries in batches; vertices that are renumbered
    collecting.py   how entries are sent to the rank that keeps them
    views.py        the rules of the gate for a block
    graph.py        the graph as a rank sees it.  saved.py: the same in a folder
    whole.py        the graph on one rank, where all share a GPU
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from matchwood import arguments, registry
from matchwood._lazy import import_whole
from matchwood.engines.ranks import grid as grids
from matchwood.engines.ranks.agreement import same, together
from matchwood.engines.ranks.exchanges import KINDS
from matchwood.engines.ranks.protocol import Communicator
from matchwood.gate import refusals, resources
from matchwood.gate.distributed import saved, sources
from matchwood.gate.distributed.graph import DistributedGraph, Facts
from matchwood.gate.distributed.sources import Source
from matchwood.gate.distributed.views import Blocks
from matchwood.gate.entries import DUPLICATES
from matchwood.gate.views import View

__all__ = ["DistributedGraph", "distribute"]

FOUND = {"rcm": "reverse_cuthill_mckee", "partition": "partition"}  # public functions that order
ORDERS = ("auto", "given", "hashed", "contiguous", *FOUND)
LAYOUTS = ("stripes", "ranges")


def distribute(
    A: Any,
    *,
    comm: Any,
    n: int | None = None,
    weights: Any = None,
    grid: Any = None,
    order: str = "auto",
    layout: str = "stripes",
    exchange: str = "own",
    duplicates: str | None = None,
    index_dtype: Any = None,
) -> DistributedGraph:
    """Distribute a graph over the ranks of a communicator.

    Every rank calls it, with its part of the graph.  The parts together, rank 0 first, are what
    `matchwood.graph` would be given on one machine, and the same rules hold.

    Parameters
    ----------
    A : array, tuple, sparse matrix, graph or None
        Of this rank: edges of shape (m, 2), ``(n, edges)`` or ``(n, edges, weights)``; or a
        sparse matrix with the next rows after those of the ranks before, and as many columns as
        all ranks together have rows; or, on one rank alone, the whole graph: a `Graph`, a
        NetworkX graph, ``(indptr, indices[, data])``.  None: this rank has nothing.
    comm : Communicator
        Of `matchwood.dist`.
    n : int, optional
        Vertices, where `A` does not say; else one more than the largest in any edge.
    weights : (m,) array, optional
        Of the edges, where `A` does not hold them.
    grid : str or (int, int), optional
        "RxC": R ranks down, C across.  By default nearest to square.
    order : {"auto", "given", "hashed", "contiguous", "rcm", "partition"}
        "given" deals vertices out one by one: vertex v goes to rank v mod p.  "contiguous" gives
        every rank a range of vertices, for meshes and roads whose neighbours have numbers near
        each other: most entries then stay with the owner of both ends.  "hashed" renumbers the
        vertices by a computed permutation before they are distributed, for graphs whose numbers
        have structure.  "auto" looks at a sample of the entries: "contiguous" where three in four
        stay within a range and no rank gets more than 1.5 times the mean, "hashed" where a rank
        would otherwise keep more than that, else "given".  "rcm" and "partition" are for meshes and
        roads whose numbers say nothing: ranges are those of the reverse Cuthill-McKee order, or the
        blocks of `partition`.  The first rank finds them, for which its memory must hold the graph,
        and every rank keeps two numbers a vertex.  Users see their own numbers in any case.
    layout : {"stripes", "ranges"}
        "ranges" is that of Mandulak's thesis, for comparison.  Steps that need stripes then make a
        second copy of the graph in them; ``stats`` says so.
    exchange : {"own", "thesis"}
        "thesis" lets ranks exchange values as that thesis does, for comparison.
    duplicates, index_dtype
        As for `matchwood.graph`.

    Returns
    -------
    DistributedGraph

    Raises
    ------
    TypeError, ValueError
        On all ranks alike, before anything is sent: if a rank's part is wrong, or ranks differ
        in the kind of `A`, its number of vertices, the type of its weights, or other arguments;
        if the grid has not as many places as there are ranks.

    Notes
    -----
    Entries are sent in batches, and a rank never has more than two indices and the value of each
    entry that it keeps, beside one batch.  Values must be numbers; their type is kept.  A rank
    whose part lies on a GPU gets its views there; the block is made on the CPU.

    Examples
    --------
    >>> import matchwood
    >>> def two_halves(comm):
    ...     edges = [[[0, 1], [1, 2]], [[2, 3], [3, 0]]][comm.rank]
    ...     G = matchwood.distribute((4, edges), comm=comm)
    ...     return G.degrees.gather(None).tolist()
    >>> matchwood.dist.run(two_halves, 2)
    [[2, 2, 2, 2], [2, 2, 2, 2]]
    """
    require_comm(comm, "distribute")
    same(comm, "distribute", n=n, grid=grid, order=order, layout=layout, exchange=exchange,
         duplicates=duplicates, index_dtype=index_dtype)  # fmt: skip
    arguments.one_of("distribute", "duplicates", duplicates, DUPLICATES)
    share = together(comm, lambda: sources.read(A, n, weights, "distribute"))
    if n is not None:
        n = arguments.count("distribute", "n", n)
    agreed = sources.Agreed(comm, share, n, "distribute")
    source = agreed.source(share)
    del share
    arguments.one_of("distribute", "exchange", exchange, KINDS)
    graph = make(
        "distribute", comm, agreed.n, source, grid=grid, order=order, layout=layout,
        index_dtype=index_dtype, edges=agreed.edges, duplicates=duplicates or agreed.duplicates,
        engine=agreed.engine,
    )  # fmt: skip
    graph.exchange = graph.exchange.with_kind(exchange)
    return graph


def require_comm(comm: Any, caller: str) -> Any:
    """The communicator; TypeError where it is none."""
    if not isinstance(comm, Communicator):
        raise TypeError(
            f"{caller}: comm must be a communicator of matchwood.dist, got {type(comm).__name__}"
        )
    return comm


def make(
    caller: str,
    comm: Any,
    n: int,
    source: Source,
    *,
    grid: Any = None,
    order: str = "auto",
    layout: str = "stripes",
    index_dtype: Any = None,
    edges: bool = False,
    duplicates: str | None = None,
    reduce: str | None = None,
    values: Callable[[Blocks, View], Any] | None = None,
    engine: str = "cpu",
    nnz: int | None = None,
) -> DistributedGraph:
    """The graph of a source whose entries are within 0 .. n - 1; all ranks call it alike.

    `reduce` joins equal entries at once; the joined ones are then the entries "as given".
    `values` makes or replaces the values of a block.  `nnz`: the entries as given, if known.
    """
    require_comm(comm, caller)
    R, C = grids.parsed(caller, grid, comm.size)
    arguments.one_of(caller, "order", order, ORDERS)
    arguments.one_of(caller, "layout", layout, LAYOUTS)
    if order in ("contiguous", *FOUND) and layout != "stripes":
        raise ValueError(f"{caller}: order {order!r} needs the layout 'stripes', got {layout!r}")
    arguments.one_of(caller, "duplicates", duplicates, DUPLICATES)
    refusals.index_kind(0, 0, index_dtype, caller)
    # names, positions and row ends of about n / R + n / C vertices
    room, what = 32 * (n // R + n // C), f"a graph of {n} vertices"
    together(comm, lambda: resources.require_memory(caller, room, what))
    laid = grids.made(layout, n, R, C, comm.rank)
    if order in FOUND and 1 < comm.size <= n:
        chosen: sources.Order = _found(comm, laid, source, order, caller)
    else:
        chosen = sources.chosen_order(comm, laid, source, order)
    places = Blocks(comm, laid, chosen)
    joined = reduce is not None
    if reduce is None:
        reduce = "first" if source.kind is None and duplicates != "error" else "keep"
    block, received = places.collected(source, None, reduce)
    kind = refusals.index_kind(n, places.most(block.nnz), index_dtype, caller)
    if kind != block.indices.dtype:
        indptr, indices = block.indptr.astype(kind), block.indices.astype(kind)
        block = View(indptr, indices, block.data)
    if values is not None:
        block = block._replace(data=values(places, block))
    if nnz is None:
        nnz = places.total(block.nnz if joined else received)[0]
    facts = Facts(nnz, edges, duplicates, caller)
    graph = DistributedGraph(places, block, facts)
    return graph.on(engine)


def _found(comm: Any, laid: Any, source: Source, name: str, caller: str) -> sources.TableOrder:
    """The order that the first rank finds with the public function of one machine."""
    places = Blocks(comm, laid, None)
    block, _ = places.collected(source._replace(kind=None), None, "first")
    pattern = DistributedGraph(
        places, block, Facts(places.total(block.nnz)[0], False, None, caller)
    )

    def work(whole: Any) -> Any:
        module = import_whole(registry.homes()[FOUND[name]])
        order = getattr(module, FOUND[name])
        if name == "rcm":
            return order(whole)
        return np.argsort(order(whole, comm.size, imbalance=0.0).labels, kind="stable")

    return sources.TableOrder(name, pattern.on_first(work).gather(None), comm.size)


def load(folder: Path, comm: Any, grid: Any = None, order: str = "auto") -> DistributedGraph:
    """The graph of a folder that `DistributedGraph.save` wrote, on the ranks of `comm`."""
    facts, source, nnz, finish = saved.opened(folder, comm)
    graph = make(
        "read", comm, facts["n"], source, grid=grid, order=order, edges=facts["edges"],
        duplicates=facts["duplicates"], index_dtype=facts["index_dtype"], nnz=nnz,
    )  # fmt: skip
    finish()
    return graph
