"""Connected components.  Read on in reference.py, check.py, cpu.py, gpu.py, devices/, ranks/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood import arguments, calls, engines

if TYPE_CHECKING:
    from matchwood.engines.devices import Devices

METHODS = ("auto", "afforest", "fastsv", "bfs")


@dataclass(frozen=True)
class Components:
    """What `connected_components` found; unpacks as ``count, labels``.

    Attributes
    ----------
    count : int
        Number of components.
    labels : (n,) integer array
        ``labels[v]`` is the component of v: 0, 1, ... in the order of their smallest vertices.
    rounds : int
        Passes of the method over the graph.
    stats : Stats, or None
        What was sent between host and devices, where the engine was a `Devices`.
    """

    count: int
    labels: Any
    rounds: int = 0
    stats: Any = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.count, self.labels))

    def sizes(self) -> Any:
        """Number of vertices of each component.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.connected_components((4, [[0, 2], [2, 3]])).sizes().tolist()
        [3, 1]
        """
        count = arguments.count("Components.sizes", "count", self.count)
        labels = arguments.integers(
            "Components.sizes", "labels", self.labels, low=0, high=max(count - 1, 0)
        )
        return engines.xp(labels).bincount(labels.astype(np.int64, copy=False), minlength=count)


def connected_components(
    A: Any,
    *,
    method: str = "auto",
    engine: str | Devices | None = None,
    threads: int | None = None,
) -> Components:
    """Find the connected components of a graph.

    Two vertices are in one component when a path of edges joins them.  The direction of arcs
    does not matter: a directed graph has its weak components found.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes; or a DistributedGraph
        Only the pattern is read: i and j are joined when ``A[i, j]`` or ``A[j, i]`` is stored,
        zero or not.
    method : {"auto", "afforest", "fastsv", "bfs"}
        ``"afforest"`` joins each vertex to two neighbours, finds out which component is by far
        the largest, and reads the other edges only of vertices outside it [1]_.
        ``"fastsv"`` lets labels flow along all edges at once, until none changes [2]_.
        ``"bfs"`` searches from the vertex of highest degree, and joins the edges of all vertices
        that this did not reach.  ``"auto"`` takes Afforest, the fastest in every measurement so
        far.

        For a DistributedGraph: {"auto", "colour"}.  ``"auto"`` joins the edges of each rank's
        block as on one machine, then makes one forest of the ranks' forests [3]_.  ``"colour"``
        propagates the smallest vertex, an edge a round [4]_; ``"colour/base"``, ``"colour/+SP"``,
        ``"colour/+SP+SW"`` and ``"colour/+SP+SW+VQ"`` are its steps in figure 6.6 there.  Where
        all ranks share a GPU, ``"auto"`` lets the first of them find the components for all, in a
        copy of the whole graph there, if half of the free memory holds it.
    engine : {None, "reference", "cpu", "gpu"} or Devices
        None takes the engine where `A` already lives.  Nothing is ever moved silently.  A
        `Devices` is for graphs larger than a GPU, by the method ``"afforest"`` (or ``"auto"``);
        prepare the Graph first: only where the pattern is known to be symmetric can rows stay
        where they are.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Components
        With `count`, `labels` and `rounds`; labels live where `A` lives, and have the index type
        of the graph.  Those of a DistributedGraph are a DistributedVector.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or the method is unknown.

    Notes
    -----
    Deterministic: components are numbered 0, 1, ... by their smallest vertex, so every method
    and engine, at any number of threads, returns the same labels.

    Work near-linear for Afforest; O((n + m) log n) at worst for FastSV.  Neither builds the
    symmetric pattern; ``"bfs"`` does where the pattern is not symmetric.  Memory: two arrays of
    n (FastSV three).

    References
    ----------
    .. [1] M. Sutton, T. Ben-Nun, A. Barak. Optimizing parallel graph connectivity computation
       via subgraph sampling. IPDPS 2018. doi:10.1109/IPDPS.2018.00012
    .. [2] Y. Zhang, A. Azad, Z. Hu. FastSV: a distributed-memory connected component algorithm
       with fast convergence. SIAM PP 2020. doi:10.1137/1.9781611976137.5
    .. [3] M. Patwary, J. Blair, F. Manne. Experiments on union-find algorithms for the
       disjoint-set data structure. SEA 2010. doi:10.1007/978-3-642-13193-6_35 (Rem's algorithm)
    .. [4] M. Mandulak. Large-scale graph analysis and matching on parallel architectures. PhD
       thesis, Rensselaer Polytechnic Institute, 2025, chapter 6.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array([[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 5]])
    >>> count, labels = matchwood.connected_components(A)
    >>> count, labels.tolist()
    (3, [0, 1, 0, 2])
    """
    caller = "connected_components"
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "ranks":
        found: Components = call.load(__name__).label(A, method, threads)
        return found
    arguments.one_of(caller, "method", method, METHODS)
    # the test costs a pass over the entries, which pays only for a Graph that is used again
    symmetric = call.graph.has_symmetric_pattern if call.prepared else False
    both_ways = method == "bfs" and not symmetric
    view = call.graph.undirected_pattern() if both_ways else call.graph.entries()
    count, labels, rounds, *stats = call.load(__name__).label(
        view, symmetric or both_ways, method, graph=call.graph, threads=threads, **call.options
    )
    return Components(count, call.back(labels), rounds, *stats)
