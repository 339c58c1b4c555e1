"""Where a search of several ranks starts: what they must agree on, and which sources are own."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.agreement import same, together
from matchwood.engines.ranks.vectors import DistributedVector, layout_of
from matchwood.traversal.breadth_first import distinct_sources


def agree(G: Any, caller: str, sources: Any, depth_limit: Any, directed: Any) -> None:
    """Raise on all ranks unless they ask for the same search."""
    spoken = "a DistributedVector" if isinstance(sources, DistributedVector) else sources
    same(G.comm, caller, sources=spoken, depth_limit=depth_limit, directed=directed)


def starting_places(G: Any, caller: str, sources: Any) -> Any:
    """The places of own sources, ascending.

    Sources are the same vertices on all ranks, or a DistributedVector that marks them.
    """
    if isinstance(sources, DistributedVector):
        marks = together(G.comm, lambda: _marks(G, caller, sources))
        return np.flatnonzero(engines.moved(marks, "cpu"))
    listed = distinct_sources(sources, G.n, caller)
    inside = listed if G.order is None else G.order.inside(listed)
    return np.sort(G.grid.places(inside)[G.grid.owner(inside) == G.grid.rank])


def _marks(G: Any, caller: str, sources: Any) -> Any:
    mine, theirs = layout_of(G), layout_of(sources)
    if mine != theirs:
        raise ValueError(f"{caller}: sources must be spread over {mine}, got {theirs}")
    if sources.dtype != np.bool_ or sources.local.shape != (G.grid.owned,):
        raise TypeError(
            f"{caller}: sources must hold a truth value for each of {G.grid.owned} own vertices, "
            f"got {sources.dtype} of shape {sources.local.shape}"
        )
    return sources.local
