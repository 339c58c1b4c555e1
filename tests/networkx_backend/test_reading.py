"""Reading dictionaries in memory gives what reading them in Python gives."""

from __future__ import annotations

import collections
import enum
import math
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.networkx_backend import reading
from matchwood.networkx_backend.memory.layout import layout_is_known
from matchwood.networkx_backend.memory.plain import plain_rows
from matchwood.networkx_backend.memory.quick import quick_rows, quick_values


@pytest.fixture(scope="module")
def known_layout():
    """Asked when a test begins: it compiles kernels, and every worker collects all tests."""
    if not layout_is_known():
        pytest.skip("the layout of dictionaries is not known here")


quick_only = pytest.mark.usefixtures("known_layout")


def same(one, other):
    return (
        one.nodes == other.nodes
        and [type(node) for node in one.nodes] == [type(node) for node in other.nodes]
        and one.numbered == other.numbered
        and one.indptr.dtype == other.indptr.dtype
        and np.array_equal(one.indptr, other.indptr)
        and one.indices.dtype == other.indices.dtype
        and np.array_equal(one.indices, other.indices)
    )


def test_the_layout_is_known_to_supported_pythons():
    supported = (3, 11) <= sys.version_info[:2] <= (3, 14)
    if sys.implementation.name == "cpython" and supported and sys.maxsize > 2**32:
        assert layout_is_known()


NODES = {
    "numbers": lambda i: i,
    "numbers backwards": lambda i: 1000 - i,
    "negative": lambda i: -i - 2,
    "huge": lambda i: 10**30 + i,
    "words": lambda i: f"node {i}",
    "pairs": lambda i: (i // 7, i % 7),
    "floats": lambda i: i / 4,
    "sets": lambda i: frozenset({i, -i}),
    "of all kinds": lambda i: [i, str(i), (i,), i + 0.5, b"%d" % i][i % 5],
}


@quick_only
@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_quick_is_plain(name, kind):
    G = kind(nx.gnm_random_graph(200, 700, seed=3))
    G.remove_edges_from([edge[:2] for edge in list(G.edges)[::5]])  # leaves holes in the tables
    G.remove_nodes_from(list(G)[::11])
    H = nx.relabel_nodes(G, NODES[name])
    quick = quick_rows(H._adj)
    assert quick is not None
    assert same(quick, plain_rows(H._adj))


@quick_only
@given(
    st.lists(
        st.tuples(*[st.one_of(st.integers(-3, 12), st.text("ab", max_size=2))] * 2), max_size=40
    ),
    st.booleans(),
)
def test_any_small_graph(pairs, directed):
    G = nx.DiGraph(pairs) if directed else nx.Graph(pairs)
    quick, plain = quick_rows(G._adj), plain_rows(G._adj)
    if len(set(map(hash, G))) < len(G):  # as those of -1 and -2, or of 0 and ""
        assert quick is None
    else:
        assert same(quick, plain)


def test_equal_hashes_are_left_to_plain_python():
    G = nx.path_graph([-1, -2, 5])
    if layout_is_known():
        assert quick_rows(G._adj) is None
    assert reading.read_rows(G._adj).indices.tolist() == [1, 0, 2, 1]


@quick_only
def test_neighbours_that_are_equal_but_not_the_same():
    """1, 1.0 and True are one node; whichever came first names it."""

    class Number(enum.IntEnum):
        ONE = 1

    G = nx.Graph()
    G.add_nodes_from(range(4))
    G.add_edges_from([(0, 1.0), (True, 2), (3, np.int64(1)), (Number.ONE, 1)])
    quick = quick_rows(G._adj)
    assert same(quick, plain_rows(G._adj))
    assert quick.numbered
    H = nx.Graph([(1.0, 0), (0, 2), (True, 2)])
    assert same(quick_rows(H._adj), plain_rows(H._adj))
    assert not quick_rows(H._adj).numbered


@quick_only
def test_what_is_no_plain_dictionary_is_refused():
    rows = {i: {(i + 1) % 5: {}} for i in range(5)}
    assert quick_rows(rows) is not None
    assert quick_rows(collections.OrderedDict(rows)) is None
    assert quick_rows({**rows, 3: collections.OrderedDict(rows[3])}) is None
    assert quick_rows({**rows, 3: [1]}) is None
    assert quick_rows({**rows, 3: {99: {}}}) is None  # 99 is no node
    assert quick_rows({**rows, 3: {"x": {}}}) is None

    class Shared:
        """Instances share the keys of their dictionaries."""

        def __init__(self):
            self.a, self.b = {}, {}

    for table in (vars(Shared()), vars(Shared())):
        found = quick_rows(table)
        assert found is None or found.nodes == ["a", "b"]


@pytest.mark.parametrize("quick", [True, False])
def test_sizes(quick, monkeypatch):
    monkeypatch.setattr(reading, "QUICK_FROM", 0)
    for G in (nx.empty_graph(0), nx.empty_graph(1), nx.empty_graph(700), nx.complete_graph(600)):
        rows = reading.read_rows(G._adj, quick=quick)
        assert rows.nodes == list(G)
        assert np.array_equal(np.diff(rows.indptr), [degree for _, degree in G.degree])


# Edges and attributes


def graph_with(values):
    """A graph whose edges have these weights in the order of G.edges; None leaves one out."""
    G = nx.path_graph(len(values) + 1)
    for (_, _, data), value in zip(G.edges(data=True), values, strict=True):
        if value is not None:
            data["weight"] = value
    return G


def read(G, name, quick):
    rows = reading.read_rows(G._adj)
    found = reading.read_values(rows, G._adj, G.is_directed(), name, quick=quick)
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        [0.5, -1.5, math.inf, -0.0],
        [0, 1, -1, 255, -256, 2**30 - 1, 1 - 2**30],
        [2**30, 2**31, 2**62, 2**70],
        [1, 0.5, None, 3],
        [None, None],
        [True, False, 2],
        ["a", 1],
        [None, (1, 2), 3],
        [np.float64(2.5), np.int32(4)],
    ],
)
def test_values(values, quick, monkeypatch):
    monkeypatch.setattr(reading, "QUICK_FROM", 0)
    G = graph_with(values)
    assert read(G, "weight", quick) == [1 if value is None else value for value in values]
    assert read(G, "other", quick) == [1] * len(values)
    assert read(G, None, quick) == [1] * len(values)


@quick_only
def test_numbers_are_read_in_memory(monkeypatch):
    """Not only by the way round through Python, which gives the same."""
    monkeypatch.setattr(reading, "QUICK_FROM", 0)
    for G in (nx.gnm_random_graph(60, 150, seed=1), nx.gnm_random_graph(60, 150, 1, True)):
        for i, (_, _, data) in enumerate(G.edges(data=True)):
            data["weight"] = i if i % 2 else i / 2
        rows = reading.read_rows(G._adj)
        values = quick_values(rows, G._adj, G.is_directed(), "weight")
        assert values.tolist() == [data["weight"] for _, _, data in G.edges(data=True)]
        chosen = np.array([7, 0, 149, 7])
        found = reading.read_data(rows, G._adj, G.is_directed(), 150, chosen)
        every = [data for _, _, data in G.edges(data=True)]
        assert all(a is every[i] for a, i in zip(found, chosen, strict=True))


@quick_only
def test_references_are_counted(monkeypatch):
    monkeypatch.setattr(reading, "QUICK_FROM", 0)
    G = nx.path_graph(30)
    rows = reading.read_rows(G._adj)
    data = G.edges[3, 4]
    before = sys.getrefcount(data)
    found = reading.read_data(rows, G._adj, False, 29, np.arange(29))
    assert sys.getrefcount(data) == before + 1
    del found
    assert sys.getrefcount(data) == before


def test_names_that_are_equal_but_not_the_same(monkeypatch):
    monkeypatch.setattr(reading, "QUICK_FROM", 0)
    G = nx.path_graph(3)
    G.edges[0, 1]["".join(["we", "ight"])] = 2.5
    assert read(G, "weight", True) == [2.5, 1]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_edges_come_in_the_order_of_networkx(kind):
    G = kind()
    G.add_edges_from([(3, 1), (1, 2), (2, 2), (5, 3), (1, 5), (3, 1), (2, 1)])
    rows = reading.read_rows(G._adj)
    edges = reading.read_edges(rows, G._adj, G.is_directed(), G.is_multigraph())
    u, v = ([rows.nodes[i] for i in column] for column in edges[:2])
    if G.is_multigraph():
        assert list(zip(u, v, edges.keys, strict=True)) == list(G.edges(keys=True))
        assert all(a is b for a, (_, _, b) in zip(edges.data, G.edges(data=True), strict=True))
    else:
        assert list(zip(u, v, strict=True)) == list(G.edges)


def test_a_changed_graph_is_not_read_as_if_it_were_the_old_one(monkeypatch):
    monkeypatch.setattr(reading, "QUICK_FROM", 0)
    G = graph_with([1.0, 2.0, 3.0])
    rows = reading.read_rows(G._adj)
    G.add_edge(0, 3)
    with pytest.raises(RuntimeError, match="changed while"):
        quick_values(rows, G._adj, False, "weight")
