"""What NetworkX expects of a backend: description, conversion, rules."""

from __future__ import annotations

import doctest
import functools
import importlib
import logging
import random
import subprocess
import sys
import tomllib

import networkx as nx
import numpy as np
import pytest
from networkx.utils.backends import _registered_algorithms

from conftest import ROOT
from matchwood.networkx_backend import Graph, convert_from_nx, convert_to_nx, interface, testing
from matchwood.networkx_backend.info import DEFAULTS, FUNCTIONS, get_info
from matchwood.networkx_backend.interface import PARTIAL, can_run, should_run
from matchwood.networkx_backend.names import CALLS
from support import environment

PROTOCOL = {"can_run", "should_run", "convert_from_nx", "convert_to_nx", "on_start_tests"}
LARGE = 30_000


# Description


@pytest.mark.parametrize("module", ["convert", "names"])
def test_examples(module):
    page = importlib.import_module(f"matchwood.networkx_backend.{module}")
    failed, tried = doctest.testmod(page)
    assert tried > 0
    assert failed == 0


def test_entry_points():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]
    assert importlib.import_module(points["networkx.backends"]["matchwood"]) is interface
    module, name = points["networkx.backend_info"]["matchwood"].split(":")
    assert getattr(importlib.import_module(module), name) is get_info


def test_the_description_brings_nothing_heavy():
    script = (
        "import sys; from matchwood.networkx_backend.info import get_info; get_info();"
        "print(*{'numpy', 'scipy', 'numba', 'networkx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_the_description_is_complete():
    assert set(interface.__all__) == {*FUNCTIONS, *PROTOCOL}
    info = get_info()
    assert info["functions"].keys() == FUNCTIONS.keys()
    assert info["default_config"] == DEFAULTS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_name_is_one_of_networkx_with_its_arguments(name):
    import inspect

    theirs = inspect.signature(_registered_algorithms[name].orig_func).parameters
    ours = inspect.signature(getattr(interface, name)).parameters
    assert list(ours) == list(theirs)
    for argument, parameter in ours.items():
        assert parameter.default == theirs[argument].default


# Conversion


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_there_and_back(kind):
    rnd = random.Random(4)
    G = kind(title="round trip")
    for i in range(30):
        G.add_node(f"v{i}", number=i)
    for i in range(90):
        G.add_edge(f"v{rnd.randrange(30)}", f"v{rnd.randrange(30)}", weight=i)
    M = convert_from_nx(G, preserve_all_attrs=True)
    assert (len(M), list(M), M.number_of_edges()) == (len(G), list(G), G.number_of_edges())
    assert (M.is_directed(), M.is_multigraph()) == (G.is_directed(), G.is_multigraph())
    assert "v3" in M
    assert "nobody" not in M
    assert [] not in M
    H = convert_to_nx(M)
    assert type(H) is kind
    assert (H.graph, H._node, H._adj) == (G.graph, G._node, G._adj)
    assert [list(row) for row in H._adj.values()] == [list(row) for row in G._adj.values()]
    assert convert_from_nx(M) is M
    assert convert_to_nx(17) == 17


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_structure_alone(kind):
    G = kind([(0, 1), (1, 2), (1, 1), (0, 1)], title="x")
    G.add_node("alone", colour=1)
    H = convert_to_nx(convert_from_nx(G))
    assert set(H) == set(G)
    assert list(H.edges) == list(G.edges)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_views(kind):
    G = kind(nx.gnm_random_graph(40, 90, seed=1))
    H = G.subgraph(range(5, 30))
    M = convert_from_nx(H, preserve_all_attrs=True)
    assert list(M) == list(H)
    assert M.number_of_edges() == H.number_of_edges()
    if not G.is_directed():
        assert list(nx.connected_components(H, backend="matchwood")) == list(
            nx.connected_components(H)
        )
    else:
        R = G.reverse(copy=False)
        assert list(nx.bfs_edges(R, 3, backend="matchwood")) == list(nx.bfs_edges(R, 3))


def test_a_converted_graph_can_be_given_to_networkx():
    G = nx.gnm_random_graph(50, 60, seed=1)
    M = convert_from_nx(G, preserve_all_attrs=True)
    assert list(nx.connected_components(M)) == list(nx.connected_components(G))
    assert nx.minimum_spanning_tree(M)._adj == nx.minimum_spanning_tree(G)._adj
    with nx.config(fallback_to_nx=True):  # what we do not have, on the graph converted back
        assert nx.triangles(M) == nx.triangles(G)
    with pytest.raises(NotImplementedError):
        nx.triangles(M)


def test_conversions_are_kept_until_the_graph_changes():
    G = nx.path_graph(700)
    assert nx.number_connected_components(G, backend="matchwood") == 1
    kept = G.__networkx_cache__["backends"]["matchwood"]
    (first,) = kept.values()
    assert isinstance(first, Graph)
    assert nx.is_connected(G, backend="matchwood")
    assert list(kept.values()) == [first]
    G.remove_edge(3, 4)
    assert nx.number_connected_components(G, backend="matchwood") == 2
    G.add_node("new")
    assert nx.number_connected_components(G, backend="matchwood") == 3


def test_a_converted_graph_is_what_the_graph_was():
    G = nx.path_graph(4)
    G.edges[1, 2]["weight"] = 5
    M = convert_from_nx(G, preserve_all_attrs=True)
    T = interface.minimum_spanning_tree(M)
    T.edges[1, 2]["weight"] = 6
    G.edges[1, 2]["weight"] = 7
    G.remove_edge(0, 1)
    G.add_node("new", colour=1)
    assert M.edge_values("weight") == (1, 5, 1)
    assert convert_to_nx(M)._adj == {0: {1: {}}, 1: {0: {}, 2: {"weight": 5}},
                                     2: {1: {"weight": 5}, 3: {}}, 3: {2: {}}}  # fmt: skip
    assert list(M) == list(M.node_data) == [0, 1, 2, 3]


def test_edges_of_trees_bring_their_own_dictionaries():
    G = nx.path_graph(600)
    for u, v, data in nx.minimum_spanning_edges(G, backend="matchwood"):
        assert data is G._adj[u][v]
    T = nx.minimum_spanning_tree(G, backend="matchwood")
    assert T._adj[5][6] is T._adj[6][5]
    assert T._adj[5][6] is not G._adj[5][6]


def test_nothing_of_a_converted_graph_can_be_written_to():
    M = convert_from_nx(nx.MultiGraph([("a", "b"), ("b", "c")]), preserve_all_attrs=True)
    arrays = [M.indptr, M.indices, M.sources, M.edges.u, M.edges.v]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 10**6
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    for name in ("nodes", "indptr", "indices", "edges"):
        with pytest.raises(AttributeError):
            setattr(M, name, None)
    unchanging = (M.nodes, M.edge_values("weight"), M.edges.keys, M.edges.own, M.edges.data)
    assert all(type(each) is tuple for each in unchanging)
    with pytest.raises(TypeError):
        M.edges.columns["weight"] = ()


@pytest.mark.parametrize("nodes", [[0, 1, 2], ["a", "b", "c"]])
def test_arguments_of_a_converted_graph(nodes):
    M = convert_from_nx(nx.path_graph(nodes), preserve_all_attrs=True)
    assert M.names([2, 0]) == [nodes[2], nodes[0]]
    assert M.edge_data([1]) == [{}]
    assert list(M.sets(2, np.array([1, 0, 1], np.int8))) == [{nodes[1]}, {nodes[0], nodes[2]}]
    for method in (M.names, M.edge_data):
        for wrong in ([10**9], [-1], np.array([2**63], np.uint64), [3]):
            with pytest.raises(ValueError, match=f"{method.__name__}: .* must lie within 0"):
                method(wrong)
        for wrong in ([0.5], ["a"], [None]):
            with pytest.raises(TypeError, match=f"{method.__name__}: .* integers"):
                method(wrong)
        with pytest.raises(ValueError, match="one-dimensional"):
            method(0)
    for count, labels in ((2, [0, 1]), (2, [0, 1, 2]), (1, [-1, 0, 0])):
        with pytest.raises(ValueError, match="sets: labels"):
            list(M.sets(count, labels))


def test_what_is_no_graph_is_refused():
    for wrong in (5, None, {0: {1: {}}}, [(0, 1)]):
        with pytest.raises(TypeError, match="convert_from_nx: G must be a graph of NetworkX, got"):
            convert_from_nx(wrong)
    with pytest.raises(TypeError, match="convert_from_nx: edge_attrs must be None or a dict"):
        convert_from_nx(nx.path_graph(3), edge_attrs="weight")


def test_classes_with_their_own_neighbours_are_left_to_networkx():
    class Own(nx.Graph):
        def neighbors(self, n):
            return iter(())

    class Harmless(nx.Graph):
        def size(self):
            return 0

    assert can_run("is_connected", (Own([(0, 1)]),), {}) == "its class has its own neighbors"
    assert can_run("is_connected", (Harmless([(0, 1)]),), {}) is True
    with pytest.raises(TypeError, match="Own has its own neighbors"):
        convert_from_nx(Own([(0, 1)]))


def test_the_graph_is_not_changed():
    G = nx.gnm_random_graph(600, 900, seed=2)
    before = nx.Graph(G)
    counts = [sys.getrefcount(row) for row in G._adj.values()]
    for _ in range(3):
        G.__networkx_cache__.clear()
        list(nx.connected_components(G, backend="matchwood"))
    assert [sys.getrefcount(row) for row in G._adj.values()] == counts
    assert nx.utils.graphs_equal(G, before)


def test_threads_are_as_asked_for():
    G = nx.gnm_random_graph(600, 900, seed=2)
    expected = list(nx.connected_components(G))
    for threads in (1, 2, 5):
        G.__networkx_cache__.clear()
        with nx.config.backends.matchwood(threads=threads):
            assert list(nx.connected_components(G, backend="matchwood")) == expected


@pytest.mark.gpu
def test_the_work_can_be_done_on_a_gpu():
    G = nx.gnm_random_graph(2000, 6000, seed=2)
    for i, (_, _, data) in enumerate(G.edges(data=True)):
        data["weight"] = i % 11
    D = nx.gnm_random_graph(2000, 4000, seed=2, directed=True)
    calls = [
        (nx.connected_components, G),
        (nx.weakly_connected_components, D),
        (nx.strongly_connected_components, D),
        (nx.minimum_spanning_edges, G),
        (nx.maximal_matching, G),
        (functools.partial(nx.maximal_independent_set, seed=1), G),
    ]
    for function, graph in calls:
        answers = []
        for engine in ("cpu", "gpu"):
            graph.__networkx_cache__.clear()
            with nx.config.backends.matchwood(engine=engine):
                answers.append(list(function(graph, backend="matchwood")))
        assert answers[0] == answers[1]


# Results


def python_objects(value):
    """Everything inside a result."""
    yield value
    if isinstance(value, nx.Graph):
        value = [value.graph, value._node, value._adj]
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set)) or hasattr(value, "__next__"):
        for item in value:
            yield from python_objects(item)


ARGUMENTS = {
    "node_connected_component": (0,),
    "descendants_at_distance": (0, 1),
    "descendants": (0,),
    "ancestors": (0,),
    "has_path": (0, 1),
    "single_source_shortest_path": (0,),
    "bfs_layers": ([0, 1],),
    **{name: (0,) for name in FUNCTIONS if name.startswith(("bfs_e", "bfs_p", "bfs_s", "bfs_t"))},
    "generic_bfs_edges": (0,),
    "modularity": ([set(range(9)), set(range(9, 20))],),
    "single_source_shortest_path_length": (0,),
    "single_target_shortest_path_length": (0,),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_numpy_scalars(name):
    directed = any(word in name for word in ("strong", "weakly", "condensation"))
    G = nx.gnm_random_graph(20, 40, seed=1, directed=directed)
    if name == "hopcroft_karp_matching":
        G = nx.path_graph(20)
    with nx.config.backends.matchwood(approximate_matching=True, other_bisections=True):
        function = _registered_algorithms[name]
        result = function(G, *ARGUMENTS.get(name, ()), backend="matchwood")
        assert not any(isinstance(item, np.generic) for item in python_objects(result))
    assert CALLS[name] == 1


# Rules


def test_arguments_that_are_left_to_networkx():
    G, D = nx.path_graph(4), nx.path_graph(4, create_using=nx.DiGraph)
    assert can_run("bfs_edges", (G, 0), {}) is True
    assert can_run("bfs_edges", (G, 0, True), {}) is True
    refused = [
        ("bfs_edges", (G, 0), {"sort_neighbors": sorted}),
        ("bfs_edges", (D, 0, True), {}),
        ("bfs_tree", (D, 0), {"reverse": True}),
        ("generic_bfs_edges", (G, 0, G.neighbors), {}),
        ("minimum_spanning_edges", (G, "prim"), {}),
        ("minimum_spanning_tree", (G,), {"algorithm": "boruvka"}),
        ("minimum_spanning_tree", (D,), {}),
        ("max_weight_matching", (G,), {}),
        ("kernighan_lin_bisection", (G,), {}),
        ("kosaraju_strongly_connected_components", (D, 0), {}),
        ("has_path", (G, 0, None), {}),
        ("triangles", (G,), {}),
        ("is_connected", (G, 1, 2), {}),
    ]
    for call in refused:
        assert isinstance(can_run(*call), str), call


@pytest.mark.slow
def test_what_is_refused_is_answered_by_networkx():
    D = nx.path_graph(LARGE, create_using=nx.DiGraph)
    with nx.config.backend_priority(algos=["matchwood"], generators=["matchwood"]):
        assert list(nx.bfs_edges(D, 2, reverse=True)) == [(2, 1), (1, 0)]
        assert CALLS["bfs_edges"] == 0
        assert nx.bfs_tree(D, LARGE - 3).number_of_edges() == 2
        assert CALLS["bfs_tree"] == 1
        with pytest.raises(nx.NetworkXNotImplemented):
            nx.minimum_spanning_tree(D)


def test_large_graphs_are_taken_small_ones_left():
    small, large = (nx.path_graph(n, nx.DiGraph) for n in (50, LARGE))
    dense = nx.complete_graph(300, nx.DiGraph)
    name = "number_strongly_connected_components"
    assert isinstance(should_run(name, (small,), {}), str)
    assert should_run(name, (large,), {}) is True
    assert should_run(name, (), {"G": dense}) is True
    with nx.config.backend_priority(algos=["matchwood"]):
        assert nx.number_strongly_connected_components(small) == 50
        assert CALLS[name] == 0
        assert nx.number_strongly_connected_components(large) == LARGE
        assert CALLS[name] == 1
        with nx.config.backends.matchwood(small_graphs=True):
            assert nx.number_strongly_connected_components(small) == 50
        assert CALLS[name] == 2


@pytest.mark.parametrize("n", [5000, LARGE])
def test_a_part_is_worth_it_on_a_converted_graph(n):
    G = nx.path_graph(n)
    assert PARTIAL <= FUNCTIONS.keys()
    for name in PARTIAL:
        assert isinstance(should_run(name, (G,), {}), str)
    nx.is_connected(G, backend="matchwood")
    for name in (*PARTIAL, "connected_components"):
        assert should_run(name, (G,), {}) is True


def test_the_log_says_why(caplog):
    with (
        caplog.at_level(logging.DEBUG, logger="networkx"),
        nx.config.backend_priority(algos=["matchwood"]),
    ):
        list(nx.bfs_edges(nx.path_graph(4), 0, sort_neighbors=sorted))
    assert "neighbours are visited in the order of the graph" in caplog.text


# NetworkX's own tests, which `make test-networkx` runs


def test_what_networkx_never_called_is_noticed():
    assert "bfs_edges" in testing.never_called()
    assert not testing.NOT_ASKED_FOR.keys() & set(testing.never_called())
    for name in FUNCTIONS:
        CALLS[name] += 1
    assert testing.never_called() == []


def test_expected_failures_have_reasons(monkeypatch):
    monkeypatch.setattr(testing, "networkx_version", lambda: (3, 6))

    class Item:
        def __init__(self, file, name):
            self.path, self.name, self.originalname = ROOT / file, f"{name}[0]", name
            self.marks = []

        def add_marker(self, mark):
            self.marks.append(mark)

    items = [Item(*test) for test in testing.EXPECTED]
    other = Item("test_mis.py", "test_K5")
    testing.on_start_tests([*items, other])
    assert other.marks == []
    assert all(item.marks[0].kwargs["reason"] for item in items)
