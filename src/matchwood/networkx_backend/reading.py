"""From dictionaries of dictionaries to CSR arrays: a graph as it was at one moment.

Another thread may change a graph whenever it gets the interpreter lock.  Python gives the lock
away between the steps of its own code, never inside a compiled function that only goes through
dictionaries.  So one call of such a function reads all that is wanted, `_at_once`; what follows
works on lists that nobody else has.

Views of graphs, subclasses of dict and Pythons without the lock run other code on the way.  There
the graph is read twice, and a RuntimeError says that it was changed where the two differ.
"""

from __future__ import annotations

import functools
import sys
from array import array
from collections.abc import Mapping
from itertools import chain, compress, repeat
from operator import call, eq, is_, methodcaller
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.networkx_backend.building import collector_paused

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """The structure of a graph.  Neighbours of a node stand in the order NetworkX keeps them."""

    nodes: tuple[Any, ...]
    numbered: bool  # the nodes are the integers 0, 1, 2, ...
    indptr: Array
    indices: Array


class Data(NamedTuple):
    """What many dictionaries held, one after the other."""

    ends: Array  # ends[i] : ends[i + 1] are the places of dictionary i in the other two
    names: tuple[Any, ...]
    values: tuple[Any, ...]

    @property
    def only(self) -> Any:
        """The name of the only value that each of them has, in a tuple; () where there is none."""
        name, m = self.names[:1], self.ends.size - 1
        alike = name and len(self.names) == m and (np.diff(self.ends) == 1).all()
        return name if alike and all(map(is_, self.names, repeat(name[0]))) else ()

    def dictionaries(self, chosen: Any = None) -> list[dict[Any, Any]]:
        """All or some of them, made again."""
        if chosen is None:
            chosen = np.arange(self.ends.size - 1)
        if only := self.only:
            (name,) = only
            return [{name: value} for value in map(self.values.__getitem__, chosen.tolist())]
        begin, end = self.ends[chosen].tolist(), self.ends[chosen + 1].tolist()
        return [
            dict(zip(self.names[a:b], self.values[a:b], strict=True))
            for a, b in zip(begin, end, strict=True)
        ]

    def column(self, name: Any) -> tuple[Any, ...]:
        """The value of that name in each of them, 1 where it is missing."""
        m = self.ends.size - 1
        if type(name) is not str or not set(map(type, self.names)) <= {str}:
            return tuple(each.get(name, 1) for each in self.dictionaries())
        if self.only == (name,):
            return self.values
        here = np.fromiter(map(eq, self.names, repeat(name)), bool, len(self.names))
        owners = np.repeat(np.arange(m), np.diff(self.ends))[here]
        found: list[Any] = [1] * m
        for i, value in zip(owners.tolist(), compress(self.values, here.tobytes()), strict=True):
            found[i] = value
        return tuple(found)


class Edges(NamedTuple):
    """Every edge once, in the order of ``G.edges``; of a multigraph every parallel one."""

    u: Array
    v: Array
    keys: tuple[Any, ...] | None = None  # of a multigraph
    columns: Mapping[str, tuple[Any, ...]] = MappingProxyType({})  # attributes by name
    data: Data | None = None  # all attributes
    own: tuple[dict[Any, Any], ...] = ()  # with them, the graph's own dictionaries


class Reading(NamedTuple):
    """A graph at one moment."""

    rows: Rows
    edges: Edges | None  # where they can be found from the rows
    node_data: dict[Any, dict[Any, Any]] | None
    attributes: dict[Any, Any]


class Wanted(NamedTuple):
    """What is to be read besides nodes and neighbours."""

    columns: tuple[str, ...] = ()  # attributes of edges
    edge_data: bool = False  # all of them
    node_data: bool = False
    attributes: bool = False  # of the graph


def changed(why: str = "") -> RuntimeError:
    """The error for a graph that is not what it was a moment ago."""
    return RuntimeError(f"the graph was changed while matchwood was reading it{why}")


def sources(rows: Rows) -> Array:
    """The vertex at which each entry of ``rows.indices`` stands."""
    return np.repeat(np.arange(len(rows.nodes), dtype=rows.indices.dtype), np.diff(rows.indptr))


def read(G: Any, wanted: Wanted) -> Reading:
    """A NetworkX graph as it is now."""
    found = _quick(G, wanted)
    if found is None:
        try:
            found, again = (_at_once(_copied_streams(G, wanted)) for _ in range(2))
        except (KeyError, RuntimeError) as error:
            raise changed() from error
        if not all(map(_same, found.values(), again.values())):
            raise changed()
    rows = _numbered(found["nodes"], found["lengths"], found["neighbours"])
    node_data = None
    if wanted.node_data:
        names = found["nodes with data"]
        node_data = dict(zip(names, _data(found, "node ").dictionaries(), strict=True))
        if len(node_data) != len(rows.nodes) or not all(map(node_data.__contains__, rows.nodes)):
            raise changed(": not all nodes have attributes")
    plain = not (G.is_multigraph() or wanted.columns or wanted.edge_data)
    return Reading(
        rows,
        None if plain else edges_of(rows, G.is_directed(), found),
        node_data,
        _data(found, "graph ").dictionaries()[0] if wanted.attributes else {},
    )


def _quick(G: Any, wanted: Wanted) -> dict[str, Any] | None:
    """What one call finds; None where other code could run meanwhile."""
    if type(G._adj) is not dict or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    try:
        found = _at_once(_streams(G._adj, G, wanted))
    except (AttributeError, TypeError):  # something that is no dictionary
        return None
    except RuntimeError as error:
        raise changed() from error
    kinds = found["kinds"].union(map(type, found.get("own", ())))
    return found if kinds <= {dict} else None


def _at_once(streams: dict[str, Any]) -> dict[str, Any]:
    """Fill a container from each stream, all by one call of a compiled function.

    The collector would run methods written in Python, of what it finds to be garbage.
    """
    makers, iterables = zip(*streams.values(), strict=True)
    with collector_paused():
        filled = list(map(call, makers, iterables))
    return dict(zip(streams, filled, strict=True))


_counts = functools.partial(np.fromiter, dtype=np.int64)
_values = methodcaller("values")


def _inside(level: Any) -> Any:
    """The values of all mappings of a level, row by row."""
    return chain.from_iterable(map(_values, level))


def _streams(adjacency: Any, G: Any, wanted: Wanted) -> dict[str, Any]:
    """What is to be read: by name, the container for it and what to fill it from."""
    rows, multi = adjacency.values, G.is_multigraph()
    kinds = [rows()]
    streams = {
        "nodes": (tuple, adjacency),
        "lengths": (_counts, map(len, rows())),
        "neighbours": (list, chain.from_iterable(rows())),
    }

    def edges() -> Any:
        return _inside(_inside(rows())) if multi else _inside(rows())

    if multi:
        kinds.append(_inside(rows()))
        streams["times"] = _counts, map(len, _inside(rows()))
        streams["keys"] = list, chain.from_iterable(_inside(rows()))
    if wanted.columns:
        kinds.append(edges())
    for name in wanted.columns:
        streams[f"column {name}"] = list, map(methodcaller("get", name, 1), edges())
    if wanted.edge_data:
        streams["own"] = list, edges()
        streams.update(_data_streams("", edges))
    if wanted.node_data:
        kinds.append(G._node.values())
        streams["nodes with data"] = tuple, G._node
        streams.update(_data_streams("node ", G._node.values))
    if wanted.attributes:
        kinds.append((G.graph,))
        streams.update(_data_streams("graph ", lambda: (G.graph,)))
    streams["kinds"] = set, map(type, chain(*kinds))
    return streams


def _data_streams(prefix: str, level: Any) -> dict[str, Any]:
    return {
        f"{prefix}sizes": (_counts, map(len, level())),
        f"{prefix}names": (list, chain.from_iterable(level())),
        f"{prefix}values": (list, _inside(level())),
    }


def _copied_streams(G: Any, wanted: Wanted) -> dict[str, Any]:
    """As `_streams`, for mappings of any kind."""
    return _streams(_copied(G._adj, 2 if G.is_multigraph() else 1), G, wanted)


def _copied(level: Any, depth: int) -> dict[Any, Any]:
    if not isinstance(level, Mapping):
        raise TypeError(f"convert_from_nx: G must hold mappings of mappings, got {level!r}")
    if depth == 0:
        return dict(level.items())
    return {key: _copied(inner, depth - 1) for key, inner in level.items()}


def _same(one: Any, other: Any) -> bool:
    """Did two readings find the same?  Objects are the same, numbers are equal."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_, one, other))
    return bool(one == other)


def _numbered(nodes: tuple[Any, ...], lengths: Array, neighbours: list[Any]) -> Rows:
    """Nodes and neighbours by number, in the order of the nodes."""
    n, nnz = len(nodes), len(neighbours)
    numbered = set(map(type, nodes)) <= {int} and nodes == tuple(range(n))
    try:
        if numbered and set(map(type, neighbours)) <= {int}:
            indices = np.frombuffer(array("q", neighbours or (0,)), np.int64)[:nnz]
            if nnz and not 0 <= indices.min() <= indices.max() < n:
                raise KeyError(next(v for v in neighbours if not 0 <= v < n))
        else:  # what equals a node is that node
            place = dict(zip(nodes, range(n), strict=True))
            if len(place) < n:
                raise changed(": two of its nodes are equal")
            indices = np.fromiter(map(place.__getitem__, neighbours), np.int64, nnz)
    except KeyError as error:
        raise changed(f": {error} is a neighbour but no node") from None
    except OverflowError:
        raise changed(": a neighbour is no node") from None
    dtype = np.int32 if max(n, nnz) <= np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(n + 1, dtype)
    np.cumsum(lengths, out=indptr[1:])
    return Rows(nodes, numbered, engines.frozen(indptr), engines.frozen(indices.astype(dtype)))


def _data(found: Mapping[str, Any], prefix: str, chosen: Array | None = None) -> Data:
    """Dictionaries that were read, or those of them for which `chosen` is true."""
    sizes, *parts = (found[prefix + part] for part in ("sizes", "names", "values"))
    if chosen is not None:
        inside = np.repeat(chosen, sizes).tobytes()
        sizes, *parts = sizes[chosen], *(compress(part, inside) for part in parts)
    ends = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return Data(engines.frozen(ends), *map(tuple, parts))


def edges_of(rows: Rows, directed: bool, found: Mapping[str, Any] = {}) -> Edges:
    """The edges, with what was read of them.

    Of the two entries of an undirected edge the one at the node that comes first.
    """
    u, v = sources(rows), rows.indices
    chosen = None if directed else u <= v
    if chosen is not None:
        u, v = u[chosen], v[chosen]
    if "times" in found:
        times = found["times"]
        u, v = (np.repeat(x, times if chosen is None else times[chosen]) for x in (u, v))
        chosen = None if chosen is None else np.repeat(chosen, times)

    def picked(part: str) -> tuple[Any, ...]:
        return tuple(found[part] if chosen is None else compress(found[part], chosen.tobytes()))

    return Edges(
        engines.frozen(u),
        engines.frozen(v),
        picked("keys") if "keys" in found else None,
        MappingProxyType({part[7:]: picked(part) for part in found if part.startswith("column ")}),
        _data(found, "", chosen) if "own" in found else None,
        picked("own") if "own" in found else (),
    )
