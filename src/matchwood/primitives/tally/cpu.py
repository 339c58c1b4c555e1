"""The weights of the labels in a row, with a dense array of places for each member of a team.

    found = gather(scratch, rank, graph, labels, v, 0)      # labels scratch.label[rank, :found],
    ...                                                     # their weights scratch.weight[rank]
    forget(scratch, rank, found)                            # before the next row

`place[rank, c]` is 1 + where label c stands in the list of this row, 0 where it does not.  The list
itself is short and stays in the nearest cache.  Only `place` is as long as there are labels.  No
races: every member has its own rows of all three arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import device

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """CSR arrays as kernels read them: columns are unsigned; `data` is empty where all weigh 1."""

    indptr: Array
    indices: Array
    data: Array


class Scratch(NamedTuple):
    """What each member of a team needs: (members, labels), (members, longest row) twice."""

    place: Array
    label: Array
    weight: Array


def unsigned(kind: Any) -> Any:
    """The unsigned type of the same size."""
    return np.uint32 if np.dtype(kind).itemsize == 4 else np.uint64


def rows_of(indptr: Array, indices: Array, data: Array | None, kind: Any = np.int64) -> Rows:
    """The arrays of a graph as `Rows`."""
    weights = np.empty(0, kind) if data is None else data
    return Rows(indptr, indices.view(unsigned(indices.dtype)), weights)


def scratch_of(
    members: int, labels: int, longest: int, rows: Rows, kind: Any = np.int64
) -> Scratch:
    """Scratch for labels 0..labels-1 and rows of up to `longest` different ones; sums in `kind`."""
    return Scratch(
        np.zeros((members, labels), np.uint32),
        np.empty((members, longest), rows.indices.dtype),
        np.empty((members, longest), kind),
    )


@device
def gather(scratch: Scratch, rank: int, rows: Rows, labels: Array, v: Any, found: int) -> int:
    """Add the row of v to a list of `found` labels; returns how many it has then."""
    place, label, weight = scratch.place[rank], scratch.label[rank], scratch.weight[rank]
    one = np.uint64(1)
    begin = np.uint64(rows.indptr[np.uint64(v)])
    end = np.uint64(rows.indptr[np.uint64(v) + one])
    if rows.data.size > 0:
        for k in range(begin, end):
            c = labels[rows.indices[k]]
            at = np.uint64(place[c])
            if at == 0:
                label[found] = c
                weight[found] = rows.data[k]
                found += 1
                place[c] = found
            else:
                weight[at - one] += rows.data[k]
    else:
        for k in range(begin, end):
            c = labels[rows.indices[k]]
            at = np.uint64(place[c])
            if at == 0:
                label[found] = c
                weight[found] = 1
                found += 1
                place[c] = found
            else:
                weight[at - one] += 1
    return found


@device
def forget(scratch: Scratch, rank: int, found: int) -> None:
    """Empty the list, so that the next row can be added up."""
    place, label = scratch.place[rank], scratch.label[rank]
    for i in range(found):
        place[label[i]] = 0
