"""Values that go to chosen ranks, and the answers that come back.

Columns that travel together are packed into one array of bytes: one message instead of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


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


class Letters:
    """What this rank sends to others, and what they answer.  All ranks make one together.

    Parameters
    ----------
    comm : Communicator
    to : array
        For each element the rank of `comm` that it goes to.

    Attributes
    ----------
    came : array, after `send`
        How many elements came from each rank.
    """

    def __init__(self, comm: Any, to: Any, threads: int | None = None) -> None:
        self.comm = comm
        self._order, counts = by_destination(to, comm.size, threads)
        self._counts = np.asarray(counts)

    def send(self, *columns: Any) -> list[Any]:
        """The columns of all ranks as far as they were for this one: by rank, then as given."""
        found, self.came = _exchanged(self.comm, [x[self._order] for x in columns], self._counts)
        return found

    def answer(self, *columns: Any) -> list[Any]:
        """The answers to what this rank sent, in the order in which it gave it.

        `columns` are this rank's answers, in the order of what came.
        """
        answers = []
        for column in _exchanged(self.comm, columns, self.came)[0]:
            answer = engines.xp(column).empty(column.shape[0], column.dtype)
            answer[self._order] = column
            answers.append(answer)
        return answers


def _exchanged(comm: Any, columns: Any, counts: Any) -> tuple[list[Any], Any]:
    """The columns that came, and how many elements from each rank."""
    if len(columns) == 1:
        flat, came = comm.alltoallv(columns[0], counts)
        return [flat], np.asarray(came)
    record = Record(*columns)
    flat, came = comm.alltoallv(record.packed, counts * record.width)
    return record.unpacked(flat), np.asarray(came) // record.width


class Record:
    """Columns that travel together, as one array of bytes.

    Attributes
    ----------
    packed : array of uint8
    width : int
        Bytes of one element of all columns.
    """

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
        """The columns of an array of bytes."""
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
