"""Reading a graph as any Python can: slower than quick.py, for all that quick.py does not know.

Another thread may change the graph between two lines here.  So what must fit together is read by
one call of a compiled function, during which Python runs no code of its own unless nodes have
methods written in Python: first which nodes there are, then how long the rows are, then what is in
them.  Where the parts do not fit what was seen before, an error says that the graph was changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, compress
from operator import itemgetter, methodcaller
from typing import Any, NamedTuple

import numpy as np


class Rows(NamedTuple):
    """The structure of a graph.  Neighbours of a node stand in the order NetworkX keeps them."""

    nodes: list[Any]
    numbered: bool  # the nodes are the integers 0, 1, 2, ...
    indptr: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]


def changed() -> RuntimeError:
    """The error for a graph that is not what it was a moment ago."""
    return RuntimeError("the graph was changed while matchwood was reading it")


def index_dtype(n: int, nnz: int) -> Any:
    return np.int32 if max(n, nnz) <= np.iinfo(np.int32).max else np.int64


def sources(rows: Rows) -> np.ndarray[Any, Any]:
    """The vertex at which each entry of ``rows.indices`` stands."""
    return np.repeat(np.arange(len(rows.nodes), dtype=rows.indices.dtype), np.diff(rows.indptr))


def plain_rows(adjacency: dict[Any, Mapping[Any, Any]]) -> Rows:
    """The rows of an adjacency, nodes numbered in its order."""
    nodes = list(adjacency)
    n, nnz = len(nodes), sum(map(len, adjacency.values()))
    numbered = set(map(type, nodes)) <= {int} and nodes == list(range(n))
    neighbours: Any = chain.from_iterable(adjacency.values())
    if not numbered:
        place = {node: i for i, node in enumerate(nodes)}
        neighbours = map(place.__getitem__, neighbours)
    stream = chain(map(id, adjacency), map(len, adjacency.values()), neighbours)
    try:
        read = np.fromiter(stream, np.int64, 2 * n + nnz)
    except ValueError:  # too few
        raise changed() from None
    except KeyError as error:
        raise RuntimeError(f"{changed()}: {error} is a neighbour but no node") from None
    names, lengths, indices = read[:n], read[n : 2 * n], read[2 * n :]
    if (
        next(stream, None) is not None
        or not np.array_equal(names, np.fromiter(map(id, nodes), np.int64, n))
        or lengths.sum() != nnz
        or (nnz and not 0 <= indices.min() <= indices.max() < n)
    ):
        raise changed()
    dtype = index_dtype(n, nnz)
    indptr = np.zeros(n + 1, dtype)
    np.cumsum(lengths, out=indptr[1:])
    return Rows(nodes, numbered, indptr, indices.astype(dtype))


def plain_cells(rows: Rows, adjacency: Any, directed: bool) -> list[Any]:
    """What is stored for each pair of neighbours, once for each edge."""
    n = len(rows.nodes)
    stored: Any = chain.from_iterable(map(methodcaller("values"), adjacency.values()))
    if not directed:
        half = sources(rows) <= rows.indices
        stored = compress(stored, half.view(np.uint8).tobytes())
    read = list(chain(map(id, adjacency), map(len, adjacency.values()), stored))
    if read[:n] != list(map(id, rows.nodes)) or read[n : 2 * n] != np.diff(rows.indptr).tolist():
        raise changed()
    return read[2 * n :]


def attribute(data: list[Any], name: Any) -> list[Any]:
    """A value of each dictionary, 1 where it is missing, as NetworkX takes it."""
    try:
        return list(map(itemgetter(name), data))
    except KeyError:
        return [each.get(name, 1) for each in data]
