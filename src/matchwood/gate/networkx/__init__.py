"""From dictionaries of dictionaries to CSR arrays: a graph as it was at one moment.

Another thread may change a graph whenever it gets the interpreter lock.  Python releases the lock
between the steps of its own code, never inside a compiled function that only goes through
dictionaries.  So one call of such a function reads all that must fit together: `_compiled` by a
kernel of this package, for large graphs and at most one attribute, `_at_once` by iterators of
Python.  What follows works on lists that nobody else has.

Views of graphs, subclasses of dict and Pythons without the lock run other code on the way.  There
the graph is read twice, and a RuntimeError is raised where the two readings differ.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import sysconfig
import threading
from array import array
from collections.abc import Iterator, Mapping
from itertools import chain, compress, repeat
from operator import call, is_, methodcaller
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.cpu import native

Array = np.ndarray[Any, Any]
# Nodes and neighbours together: below, loading compiled code, 25 ms in a process, costs more than
# it gains; above, they need 64 bits.
COMPILED_FROM, COMPILED_TO = 20_000, np.iinfo(np.int32).max
CLASSES = frozenset(
    f"networkx.classes.{name}" for name in ("graph", "digraph", "multigraph", "multidigraph")
)
ACCESS = (
    *("__contains__", "__getitem__", "__iter__", "__len__"),
    *("adj", "adjacency", "edges", "neighbors", "nodes", "pred", "predecessors", "succ"),
    *("successors",),
)  # a subclass that overrides one of these may answer otherwise than its dictionaries say
TRIES = 5  # readings of a graph that another thread keeps changing; then it is given up


class Rows(NamedTuple):
    """The structure of a graph.  Neighbours of a node are in the order NetworkX keeps them."""

    nodes: tuple[Any, ...]
    numbered: bool  # the nodes are the integers 0, 1, 2, ...
    indptr: Array
    indices: Array


class Edges(NamedTuple):
    """Every edge once, in the order of ``G.edges``; of a multigraph every parallel one."""

    u: Array
    v: Array
    keys: tuple[Any, ...] | None = None  # of a multigraph
    columns: Mapping[str, tuple[Any, ...]] = MappingProxyType({})  # attributes by name
    data: tuple[dict[Any, Any], ...] | None = None  # all attributes, copied
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
    """The row of each entry of ``rows.indices``."""
    return np.repeat(np.arange(len(rows.nodes), dtype=rows.indices.dtype), np.diff(rows.indptr))


def read(G: Any, wanted: Wanted) -> Reading:
    """A NetworkX graph as it is now."""
    found = _quick(G, wanted) if getattr(sys, "_is_gil_enabled", lambda: True)() else None
    if found is None:
        depth = 2 if G.is_multigraph() else 1
        try:
            found, again = (_attempt(G, _copied(G._adj, depth), wanted) for _ in range(2))
        except (KeyError, RuntimeError) as error:
            raise changed(f": {error}") from error
        if not _same(found, again):
            raise changed()
    rows, node_data = found["rows"], None
    if wanted.node_data:
        node_data = dict(zip(found["named"], found["node data"], strict=True))
        if len(node_data) != len(rows.nodes) or not all(map(node_data.__contains__, rows.nodes)):
            raise changed(": not all nodes have attributes")
    plain = not (G.is_multigraph() or wanted.columns or wanted.edge_data)
    return Reading(
        rows,
        None if plain else edges_of(rows, G.is_directed(), found),
        node_data,
        found["attributes"][0] if wanted.attributes else {},
    )


def _quick(G: Any, wanted: Wanted) -> dict[str, Any] | None:
    """A reading during which no other code runs; None where some could."""
    for _ in range(TRIES):
        adjacency = G._adj
        if type(adjacency) is not dict:
            return None
        try:
            found = _compiled(G, adjacency, wanted) or _attempt(G, adjacency, wanted)
        except (AttributeError, TypeError):  # something that is no dictionary
            return None
        except RuntimeError as error:
            problem = error
        else:
            return found if found["kinds"] <= {dict} else None
    raise problem


def _compiled(G: Any, adjacency: dict[Any, Any], wanted: Wanted) -> dict[str, Any] | None:
    """As `_attempt`, by compiled code (cpu.py); None for a graph that it does not read."""
    attributes = G.graph if wanted.attributes else {}
    other = wanted.edge_data or wanted.node_data or len(wanted.columns) > 1 or G.is_multigraph()
    if other or type(attributes) is not dict or not _holds_still():
        return None
    n, nnz = len(adjacency), sum(map(len, list(adjacency.values())))
    if not COMPILED_FROM <= n + nnz <= COMPILED_TO:
        return None
    from matchwood.gate.networkx import cpu

    name = sys.intern(wanted.columns[0]) if wanted.columns else None
    one = 1
    lists: tuple[list[Any], ...] = ([], [], [])  # nodes, attributes, values
    indptr, indices = np.zeros(n + 1, np.int32), np.empty(nnz, np.int32)
    slots = 1 << (2 * n).bit_length()
    work = cpu.Work(
        kinds=np.array(list(map(id, (dict, tuple, str, int, float, bool))), np.intp),
        item=np.zeros(4, np.intp),
        nodes=np.empty(n, np.intp),
        rows=np.empty(n, np.intp),
        neighbours=np.empty(nnz, np.intp),
        data=np.empty(nnz if wanted.columns else 0, np.intp),
        places=np.empty(nnz, np.int32),
        hashes=np.empty(cpu.BATCH, np.intp),
        by_address=np.zeros((slots, 2), np.intp),
        by_hash=np.zeros((slots, 2), np.intp),
    )
    given = id(adjacency), id(attributes), id(name) if wanted.columns else 0, id(one)
    rest = G.is_directed(), *map(id, lists), work, indptr, indices
    said = native.held(cpu.read_rows, (*given, *rest))
    if said == cpu.OTHER:
        return None
    nodes, pairs, values = lists
    if said == cpu.ANY and len(set(nodes)) < n:
        raise changed(": two of its nodes are equal")
    arrays = engines.frozen(indptr), engines.frozen(indices)
    return {
        "rows": Rows(tuple(nodes), said == cpu.NUMBERED, *arrays),
        "kinds": set(),
        "attributes": [dict(zip(pairs[::2], pairs[1::2], strict=True))],
        **{f"column {each}": values for each in wanted.columns},
    }


@functools.cache
def _holds_still() -> bool:
    """Whether objects of this Python stay where they are, and its lock cannot be absent."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def _attempt(G: Any, adjacency: Any, wanted: Wanted) -> dict[str, Any]:
    """Nodes and neighbours; then both once more, to see that they are the same, with attributes.

    An edge of an undirected graph is at two places, and only numbers say which is the first.  To
    look into its dictionary costs more than all the rest, so that is done once.
    """
    found = _at_once(_structure(adjacency, G.is_multigraph()))
    found["rows"] = rows = _numbered(found["nodes"], found["lengths"], found["neighbours"])
    if not any(wanted):
        return found
    half = None
    if not G.is_directed():
        half = np.repeat(sources(rows) <= rows.indices, found.get("times", 1)).tobytes()
    streams = _structure(adjacency, G.is_multigraph())
    again = _at_once({**streams, **_attributes(adjacency, G, wanted, half)})
    if not _same({part: found[part] for part in streams}, again):
        raise changed()
    for name in wanted.columns:
        pairs = again[f"column {name}"]
        again["kinds"].update(pairs[::2])
        again[f"column {name}"] = pairs[1::2]
    if wanted.edge_data:
        pairs = again["edge data"]
        again["own"], again["edge data"] = pairs[::2], pairs[1::2]
        again["kinds"].update(map(type, again["own"]))
    again["kinds"].update(again["other kinds"])
    return {**found, **again}


def _at_once(streams: dict[str, Any]) -> dict[str, Any]:
    """Fill a container from each stream, all by one call of a compiled function.

    The collector would run methods written in Python, of what it finds to be garbage.
    """
    makers, iterables = zip(*streams.values(), strict=True)
    try:
        with collector_paused():
            filled = list(map(call, makers, iterables))
    except RuntimeError as error:  # of an iterator, about the size
        raise changed() from error
    return dict(zip(streams, filled, strict=True))


_counts = functools.partial(np.fromiter, dtype=np.int64)


def _inside(level: Any) -> Any:
    """The values of all dictionaries of a level, row by row."""
    return chain.from_iterable(map(dict.values, level))


def _got(edges: Any, name: str, quick: bool) -> Any:
    """The value of that name in each mapping, 1 where it is missing."""
    if quick:
        return map(dict.get, edges, repeat(name), repeat(1))
    return map(methodcaller("get", name, 1), edges)


def _structure(adjacency: Any, multi: bool) -> dict[str, Any]:
    """What is to be read: by name, the container for it and what to fill it from."""
    rows = adjacency.values
    streams = {
        "nodes": (tuple, adjacency),
        "lengths": (_counts, map(len, rows())),
        "neighbours": (list, chain.from_iterable(rows())),
        "kinds": (set, map(type, chain(rows(), _inside(rows()) if multi else ()))),
    }
    if multi:
        streams["times"] = _counts, map(len, _inside(rows()))
        streams["keys"] = list, chain.from_iterable(_inside(rows()))
    return streams


def _attributes(adjacency: Any, G: Any, wanted: Wanted, half: bytes | None) -> dict[str, Any]:
    """As `_structure`, for the attributes of the edges that `half` marks."""

    def edges() -> Any:
        every = _inside(adjacency.values())
        every = _inside(every) if G.is_multigraph() else every
        return every if half is None else compress(every, half)

    def pairs(one: Any, other: Any) -> Any:  # what is looked at twice in a row waits in the cache
        return list, chain.from_iterable(zip(one, other, strict=True))

    streams = {
        f"column {name}": pairs(map(type, edges()), _got(edges(), name, adjacency is G._adj))
        for name in wanted.columns
    }
    if wanted.edge_data:
        streams["edge data"] = pairs(edges(), map(dict, edges()))
    streams["other kinds"] = set, map(type, (G._node, G.graph))
    if wanted.node_data:
        streams["named"] = tuple, G._node
        streams["other kinds"] = set, map(type, chain((G._node, G.graph), G._node.values()))
        streams["node data"] = list, map(dict, G._node.values())
    if wanted.attributes:
        streams["attributes"] = list, map(dict, (G.graph,))
    return streams


def _copied(level: Any, depth: int) -> dict[Any, Any]:
    """Mappings of any kind as dictionaries, without those of attributes."""
    if not isinstance(level, Mapping):
        raise TypeError(f"convert_from_nx: G must hold mappings of mappings, got {level!r}")
    if depth == 0:
        return dict(level.items())
    return {key: _copied(inner, depth - 1) for key, inner in level.items()}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(_alike(part, one[part], other[part]) for part in one if part != "rows")


def _alike(part: str, one: Any, other: Any) -> bool:
    """Equal numbers and types, the same objects, copies of dictionaries that hold the same ones."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, set):
        return bool(one == other)
    if part in ("edge data", "node data", "attributes"):
        sizes, others = (list(map(len, each)) for each in (one, other))
        one, other = ([*chain.from_iterable(each), *_inside(each)] for each in (one, other))
        if sizes != others:
            return False
    return len(one) == len(other) and all(map(is_, one, other))


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


def edges_of(rows: Rows, directed: bool, found: Mapping[str, Any] = {}) -> Edges:
    """The edges, with what was read of them; an undirected one as at its smaller node."""
    u, v = sources(rows), rows.indices
    chosen = None if directed else u <= v
    if chosen is not None:
        u, v = u[chosen], v[chosen]
    keys = found.get("keys")
    if keys is not None:
        times = found["times"]
        if chosen is not None:
            keys = compress(keys, np.repeat(chosen, times).tobytes())
            times = times[chosen]
        u, v, keys = np.repeat(u, times), np.repeat(v, times), tuple(keys)

    return Edges(
        engines.frozen(u),
        engines.frozen(v),
        keys,
        MappingProxyType({part[7:]: tuple(found[part]) for part in found if part[:7] == "column "}),
        tuple(found["edge data"]) if "own" in found else None,
        tuple(found.get("own", ())),
    )


def own_access(kind: type) -> str:
    """The name of a method in ACCESS that a class overrides; "" where it overrides none."""
    base = next((each for each in kind.__mro__ if each.__module__ in CLASSES), kind)
    own = (name for name in ACCESS if getattr(kind, name, None) is not getattr(base, name, None))
    return next(own, "")


def plain_copy(G: Any, weight: str | None) -> Any:
    """A graph of NetworkX's own class with the nodes and edges that `G` says it has."""
    kind = next(each for each in type(G).__mro__ if each.__module__ in CLASSES)
    made = kind()
    made.add_nodes_from(G)
    if weight is None:
        made.add_edges_from(G.edges(data=False))
    else:
        edges = G.edges(data=weight, default=1)
        made.add_edges_from((u, v, {weight: value}) for u, v, value in edges)
    return made


_pausing = threading.Lock()
_pauses = 0
_was_enabled = False


def _forget_pauses() -> None:
    """In a forked process, which has none of the threads that paused the collector."""
    global _pausing, _pauses
    _pausing = threading.Lock()
    if _pauses and _was_enabled:
        gc.enable()
    _pauses = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pauses)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from looking through everything again and again.

    It starts whenever a quarter more objects are alive, and a graph of a million dictionaries
    takes it a tenth of a second; a tree of 100,000 nodes was built five times slower with it.
    What is built inside is all in use, so there is nothing to collect.  The last thread that leaves
    starts the collector again.
    """
    global _pauses, _was_enabled
    with _pausing:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _pausing:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
