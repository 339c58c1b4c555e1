"""Values that go to chosen ranks, and the answers that are sent back.

Vertices are numbered as the grid numbers them: `Exchange.order` converts the user's ids to these,
and back.  Every function is called by all ranks.  Arrays are NumPy's or CuPy's.  Columns that are
sent together are packed into one array of bytes: one message instead of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type

Array = np.ndarray[Any, Any]


def by_destination(to: Any, parts: int, threads: int | None = None) -> tuple[Any, Any]:
    """(order, counts): a stable order by destination, and how many go to each."""
    if engines.location(to) == "gpu":
        xp = engines.xp(to)
        counts = xp.bincount(to, minlength=parts).get()
        return xp.argsort(to, kind="stable"), counts
    found: tuple[Any, Any] = engines.load(__package__, "cpu").by_destination(
        np.ascontiguousarray(to), parts, threads
    )
    return found


class Routed:
    """What this rank sends to others, and what they answer.  All ranks make one together.

    Element i goes to rank to[i] of `comm`.  After `send`, `received` are the numbers of elements
    that each rank sent to this one.
    """

    def __init__(self, comm: Any, to: Any, threads: int | None = None) -> None:
        self.comm = comm
        self._order, counts = by_destination(to, comm.size, threads)
        self._counts = np.asarray(counts)

    def send(self, *columns: Any) -> list[Any]:
        """The elements that all ranks sent to this one: by rank, then in the order given."""
        found, self.received = _exchanged(
            self.comm, [x[self._order] for x in columns], self._counts
        )
        return found

    def answer(self, *columns: Any) -> list[Any]:
        """The answers to what this rank sent, in the order in which it gave it.

        `columns` are this rank's answers, in the order of what was received.
        """
        answers = []
        for column in _exchanged(self.comm, columns, self.received)[0]:
            answer = engines.xp(column).empty(column.shape[0], column.dtype)
            answer[self._order] = column
            answers.append(answer)
        return answers


def _exchanged(comm: Any, columns: Any, counts: Any) -> tuple[list[Any], Any]:
    """The columns received, and how many elements from each rank."""
    if len(columns) == 1:
        flat, received = comm.alltoallv(columns[0], counts)
        return [flat], np.asarray(received)
    record = Record(*columns)
    flat, received = comm.alltoallv(record.packed, counts * record.width)
    return record.unpacked(flat), np.asarray(received) // record.width


class Record:
    """Columns that travel together as one array of bytes, `packed`, `width` bytes for each row."""

    def __init__(self, *columns: Any) -> None:
        self.kinds = [np.dtype(column.dtype) for column in columns]
        self.width = sum(kind.itemsize for kind in self.kinds)
        count = int(columns[0].shape[0])
        xp = engines.xp(columns[0])
        if xp is np:
            table = np.empty(count, self._fields())
            for k, column in enumerate(columns):
                table[f"f{k}"] = column
            self.packed = table.view(np.uint8)
            return
        table = xp.empty((count, self.width), np.uint8)  # CuPy has no types with fields
        at = 0
        for column in columns:
            end = at + column.dtype.itemsize
            table[:, at:end] = xp.ascontiguousarray(column).view(np.uint8).reshape(-1, end - at)
            at = end
        self.packed = table.reshape(-1)

    def _fields(self) -> Any:
        return np.dtype([(f"f{k}", kind) for k, kind in enumerate(self.kinds)])

    def unpacked(self, flat: Any) -> list[Any]:
        xp = engines.xp(flat)
        if xp is np:
            table = flat.view(self._fields())
            return [np.ascontiguousarray(table[f"f{k}"]) for k in range(len(self.kinds))]
        table = flat.reshape(-1, self.width)
        found, at = [], 0
        for kind in self.kinds:
            end = at + kind.itemsize
            found.append(xp.ascontiguousarray(table[:, at:end]).view(kind).reshape(-1))
            at = end
        return found


# To the owners of vertices, and to the ranks of a row or a column.  A `route` is an Exchange, or
# another object with a communicator `comm`, a `grid` and `threads`.


def deliver(route: Any, ids: Array, values: Array) -> tuple[Array, Array]:
    """(own places, values): what all ranks sent to the owner of each vertex."""
    routed = Routed(route.comm, route.grid.owner(ids), route.threads)
    places, values = routed.send(narrow(route.grid, ids), values)
    return places.astype(np.int64), values


def ask(route: Any, ids: Array, *own: Array) -> Any:
    """The owners' values of these vertices; `own` are arrays over own places.

    One array is returned for one, a tuple for several.  Every question and every answer is sent,
    so each vertex should be asked for once.
    """
    grid, comm = route.grid, route.comm
    if comm.size == 1:
        found = [values[ids] for values in own]
    else:
        routed = Routed(comm, grid.owner(ids), route.threads)
        (asked,) = routed.send(narrow(grid, ids))
        found = routed.answer(*(values[asked] for values in own))
    return found[0] if len(own) == 1 else tuple(found)


def narrow(grid: Any, ids: Array) -> Array:
    """The places of vertices at their owners, in the smaller type that holds them."""
    return narrowed(grid, grid.places(ids))


def narrowed(grid: Any, places: Any) -> Any:
    """Places in the smaller type that holds those of any rank: fewer bytes to send."""
    return places.astype(index_type(grid.most_owned), copy=False)


def to_group(comm: Any, messages: list[Array], kind: Any) -> list[Array]:
    """Send messages[k] to rank k of a row or a column; what was received from each."""
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
