"""Words for the owners of vertices, and questions that they answer.

Vertices are numbered as the grid numbers them here: `Exchange.order` turns the user's ids into
these, and back.  Every function is called by all ranks.  Arrays are NumPy's or CuPy's.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from matchwood.engines.ranks.exchanges.letters import Letters

Array = np.ndarray[Any, Any]


class Route(Protocol):
    """How to get to owners; an `Exchange` is one."""

    @property
    def comm(self) -> Any:
        """The communicator of all ranks."""

    @property
    def grid(self) -> Any:
        """Who owns which vertex."""

    @property
    def threads(self) -> int | None:
        """Threads of this rank."""


def deliver(route: Route, ids: Array, values: Array) -> tuple[Array, Array]:
    """(own places, values): what all ranks sent to the owner of each vertex."""
    letters = Letters(route.comm, route.grid.owner(ids), route.threads)
    places, values = letters.send(narrow(route.grid, ids), values)
    return places.astype(np.int64), values


def ask(route: Route, ids: Array, values: Array) -> Array:
    """The owner's value of each vertex; `values` are those of own places.

    A word for each question and one for its answer, so each vertex should be asked for once.
    """
    grid, comm = route.grid, route.comm
    if comm.size == 1:
        return values[ids]
    letters = Letters(comm, grid.owner(ids), route.threads)
    (asked,) = letters.send(narrow(grid, ids))
    (found,) = letters.answer(values[asked])
    return found


def narrow(grid: Any, ids: Array) -> Array:
    """The places of vertices at their owners, in the smaller type that holds them."""
    most = grid.most_owned
    return grid.places(ids).astype(np.int32 if most <= np.iinfo(np.int32).max else np.int64)


def to_group(comm: Any, messages: list[Array], kind: Any) -> list[Array]:
    """Send messages[k] to rank k of a row or a column; what came from each."""
    sizes = [int(message.size) for message in messages]
    whole = np.concatenate(messages) if messages else np.empty(0, kind)
    found, counts = comm.alltoallv(whole.astype(kind, copy=False), sizes)
    ends = np.cumsum([0, *counts])
    return [found[ends[k] : ends[k + 1]] for k in range(comm.size)]


def gather_messages(comm: Any, message: Array) -> list[Array]:
    """The message of each rank of a row or a column."""
    found, counts = comm.allgatherv(message)
    ends = np.cumsum([0, *counts])
    return [found[ends[k] : ends[k + 1]] for k in range(comm.size)]
