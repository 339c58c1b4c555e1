"""From dictionaries of dictionaries to CSR arrays: which rows, which neighbours, which edges.

There are two ways.  The quick one reads the dictionaries' memory (cpu.py); the plain one is for
Pythons, subclasses and nodes that the quick one does not know.  Both give the same arrays.
"""

from __future__ import annotations

import functools
import math
import struct
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from itertools import chain, compress
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

KNOWN_PYTHONS = ((3, 11), (3, 14))  # first and last whose dictionaries have the layout of cpu.py
QUICK_FROM = 500  # nodes; the first use of the quick way loads compiled code


class Rows(NamedTuple):
    """The structure of a graph.  Neighbours of a node stand in the order NetworkX keeps them."""

    nodes: list[Any]
    numbered: bool  # the nodes are the integers 0, 1, 2, ...
    indptr: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]


class Edges(NamedTuple):
    """Every edge once, in the order of ``G.edges``; of a multigraph every parallel one."""

    u: np.ndarray[Any, Any]
    v: np.ndarray[Any, Any]
    keys: list[Any] | None = None  # of a multigraph
    data: list[dict[Any, Any]] | None = None  # of a multigraph: the graph's own dictionaries


def plain_adjacency(G: Any) -> dict[Any, Any]:
    """The adjacency as dictionaries all through; a view of a graph is copied into some."""
    adjacency = G._adj
    if isinstance(adjacency, dict):
        return adjacency
    if G.is_multigraph():
        return {u: {v: dict(kd) for v, kd in row.items()} for u, row in adjacency.items()}
    return {u: dict(row) for u, row in adjacency.items()}


def read_rows(adjacency: dict[Any, Mapping[Any, Any]], *, quick: bool = True) -> Rows:
    """The rows of an adjacency, nodes numbered in its order."""
    found = None
    if quick and len(adjacency) >= QUICK_FROM and layout_is_known():
        found = _quick_rows(adjacency)
    return _plain_rows(adjacency) if found is None else found


def sources(rows: Rows) -> np.ndarray[Any, Any]:
    """The vertex at which each entry of ``rows.indices`` stands."""
    return np.repeat(np.arange(len(rows.nodes), dtype=rows.indices.dtype), np.diff(rows.indptr))


def read_edges(rows: Rows, adjacency: Any, directed: bool, multi: bool) -> Edges:
    """The edges of an adjacency; only of a multigraph does it need to look there."""
    u, v = (sources(rows), rows.indices) if directed else _upper(rows)
    if not multi:
        return Edges(u, v)
    bundles = list(_cells(rows, adjacency, directed))
    times = np.fromiter(map(len, bundles), np.int64, len(bundles))
    keys = list(chain.from_iterable(bundles))
    data = list(chain.from_iterable(bundle.values() for bundle in bundles))
    return Edges(np.repeat(u, times), np.repeat(v, times), keys, data)


def _upper(rows: Rows) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of the two entries of an edge the one at the node that comes first."""
    from matchwood.networkx_backend import cpu
    from matchwood.teams import crew

    # one more: where to put what does not count, after all that do
    u, v = (np.empty(rows.indices.size + 1, rows.indices.dtype) for _ in range(2))
    count = np.zeros(1, np.int64)
    crew(1, work=u.size).run(cpu.upper, rows.indptr, rows.indices, u, v, count)
    return u[: count[0]].copy(), v[: count[0]].copy()


def _cells(rows: Rows, adjacency: Any, directed: bool) -> Iterator[Any]:
    """What is stored for each pair of neighbours, once for each edge."""
    cells = chain.from_iterable(row.values() for row in adjacency.values())
    if directed:
        return cells
    half = sources(rows) <= rows.indices
    return compress(cells, half.view(np.uint8).tobytes())


def read_values(
    rows: Rows, adjacency: Any, directed: bool, name: Any, *, quick: bool = True
) -> np.ndarray[Any, Any] | list[Any]:
    """An attribute of every edge of a graph that is no multigraph, 1 where it is missing.

    An array of floats where all are floats or small integers, and the quick way can be used.
    """
    if quick and len(adjacency) >= QUICK_FROM and layout_is_known():
        found = _quick_values(rows, adjacency, directed, name)
        if found is not None:
            return found
    return attribute(list(_cells(rows, adjacency, directed)), name)


def read_data(
    rows: Rows, adjacency: Any, directed: bool, count: int, chosen: Any, *, quick: bool = True
) -> list[Any] | None:
    """The dictionaries of some of the `count` edges; None where only Python can find them."""
    if not quick or type(adjacency) is not dict or len(adjacency) != len(rows.nodes):
        return None
    if len(adjacency) < QUICK_FROM or not layout_is_known():
        return None
    from matchwood.networkx_backend import cpu

    found = [None] * chosen.size
    kinds = np.array([id(dict), id(float), id(int)])
    cells = np.empty(count + 3 * len(adjacency) + 1, np.int64)
    arrays = rows.indptr, rows.indices, not directed, cells, chosen
    return found if cpu.gather(id(adjacency), kinds, *arrays, id(found)) == 0 else None


def attribute(data: list[Any], name: Any) -> list[Any]:
    """A value of each dictionary, 1 where it is missing, as NetworkX takes it."""
    try:
        return list(map(itemgetter(name), data))
    except KeyError:
        return [each.get(name, 1) for each in data]


def _index_dtype(n: int, nnz: int) -> Any:
    return np.int32 if max(n, nnz) <= np.iinfo(np.int32).max else np.int64


# The plain way


def _plain_rows(adjacency: dict[Any, Mapping[Any, Any]]) -> Rows:
    nodes = list(adjacency)
    n = len(nodes)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.fromiter(map(len, adjacency.values()), np.int64, n), out=indptr[1:])
    nnz = int(indptr[-1])
    dtype = _index_dtype(n, nnz)
    numbered = set(map(type, nodes)) <= {int} and nodes == list(range(n))
    neighbours: Any = chain.from_iterable(adjacency.values())
    if not numbered:
        place = {node: i for i, node in enumerate(nodes)}
        neighbours = map(place.__getitem__, neighbours)
    indices = np.fromiter(neighbours, dtype, nnz)
    return Rows(nodes, numbered, indptr.astype(dtype), indices)


# The quick way


def _quick_rows(adjacency: dict[Any, Any]) -> Rows | None:
    """None where it cannot be used."""
    from matchwood.networkx_backend import cpu
    from matchwood.teams import crew

    if type(adjacency) is not dict:
        return None
    n = len(adjacency)
    rows, hashes = np.empty(n, np.int64), np.empty(n, np.int64)
    indptr = np.empty(n + 1, np.int64)
    integers = cpu.read_nodes(id(adjacency), id(int), rows, hashes)
    if integers < 0 or (nnz := cpu.count_rows(rows, id(dict), indptr)) < 0:
        return None
    dtype = _index_dtype(n, nnz)
    numbered = bool(integers) and bool((hashes == np.arange(n)).all())
    if numbered:  # the hash of a small integer is the integer
        indices = np.empty(nnz, dtype)
        if cpu.read_rows(rows, indptr, n, indices) < 0:
            return None
    else:
        slots = np.full(1 << (2 * n).bit_length(), -1, dtype)
        neighbours = np.empty(nnz, np.int64)
        if not cpu.enter(hashes, slots) or cpu.read_rows(rows, indptr, 0, neighbours) < 0:
            return None
        indices = np.empty(nnz, dtype)
        crew(work=4 * nnz).run(cpu.look_up, neighbours, hashes, slots, indices)
        if nnz and indices.min() < 0:
            return None  # a neighbour that is no node: let plain Python say so
    return Rows(list(adjacency), numbered, indptr.astype(dtype), indices)


def _quick_values(rows: Rows, adjacency: Any, directed: bool, name: Any) -> Any | None:
    """None where it cannot be used."""
    from matchwood.networkx_backend import cpu

    if type(adjacency) is not dict or type(name) is not str or len(adjacency) != len(rows.nodes):
        return None
    n = len(adjacency)
    tables, indptr = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    if (
        cpu.read_nodes(id(adjacency), id(int), tables, np.empty(n, np.int64)) < 0
        or cpu.count_rows(tables, id(dict), indptr) < 0
        or not np.array_equal(indptr, rows.indptr)  # the graph was changed meanwhile
    ):
        return None
    m = rows.indices.size if directed else int((sources(rows) <= rows.indices).sum())
    cells, found = np.empty(m, np.int64), np.empty(m, np.float64)
    kinds = np.array([id(dict), id(float), id(int)])
    tagged = sys.version_info >= (3, 12)
    name = sys.intern(name)
    if (
        cpu.read_cells(tables, indptr, rows.indices, not directed, cells) < 0
        or cpu.read_attribute(cells, id(name), hash(name), kinds, tagged, 1.0, found) < 0
    ):
        return None
    return found


@functools.cache
def layout_is_known() -> bool:
    """May the memory of dictionaries be read here?  Decided by version, then tried."""
    first, last = KNOWN_PYTHONS
    if (
        sys.implementation.name != "cpython"
        or not first <= sys.version_info[:2] <= last
        or struct.calcsize("P") != 8
        or sys.byteorder != "little"
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or hasattr(sys, "getobjects")  # a build that keeps a list of all objects
    ):
        return False
    return all(_same(sample) for sample in _samples()) and _same_values()


def _samples() -> list[dict[Any, dict[Any, Any]]]:
    """Adjacencies of every kind of dictionary, with deleted entries."""
    numbers: dict[Any, dict[Any, Any]] = {i: {} for i in range(40)}
    words: dict[Any, dict[Any, Any]] = {f"node {i}": {} for i in range(40)}
    mixed: dict[Any, dict[Any, Any]] = {**words, (1, 2): {}, 2.5: {}, -7: {}, 1 << 70: {}}
    samples = [numbers, words, mixed]
    for adjacency in samples:
        nodes = list(adjacency)
        for i, node in enumerate(nodes):
            adjacency[node].update((other, {}) for other in nodes[: i + 1])
            adjacency[node].pop(nodes[i // 2])
    shuffled = {i: dict.fromkeys(range(0, i, 3)) for i in reversed(range(300))}
    del shuffled[299]
    return [*samples, shuffled]


def _same(adjacency: dict[Any, Any]) -> bool:
    quick, plain = _quick_rows(adjacency), _plain_rows(adjacency)
    return (
        quick is not None
        and quick.nodes == plain.nodes
        and quick.numbered == plain.numbered
        and np.array_equal(quick.indptr, plain.indptr)
        and np.array_equal(quick.indices, plain.indices)
    )


def _same_values() -> bool:
    """Attributes of every kind that the quick way reads."""
    values = [1.5, 0, 1, -1, 7, -(2**30 - 1), 2**30 - 1, math.inf, -0.0, 257]
    adjacency: dict[Any, Any] = {i: {i + 1: {"size": 0, "weight": w}} for i, w in enumerate(values)}
    adjacency[len(values)] = {0: {}, 1: {"other": 1.0}, 2: {3: 1, "weight": -2.5}}
    rows = _plain_rows(adjacency)
    found = _quick_values(rows, adjacency, True, "weight")
    return found is not None and found.tolist() == [*values, 1.0, 1.0, -2.5]
