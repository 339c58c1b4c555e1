"""Edges brought to the rank that keeps their entry, and looked up there."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.ranks.exchanges import Routed
from matchwood.spanning.forest.ranks.cpu_checking import find_entries

Array = np.ndarray[Any, Any]


def at_keepers(
    G: Any, costs: Any, low: Array, high: Array, *columns: Array
) -> tuple[Array, Array, Array, list[Array]]:
    """(entries, low, high, columns) of the edges for this rank; an entry is -1 where none is.

    Ends are the user's numbers.  All ranks call this.
    """
    grid = G.grid
    u, v = (ends if G.order is None else G.order.inside(ends) for ends in (low, high))
    kind = G.index_dtype
    given = (grid.row_position(u).astype(kind), low.astype(kind), high.astype(kind), *columns)
    rows, low, high, *found = Routed(G.comm, grid.keeper(u, v), G.threads).send(*given)
    entries = find_entries(costs, G.original_local, rows.astype(np.int64), high, G.threads)
    return entries, low.astype(np.int64), high.astype(np.int64), found
