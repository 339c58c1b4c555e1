"""A graph of dictionaries becomes arrays: nodes, neighbours, edges and attributes of one moment."""

from __future__ import annotations

import collections
import enum
import fractions
import gc
import math
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.gate import networkx as reading
from matchwood.gate.networkx import Wanted, collector_paused, edges_of, read
from matchwood.networkx_backend import Graph, convert_from_nx

EVERYTHING = Wanted((), True, True, True)


@pytest.fixture(autouse=True, scope="module", params=["compiled", "plain"])
def way(request):
    """All tests here read graphs of any size by compiled code, and once more without it."""
    before = reading.COMPILED_FROM
    reading.COMPILED_FROM = 0 if request.param == "compiled" else reading.COMPILED_TO
    yield request.param
    reading.COMPILED_FROM = before


def assert_read(G):
    """Everything is where NetworkX has it."""
    found = read(G, EVERYTHING)
    rows, edges = found.rows, found.edges
    M = Graph(found, directed=G.is_directed(), multigraph=G.is_multigraph())
    assert rows.nodes == tuple(G)
    ends = rows.indptr.tolist()
    for i, (node, row) in enumerate(G._adj.items()):
        neighbours = [rows.nodes[v] for v in rows.indices[ends[i] : ends[i + 1]]]
        assert neighbours == list(row)
        assert rows.nodes[i] is node or node == rows.nodes[i]
    assert rows.indptr.size == len(rows.nodes) + 1
    options = {"keys": True} if G.is_multigraph() else {}
    theirs = list(G.edges(data=True, **options))
    names = [[rows.nodes[i] for i in column] for column in edges[:2]]
    keys = [edges.keys] if G.is_multigraph() else []
    ours = list(zip(*names, *keys, edges.data, strict=True))
    assert ours == theirs
    assert all(one is edge[-1] for one, edge in zip(edges.own, theirs, strict=True))
    assert found.node_data == dict(G.nodes(data=True))
    assert found.attributes == G.graph
    for name in ("weight", "other"):
        values = tuple(edge[-1].get(name, 1) for edge in theirs)
        assert M.edge_values(name) == values
        assert read(G, Wanted((name,))).edges.columns[name] == values
    if not G.is_multigraph():
        plain = edges_of(read(G, Wanted()).rows, G.is_directed())
        assert (plain.u.tolist(), plain.v.tolist()) == (edges.u.tolist(), edges.v.tolist())
    return rows


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
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_views_and_subclasses(name, kind):
    class Ordered(kind):
        node_dict_factory = node_attr_dict_factory = collections.OrderedDict
        adjlist_outer_dict_factory = adjlist_inner_dict_factory = collections.OrderedDict
        edge_key_dict_factory = edge_attr_dict_factory = collections.OrderedDict

    G = kind(nx.gnm_random_graph(60, 200, seed=3), title="a graph")
    G.remove_edges_from([edge[:2] for edge in list(G.edges)[::5]])  # leaves holes in the tables
    G.remove_nodes_from(list(G)[::11])
    G.add_nodes_from(range(60))
    for i, (*_, data) in enumerate(G.edges(data=True)):
        data.update([{}, {"weight": i}, {"weight": i / 2, "other": "text"}, {7: None}][i % 4])
    H = nx.relabel_nodes(G, NODES[name])
    assert_read(H)
    assert_read(Ordered(H))
    assert_read(H.subgraph(list(H)[5:50]))
    assert_read(nx.restricted_view(H, list(H)[:3], []))
    if H.is_directed():
        assert_read(H.reverse(copy=False))
        assert_read(H.to_undirected(as_view=True))
    else:
        assert_read(H.to_directed(as_view=True))


@given(
    st.lists(
        st.tuples(*[st.one_of(st.integers(-3, 12), st.text("ab", max_size=2))] * 2), max_size=40
    ),
    st.sampled_from(KINDS),
)
def test_any_small_graph(pairs, kind):
    assert_read(kind(pairs))


@pytest.mark.parametrize("kind", KINDS)
def test_pythons_without_the_lock_read_twice(kind, monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    monkeypatch.setattr(reading, "_quick", None)
    assert_read(kind(nx.gnm_random_graph(60, 200, seed=3), title="a graph"))


def test_sizes():
    for G in (nx.empty_graph(0), nx.empty_graph(1), nx.empty_graph(70), nx.complete_graph(60)):
        assert_read(G)


def test_neighbours_that_are_equal_but_not_the_same():
    """1, 1.0 and True are one node; whichever came first names it."""

    class Number(enum.IntEnum):
        ONE = 1

    G = nx.Graph()
    G.add_nodes_from(range(4))
    G.add_edges_from([(0, 1.0), (True, 2), (3, np.int64(1)), (Number.ONE, 1)])
    assert assert_read(G).numbered
    H = nx.Graph([(1.0, 0), (0, 2), (True, 2), (fractions.Fraction(2), 1)])
    assert not assert_read(H).numbered


class Index:
    """Not equal to the integer that it stands for as an index."""

    def __index__(self):
        return 1


class Renamed(int):
    """An integer that is another node than its value."""

    def __hash__(self):
        return 77

    def __eq__(self, other):
        return self is other


@pytest.mark.parametrize("wrapped", [dict, collections.OrderedDict])
@pytest.mark.parametrize(
    "wrong",
    [1.7, "1", b"1", np.float64(1.5), Index(), Renamed(1), (1,), None, -1, 99, 2**63, 2**70,
     -(2**70), math.nan, math.inf],
)  # fmt: skip
def test_neighbours_that_are_no_nodes(wrong, wrapped):
    for kind in KINDS:
        for label in (int, str):
            if label(1) == wrong:
                continue
            G = nx.relabel_nodes(nx.path_graph(5, kind), label)
            G._adj = wrapped(G._adj)
            G._adj[label(3)][wrong] = {}
            with pytest.raises(RuntimeError, match=r"changed while.*no node"):
                read(G, Wanted())


def test_what_is_no_mapping_is_refused():
    for change in ({3: [1]}, {3: 5}, {3: None}):
        G = nx.path_graph(5)
        G._adj.update(change)
        with pytest.raises(TypeError, match="convert_from_nx: G must hold mappings"):
            read(G, Wanted())


# Attributes


def graph_with(values):
    """A graph whose edges have these weights in the order of G.edges; None leaves one out."""
    G = nx.path_graph(len(values) + 1)
    for (_, _, data), value in zip(G.edges(data=True), values, strict=True):
        if value is not None:
            data["weight"] = value
    return G


@pytest.mark.parametrize(
    "values",
    [
        [0.5, -1.5, math.inf, -0.0],
        [2**30, 2**31, 2**62, 2**70],
        [1, 0.5, None, 3],
        [None, None],
        [True, False, 2],
        ["a", 1],
        [None, (1, 2), 3],
        [np.float64(2.5), np.int32(4)],
    ],
)
def test_values(values):
    G = graph_with(values)
    expected = [1 if value is None else value for value in values]
    M = convert_from_nx(G, preserve_all_attrs=True)
    for name, column in (("weight", expected), ("other", [1] * len(values))):
        assert list(read(G, Wanted((name,))).edges.columns[name]) == column
        assert list(M.edge_values(name)) == column
    assert list(M.edge_values(None)) == [1] * len(values)
    G.edges[0, 1][5] = "five"
    for options in ({"preserve_all_attrs": True}, {"edge_attrs": {5: 1}}):
        assert convert_from_nx(G, **options).edge_values(5)[0] == "five"


def test_names_that_are_equal_but_not_the_same():
    G = nx.path_graph(3)
    G.edges[0, 1]["".join(["we", "ight"])] = 2.5
    assert read(G, Wanted(("weight",))).edges.columns["weight"] == (2.5, 1)


def test_references_are_given_back():
    G = graph_with([1.5] * 30)
    counts = [sys.getrefcount(row) for row in G._adj.values()]
    node, data = list(G)[7], G.edges[3, 4]
    before = sys.getrefcount(node), sys.getrefcount(data)
    for _ in range(3):
        read(G, EVERYTHING)
    assert [sys.getrefcount(row) for row in G._adj.values()] == counts
    assert (sys.getrefcount(node), sys.getrefcount(data)) == before


# Compiled code against the plain way


def both_ways(G, wanted):
    """What compiled code reads, None where it leaves the graph to the plain way; and that."""
    found = []
    for way in (reading._compiled, reading._attempt):
        try:
            read = way(G, G._adj, wanted)
        except RuntimeError as error:
            read = str(error)
        found.append(read)
    return found


def assert_same_both_ways(G):
    G.graph.update({"title": "a graph", 5: [6]})
    for wanted in (Wanted(), Wanted(("weight",), attributes=True), Wanted(("nothing",))):
        ours, plain = both_ways(G, wanted)
        assert type(ours) is type(plain) is dict
        for one, other in zip(ours["rows"], plain["rows"], strict=True):
            assert type(one) is type(other)
            if isinstance(one, np.ndarray):
                assert one.dtype == other.dtype
                assert one.tolist() == other.tolist()
                assert not one.flags.writeable
            elif isinstance(one, tuple):
                assert list(map(id, one)) == list(map(id, other))
            else:
                assert one == other
        if wanted.attributes:
            assert ours["attributes"] == plain["attributes"] == [G.graph]
            assert list(ours["attributes"][0]) == list(G.graph)
        for name in wanted.columns:
            one, other = (list(map(id, found[f"column {name}"])) for found in (ours, plain))
            assert one == other


def test_odd_graphs_both_ways(way):
    if way == "plain":
        return
    for kind in (nx.Graph, nx.DiGraph):
        holes = kind(nx.gnm_random_graph(80, 300, seed=1))
        holes.remove_edges_from(list(holes.edges)[::3])
        holes.remove_nodes_from([0, 7, 79])
        assert_same_both_ways(holes)
        holes.add_nodes_from([79, 0, 7])
        for i, (u, v) in enumerate(list(holes.edges)):
            weight = [2**53 + i, -(2**70), True, 0.5, math.nan, "text", None, (1,), np.float32(2)]
            holes.edges[u, v].update({"colour": 1, "weight": weight[i % 9]} if i % 7 else {})
        assert_same_both_ways(holes)
        for fresh in (
            lambda i: int(str(i)), lambda i: int(str(i + 10**6)), lambda i: f"node {i}",
            lambda i: (i // 9, f"{i}"), lambda i: i / 4, lambda i: 2**70 + i, lambda i: -i,
            lambda i: [f"{i}", i, i + 0.5, (i, 0.5), -i - 1][i % 5],
        ):  # fmt: skip
            G = kind()
            G.add_nodes_from(map(fresh, range(80)))
            G.add_edges_from((fresh(u), fresh(v), {"weight": u / 7}) for u, v in holes.edges)
            assert_same_both_ways(G)
        numbers = kind(nx.path_graph(9))
        numbers.add_edges_from([(0, 5.0), (True, 7), (8.0, 2.0)])  # equal to nodes
        assert_same_both_ways(numbers)
        missing = math.nan
        for nodes in ([missing, 1.5, 2], ["a", missing], [1, True + 1, 2.5], [b"a", "b"]):
            assert_same_both_ways(kind([(u, v) for u in nodes for v in nodes]))


class Word(str):
    """A text with methods of its own."""

    __slots__ = ()

    def __hash__(self):
        return super().__hash__()

    def __eq__(self, other):
        return str(self) == str(other)


def test_what_compiled_code_leaves_to_the_plain_way(way):
    if way == "plain":
        return

    def one_more(neighbour, data=None, row=None):
        G = nx.relabel_nodes(nx.path_graph(9, nx.DiGraph), str)
        G._adj["3"][neighbour] = {} if data is None else data
        if row is not None:
            G._adj["5"] = row
        return G

    assert_same_both_ways(one_more("7"))
    for neighbour in (Word("7"), np.str_("7")):
        assert both_ways(one_more(neighbour), Wanted())[0] is None
    assert both_ways(one_more("7", row=collections.OrderedDict()), Wanted())[0] is None
    for data in (collections.OrderedDict(), {Word("weight"): 1}, {5: 1}):
        assert both_ways(one_more("1", data), Wanted(("weight",)))[0] is None
    for wrong in ("none", 7, math.nan, (7,), 2**70, -(2**32)):
        for G in (one_more(wrong), nx.path_graph(9, nx.DiGraph)):
            G._adj[next(iter(G))][wrong if wrong != 7 else 77] = {}
            ours, plain = both_ways(G, Wanted())
            assert ours is None
            assert "no node" in plain
    assert both_ways(nx.MultiGraph([(0, 1)]), Wanted())[0] is None
    for wanted in (EVERYTHING, Wanted(("weight", "other"))):
        assert both_ways(nx.path_graph(3), wanted)[0] is None


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}])
def test_pythons_that_check_their_memory(setting, way):
    """Many readings: a reference too few or too many ends the process or is counted."""
    if way == "plain":
        return
    program = """if True:
        import gc, sys
        import networkx as nx
        from matchwood.gate import networkx as reading
        reading._attempt, reading.COMPILED_FROM = None, 0
        G = nx.Graph()
        for u, v in nx.gnm_random_graph(1000, 5000, seed=1).edges:
            G.add_edge(f"node {u}", f"node {v}", weight=u / 7)
        kinds = dict, str, tuple, int, float
        def counts():
            gc.collect()
            things = [*G._adj, *G._adj.values(), *(d for *_, d in G.edges(data=True))]
            return [sys.getrefcount(each) for each in things]
        before, types = counts(), [sys.getrefcount(each) for each in kinds]
        for _ in range(30):
            found = reading.read(G, reading.Wanted(("weight",), attributes=True))
            del found
        assert counts() == before
        after = [sys.getrefcount(each) for each in kinds]
        assert max(abs(a - b) for a, b in zip(after, types)) < 3000, (types, after)
    """
    environment = {**os.environ, **setting}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# Changes meanwhile


class Meddling(dict):
    """A row that changes the graph when it is read for the second time."""

    meddle = None

    def items(self):
        if Meddling.meddle is not None:
            Meddling.meddle()
        return super().items()


@pytest.mark.parametrize("what", ["add", "remove", "move", "weight", "node"])
def test_a_graph_that_changes_while_other_code_runs(what):
    G = graph_with([1.0, 2.0, 3.0])
    G._adj[2] = Meddling(G._adj[2])
    times = []

    def move():
        G._adj[0][3] = G._adj[0].pop(1)
        G._adj[3][0] = G._adj[1].pop(0)

    changes = {
        "add": lambda: G.add_edge(0, 3),
        "remove": lambda: G.remove_edge(2, 3),
        "move": move,
        "weight": lambda: G.edges[0, 1].update(weight=9.0),
        "node": lambda: G.add_node(17),
    }

    def meddle():
        times.append(1)
        if len(times) == 2:
            changes[what]()

    Meddling.meddle = meddle
    try:
        with pytest.raises(RuntimeError, match="changed while"):
            read(G, Wanted(("weight",)))
        assert read(G, Wanted()).rows.nodes == tuple(G)
    finally:
        Meddling.meddle = None


def test_attributes_of_a_node_that_is_just_being_added():
    G = nx.path_graph(3)
    G._adj[3] = {}  # as in the middle of add_node
    assert read(G, Wanted()).rows.nodes == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match=r"changed while.*not all nodes have attributes"):
        read(G, EVERYTHING)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_collects():
    with collector_paused():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_the_collector_starts_again_after_the_last_pause():
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
