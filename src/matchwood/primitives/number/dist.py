"""Labels numbered by ranks.  The rule: __init__.py.

The owner of the vertex that is the label collects the smallest vertex of that label.  These
smallest vertices are sorted into ranges of vertices, one for each rank; a rank counts those in its
range, so it knows their numbers.  Numbers go back the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.dist.exchanges import Letters
from matchwood.dist.exchanges.cpu_distinct import distinct, keep_least
from matchwood.primitives.number.cpu_owned import tell_own

Array = np.ndarray[Any, Any]


def number_labels(G: Any, labels: Array) -> tuple[int, Array]:
    """How many labels are in use, and for each own vertex the number of its label.

    `labels` are vertices, as the user numbers them, of own vertices by place.  They get 0, 1, ...
    in the order of their smallest vertices.  All ranks call it.  Labels that lie on a GPU are
    numbered on the host, and their numbers come back.
    """
    where, labels = engines.location(labels), engines.moved(labels, "cpu")
    exchange, grid, comm = G.exchange, G.grid, G.comm
    names = exchange_names(G)
    inside = labels if exchange.order is None else exchange.order.inside(labels)
    smallest = np.full(grid.owned, grid.n, np.int64)
    own, others = _tell_own(inside, names, grid, smallest)  # of the others the owners are told
    firsts, back = distinct(inside[others])
    used, least = inside[others[firsts]], names[others[firsts]]
    if exchange.order is not None:  # else own vertices ascend, and the first is the smallest
        keep_least(least, back, names[others])
    letters = Letters(comm, grid.owner(used), exchange.threads)
    places, offers = letters.send(grid.places(used), least.astype(_word(grid.n)))
    keep_least(smallest, places, offers)
    mine = np.flatnonzero(smallest < grid.n)
    number = np.empty(grid.owned, _word(grid.n))
    count, number[mine] = number_ids(comm, smallest[mine], grid.n, exchange.threads)
    (found,) = letters.answer(number[places])
    numbers = number[own]
    numbers[others] = found[back]
    return count, engines.moved(numbers.astype(labels.dtype, copy=False), where)


def _tell_own(labels: Array, names: Array, grid: Any, smallest: Array) -> tuple[Array, Array]:
    """As `tell_own`, in any layout."""
    if grid.layout == "stripes":
        return tell_own(labels, names, grid, smallest)
    mine = grid.owner(labels) == grid.rank
    places = np.where(mine, grid.places(labels), 0)
    keep_least(smallest, places[mine], names[mine])
    return places, np.flatnonzero(~mine)


def exchange_names(G: Any) -> Array:
    """The user's ids of own vertices, by place."""
    inside = G.grid.original_owned()
    return inside if G.order is None else G.order.user(inside)


def number_ids(comm: Any, ids: Array, n: int, threads: int | None) -> tuple[int, Array]:
    """How many ids there are on all ranks, and the place of each of mine among them all.

    Ids are below n, and no two are equal.
    """
    width = max(1, -(-n // comm.size))
    letters = Letters(comm, ids // width, threads)
    (came,) = letters.send(ids.astype(_word(n)))
    totals = comm.allgather(np.array([came.size], np.int64))
    marks = np.zeros(width, np.int64)
    inner = came - comm.rank * width
    marks[inner] = 1
    before = np.cumsum(marks) - 1 + int(totals[: comm.rank].sum())
    (found,) = letters.answer(before[inner].astype(_word(n)))
    return int(totals.sum()), found.astype(np.int64)


def _word(n: int) -> Any:
    """The smaller type that holds a vertex: fewer bytes to send."""
    return np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)
