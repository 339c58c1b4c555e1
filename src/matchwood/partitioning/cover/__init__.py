"""Smallest vertex covers of bipartite graphs.  Read on in check.py.

Made of public functions: components, a search, a largest matching; so there are no engines here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls
from matchwood.components import connected_components
from matchwood.matching import Matching, maximum_matching
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Cover:
    """What `minimum_vertex_cover` returns.

    Attributes
    ----------
    members : (n,) boolean array
        Whether a vertex is in the cover.
    size : int
        Vertices of the cover.
    matching : Matching
        As many edges as the cover has vertices: no cover can be smaller, as it needs an end of
        each.
    side : (n,) int8 array
        0 or 1, no edge inside a side; the smallest vertex of each component is on side 0.
    """

    members: Any
    size: int
    matching: Matching
    side: Any

    def __repr__(self) -> str:
        return f"<Cover: {self.size} of {self.members.shape[0]} vertices>"


def minimum_vertex_cover(A: Any, *, engine: str | None = None, threads: int | None = None) -> Cover:
    """Find as few vertices as possible that touch every edge of a bipartite graph.

    Koenig [1]_: let M be a largest matching, and Z all that is reached from the free vertices of
    side 0 by paths whose every second edge is in M.  Then

        cover = (side 0 without Z) and (what Z has of side 1)

    has one vertex of each edge of M, so that it is smallest.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        i and j are joined when ``A[i, j]`` or ``A[j, i]`` is stored and ``i != j``.  For a
        bipartite graph given as a rectangle B, pass ``[[0, B], [B.T, 0]]``.
    engine : {None, "reference", "cpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    Cover
        With `members`, `size`, the `matching` that proves it, and `side`.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or the graph is not bipartite; names an edge of an odd cycle.
    EngineUnavailable
        On the GPU.

    Notes
    -----
    Of all smallest covers this is the one with the most vertices of side 0: Z is the same for every
    largest matching (Dulmage and Mendelsohn), so the cover does not depend on it.  Work and memory
    are those of `maximum_matching` and of three searches.

    References
    ----------
    .. [1] D. Koenig. Graphen und Matrizen. Matematikai es Fizikai Lapok 38, 1931.

    Examples
    --------
    >>> import matchwood
    >>> cover = matchwood.minimum_vertex_cover(matchwood.generators.star(6))
    >>> cover.members.tolist(), cover.matching.cardinality
    ([True, False, False, False, False, False], 1)
    """
    caller = "minimum_vertex_cover"
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "gpu":
        call.load(__name__)
    options: dict[str, Any] = {"engine": call.engine, "threads": threads}
    view = call.graph.undirected_pattern()
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    side = _sides(call.graph, view, row, caller, options)
    matching = maximum_matching(call.graph, method="hopcroft_karp", **options)
    mate = matching.mate
    # Z on side 0: from u over v to the mate of v; v has one, or the matching could grow
    heads = mate[view.indices]
    arcs = (side[row] == 0) & (heads >= 0)
    free = np.flatnonzero((side == 0) & (mate < 0))
    reached = np.zeros(view.n, bool)
    if free.size:
        edges = np.stack([row[arcs], heads[arcs]], axis=1)
        reached = bfs((view.n, edges), free, **options).level >= 0
    members = np.where(side == 0, ~reached, (mate >= 0) & reached[mate])
    return Cover(members, int(members.sum()), matching, side)


def _sides(graph: Any, view: Any, row: Array, caller: str, options: dict[str, Any]) -> Array:
    """0 or 1 for each vertex: the parity of its distance to the smallest of its component."""
    if view.n == 0:
        return np.empty(0, np.int8)
    labels = connected_components(graph, **options).labels
    starts = np.unique(labels, return_index=True)[1]
    side = (bfs(graph, starts, directed=False, **options).level & 1).astype(np.int8)
    odd = side[row] == side[view.indices]
    if odd.any():
        u, v = int(row[odd.argmax()]), int(view.indices[odd.argmax()])
        raise ValueError(
            f"{caller}: the graph must be bipartite, but the edge {u}, {v} is in an odd cycle"
        )
    return side
