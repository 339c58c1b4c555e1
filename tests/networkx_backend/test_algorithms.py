"""Every function gives NetworkX's answer, or one that is as good where there are several."""

from __future__ import annotations

import fractions
import itertools
import random
import warnings

import networkx as nx
import pytest

from matchwood.networkx_backend.names import CALLS

LABELS = {
    "numbers": lambda i: i,
    "words": lambda i: f"node {i}",
    "pairs": lambda i: (i // 9, i % 9),
}


def shuffled(n, m, label, kind=nx.Graph, seed=1):
    """A random graph whose nodes and edges were added in random order, with loops."""
    rnd = random.Random(seed)
    G = kind(name="a graph")
    nodes = [label(i) for i in range(n)]
    G.add_nodes_from((node, {"number": i}) for i, node in enumerate(nodes))
    for _ in range(m):
        u, v = rnd.choice(nodes), rnd.choice(nodes)
        if kind in (nx.DiGraph, nx.MultiDiGraph) and rnd.random() < 0.9:
            u, v = sorted((u, v))  # so that there are several strong components
        G.add_edge(u, v, weight=rnd.randrange(6))
    return G


SIZES = [(1, 0), (2, 1), (40, 25), (60, 150), (800, 700), (700, 5000)]


@pytest.fixture(params=itertools.product(SIZES, LABELS), ids=lambda case: f"{case[0]} {case[1]}")
def undirected(request):
    size, label = request.param
    return shuffled(*size, LABELS[label])


@pytest.fixture(params=itertools.product(SIZES, LABELS), ids=lambda case: f"{case[0]} {case[1]}")
def directed(request):
    size, label = request.param
    return shuffled(*size, LABELS[label], nx.DiGraph)


def both(function, *args, **kwargs):
    """NetworkX's answer and ours; generators as lists."""
    answers = []
    for backend in ("networkx", "matchwood"):
        answer = function(*args, backend=backend, **kwargs)
        answers.append(list(answer) if hasattr(answer, "__next__") else answer)
    assert CALLS[function.__name__] > 0
    return answers


def assert_same(function, *args, **kwargs):
    theirs, ours = both(function, *args, **kwargs)
    assert theirs == ours
    assert type(theirs) is type(ours)


def assert_same_graph(function, *args, **kwargs):
    theirs, ours = both(function, *args, **kwargs)
    assert type(ours) is type(theirs)
    assert ours.graph == theirs.graph
    assert list(ours.nodes(data=True)) == list(theirs.nodes(data=True))
    assert ours._adj == theirs._adj
    assert [list(row) for row in ours._adj.values()] == [list(row) for row in theirs._adj.values()]
    if ours.is_directed():
        assert ours._pred == theirs._pred
    back = ours._pred if ours.is_directed() else ours._adj  # both ends share what an edge has
    assert all(back[v][u] is ours._adj[u][v] for u, v, *_ in ours.edges)


# Components


def test_connected(undirected):
    G = undirected
    assert_same(nx.connected_components, G)
    assert_same(nx.number_connected_components, G)
    assert_same(nx.is_connected, G)
    for node in list(G)[:3]:
        assert_same(nx.node_connected_component, G, node)


def test_weak(directed):
    assert_same(nx.weakly_connected_components, directed)
    assert_same(nx.number_weakly_connected_components, directed)
    assert_same(nx.is_weakly_connected, directed)


def test_strong(directed):
    G = directed
    for function in (nx.strongly_connected_components, nx.kosaraju_strongly_connected_components):
        theirs, ours = both(function, G)
        assert sorted(map(sorted, theirs)) == sorted(map(sorted, ours))
        place = {node: i for i, component in enumerate(ours) for node in component}
        assert all(place[u] >= place[v] for u, v in G.edges)  # reverse topological
    assert_same(nx.number_strongly_connected_components, G)
    assert_same(nx.is_strongly_connected, G)


def test_condensation(directed):
    G = directed
    components = list(nx.strongly_connected_components(G))
    theirs, ours = both(nx.condensation, G, scc=components)
    assert (ours.graph, ours._node, ours._adj) == (theirs.graph, theirs._node, theirs._adj)
    C = nx.condensation(G, backend="matchwood")
    assert C.graph["mapping"].keys() == set(G)
    assert all(C.graph["mapping"][v] == c for c in C for v in C.nodes[c]["members"])
    assert set(C.edges) == {
        (a, b) for u, v in G.edges if (a := C.graph["mapping"][u]) != (b := C.graph["mapping"][v])
    }
    assert all(u > v for u, v in C.edges)


@pytest.mark.parametrize("function", [nx.is_connected, nx.is_weakly_connected,
                                      nx.is_strongly_connected])  # fmt: skip
def test_the_null_graph_is_pointless(function):
    G = nx.Graph() if function is nx.is_connected else nx.DiGraph()
    with pytest.raises(nx.NetworkXPointlessConcept):
        function(G, backend="matchwood")


def test_components_of_nothing():
    assert list(nx.connected_components(nx.Graph(), backend="matchwood")) == []
    assert list(nx.strongly_connected_components(nx.DiGraph(), backend="matchwood")) == []
    assert nx.number_weakly_connected_components(nx.DiGraph(), backend="matchwood") == 0
    assert nx.condensation(nx.DiGraph(), backend="matchwood").graph == {"mapping": {}}
    with pytest.raises(KeyError):
        nx.node_connected_component(nx.path_graph(3), 7, backend="matchwood")


def test_the_wrong_kind_is_refused_as_networkx_does():
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.connected_components(nx.DiGraph(), backend="matchwood")
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.strongly_connected_components(nx.Graph(), backend="matchwood")


# Searches


def test_searches(undirected):
    searches(undirected)


def test_directed_searches(directed):
    searches(directed)


def searches(G):
    for source in list(G)[:2]:
        for limit in (None, 0, 1, 2.5, 10):
            assert_same(nx.bfs_edges, G, source, depth_limit=limit)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                assert_same(nx.bfs_predecessors, G, source, depth_limit=limit)
            assert_same(nx.bfs_successors, G, source, depth_limit=limit)
            assert_same_graph(nx.bfs_tree, G, source, depth_limit=limit)
            theirs, ours = both(nx.single_source_shortest_path_length, G, source, cutoff=limit)
            assert list(theirs.items()) == list(ours.items())
            theirs, ours = both(nx.single_target_shortest_path_length, G, source, cutoff=limit)
            assert dict(theirs) == dict(ours)
            theirs, ours = both(nx.single_source_shortest_path, G, source, cutoff=limit)
            assert list(theirs.items()) == list(ours.items())
        assert_same(nx.descendants, G, source)
        assert_same(nx.ancestors, G, source)
        for target in list(G)[-3:]:
            assert_same(nx.has_path, G, source, target)
        assert_same(nx.generic_bfs_edges, G, source)
        assert_same(nx.bfs_layers, G, source)
        for distance in (0, 1, 2, 3, 99, 1.0, 1.5, -1):
            assert_same(nx.descendants_at_distance, G, source, distance)
    assert_same(nx.bfs_layers, G, list(G)[:3])
    assert_same(nx.bfs_layers, G, [])
    if not G.is_directed():
        assert_same(nx.bfs_edges, G, next(iter(G)), reverse=True)


def test_a_source_that_is_no_node():
    for G in (nx.path_graph(3), nx.path_graph(3, create_using=nx.DiGraph)):
        for function in (nx.bfs_edges, nx.bfs_layers, nx.bfs_successors):
            for backend in ("networkx", "matchwood"):
                with pytest.raises(nx.NetworkXError, match="9 is not in the"):
                    list(function(G, [9] if function is nx.bfs_layers else 9, backend=backend))
        with pytest.raises(nx.NetworkXError):
            nx.descendants_at_distance(G, 9, 1, backend="matchwood")
        with pytest.raises(nx.NodeNotFound):
            nx.single_source_shortest_path_length(G, 9, backend="matchwood")
        with pytest.raises(nx.NodeNotFound):
            nx.single_target_shortest_path_length(G, 9, backend="matchwood")
        for function, args in (
            (nx.descendants, (9,)),
            (nx.ancestors, (9,)),
            (nx.single_source_shortest_path, (9,)),
            (nx.has_path, (9, 0)),
            (nx.has_path, (0, 9)),
        ):
            said = []
            for backend in ("networkx", "matchwood"):
                with pytest.raises(nx.NetworkXException) as refused:
                    function(G, *args, backend=backend)
                said.append((type(refused.value), str(refused.value)))
            assert said[0] == said[1]


# Spanning trees


def spanning(G, **options):
    for function in (nx.minimum_spanning_edges, nx.maximum_spanning_edges):
        for data in (True, False):
            assert_same(function, G, data=data, **options)
    for function in (nx.minimum_spanning_tree, nx.maximum_spanning_tree):
        assert_same_graph(function, G, **options)


def test_spanning_trees(undirected):
    spanning(undirected)
    assert_same(nx.minimum_spanning_edges, undirected, weight="absent")
    assert_same(nx.minimum_spanning_edges, undirected, weight=None)


WEIGHTS = {
    "floats": lambda rnd: rnd.random(),
    "zeros": lambda rnd: rnd.choice([0.0, -0.0, 0]),
    "infinite": lambda rnd: rnd.choice([float("inf"), -float("inf"), 1]),
    "negative": lambda rnd: rnd.randrange(-9, 0),
    "fractions": lambda rnd: fractions.Fraction(rnd.randrange(20), 7),
    "huge": lambda rnd: 2**64 + rnd.randrange(9),
    "above 2**53": lambda rnd: rnd.choice([2**53, 2**53 + 1, 2**53 + 2, 2.0**53]),
    "truth": lambda rnd: rnd.random() < 0.5,
    "missing": lambda rnd: None,
}


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_all_kinds(kind, weights):
    G = shuffled(600, 2500, LABELS["numbers"], kind)
    rnd = random.Random(5)
    for *_, data in G.edges(data=True):
        data["weight"] = WEIGHTS[weights](rnd)
        if data["weight"] is None:
            del data["weight"]
    spanning(G)


@pytest.mark.parametrize("label", LABELS)
def test_multigraphs(label):
    G = shuffled(50, 400, LABELS[label], nx.MultiGraph)
    spanning(G)
    assert_same(nx.minimum_spanning_edges, G, keys=False)
    assert_same(nx.minimum_spanning_edges, G, keys=False, data=False)
    assert_same(nx.connected_components, G)
    assert_same(nx.bfs_layers, G, next(iter(G)))


@pytest.mark.parametrize("n", [30, 600])
def test_nan(n):
    G = nx.gnm_random_graph(n, 4 * n, seed=2)
    for i, (_, _, data) in enumerate(G.edges(data=True)):
        data["weight"] = float("nan") if i % 3 == 1 else i % 7
    spanning(G, ignore_nan=True)
    messages = []
    for backend in ("networkx", "matchwood"):
        with pytest.raises(ValueError, match="NaN found as an edge weight") as caught:
            list(nx.minimum_spanning_edges(G, backend=backend))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("weight", [None, "text", 1j])
def test_weights_that_are_no_numbers(weight):
    G = nx.path_graph(4)
    G.edges[1, 2]["weight"] = weight
    for backend in ("networkx", "matchwood"):
        with pytest.raises(TypeError):
            list(nx.minimum_spanning_edges(G, backend=backend))


def test_a_subclass_stays_one():
    class Own(nx.Graph):
        pass

    G = Own(nx.gnm_random_graph(20, 50, seed=1))
    assert_same_graph(nx.minimum_spanning_tree, G)


class Stubborn:
    """A node that cannot be compared any more."""

    broken = False

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        if Stubborn.broken:
            raise RuntimeError("no hash any more")
        return self.number

    def __eq__(self, other):
        return self is other


def test_nodes_that_raise(monkeypatch):
    """An error inside Python's own functions comes out as itself."""
    G = nx.relabel_nodes(nx.path_graph(800), Stubborn)
    T = nx.minimum_spanning_tree(G, backend="matchwood")
    assert T._adj == G._adj
    monkeypatch.setattr(Stubborn, "broken", True)
    with pytest.raises(RuntimeError, match="no hash any more"):
        nx.minimum_spanning_tree(G, backend="matchwood")


# Sets and matchings


def test_independent_sets(undirected):
    G = undirected
    seeds = [seed for seed in range(9) if outcome(G, None, seed, "networkx") != "unfeasible"]
    for seed in seeds[:2]:
        found = nx.maximal_independent_set(G, seed=seed, backend="matchwood")
        assert type(found) is type(nx.maximal_independent_set(nx.path_graph(3)))
        assert_maximal_independent(G, found)
        assert found == nx.maximal_independent_set(G, seed=seed, backend="matchwood")
    free = [node for node in G if not G.has_edge(node, node)]
    if free:
        found = nx.maximal_independent_set(G, [free[-1]], seed=3, backend="matchwood")
        assert free[-1] in found
        assert_maximal_independent(G, found)


def assert_maximal_independent(G, found):
    members = set(found)
    assert len(members) == len(found)
    assert not any(u in members and v in members for u, v in G.edges if u != v)
    assert all(v in members or not members.isdisjoint(G[v]) for v in G)


def outcome(G, nodes, seed, backend):
    try:
        return len(nx.maximal_independent_set(G, nodes, seed, backend=backend)) > 0
    except nx.NetworkXUnfeasible as error:
        return "unfeasible" if nodes is None else str(error)


def test_nodes_with_loops():
    """NetworkX refuses one as the first node, given or drawn, and takes it later."""
    G = nx.path_graph(8)
    G.add_edges_from([(0, 0), (3, 3), (7, 7)])
    for nodes in (None, [], [0], [1], [1, 3], [7, 7]):
        for seed in range(12):
            theirs, ours = (outcome(G, nodes, seed, b) for b in ("networkx", "matchwood"))
            assert theirs == ours
    assert {3, 7} <= set(nx.maximal_independent_set(G, [1, 5], seed=1, backend="matchwood"))


def test_seeds_differ():
    G = nx.cycle_graph(60)
    answers = {
        frozenset(nx.maximal_independent_set(G, seed=seed, backend="matchwood"))
        for seed in range(5)
    }
    assert len(answers) > 1


def test_independent_sets_refuse_what_networkx_refuses():
    G = nx.path_graph(4)
    for nodes in ([0, 1], [9]):
        with pytest.raises(nx.NetworkXUnfeasible):
            nx.maximal_independent_set(G, nodes, backend="matchwood")
    with pytest.raises(IndexError):
        nx.maximal_independent_set(nx.Graph(), backend="matchwood")


COMMUNITIES = [
    nx.community.louvain_communities,
    nx.community.louvain_partitions,
    nx.community.leiden_communities,
    nx.community.leiden_partitions,
    nx.community.label_propagation_communities,
    nx.community.asyn_lpa_communities,
    nx.community.fast_label_propagation_communities,
]


@pytest.mark.parametrize("function", COMMUNITIES, ids=lambda function: function.__name__)
def test_communities(undirected, function):
    """A partition into sets, of no lower modularity than everyone alone; the same twice."""
    options = {} if "label_propagation_communities" == function.__name__ else {"seed": 3}
    found = list(function(undirected, backend="matchwood", **options))
    assert CALLS[function.__name__] == 1
    assert found == list(function(undirected, backend="matchwood", **options))
    partitions = found if function.__name__.endswith("partitions") else [found]
    for sets in partitions:
        assert nx.community.is_partition(undirected, sets)
    total = sum(weight for _, _, weight in undirected.edges(data="weight", default=1))
    if "lpa" in function.__name__ or "label" in function.__name__ or total == 0:
        return
    alone = [{node} for node in undirected]
    qualities = [nx.community.modularity(undirected, sets) for sets in [alone, *partitions]]
    assert qualities[-1] >= qualities[0] - 1e-12
    ours = nx.community.modularity(undirected, partitions[-1], backend="matchwood")
    assert ours == pytest.approx(qualities[-1], abs=1e-9)


def test_communities_of_multigraphs():
    """Parallel edges are added up, whichever end they were given from."""
    H = nx.MultiGraph([(0, 1), (1, 0), (0, 1), (2, 2), (1, 2), (3, 4), (4, 3)])
    sets = [{0, 1, 2}, {3, 4}]
    for weight in (None, "weight"):
        theirs, ours = both(nx.community.modularity, H, sets, weight=weight, resolution=1.5)
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_communities_that_are_left_to_networkx():
    from matchwood.networkx_backend.interface import can_run

    D = nx.DiGraph([(0, 1), (1, 2)])
    for function in (*COMMUNITIES, nx.community.modularity):
        arguments = (D, [{0, 1, 2}]) if function.__name__ == "modularity" else (D,)
        assert "undirected" in can_run(function.__name__, arguments, {})
    G = nx.Graph([(0, 1, {"weight": -1.0})])
    with pytest.raises(NotImplementedError):
        nx.community.louvain_communities(G, backend="matchwood")
    with pytest.raises(nx.community.quality.NotAPartition):
        nx.community.modularity(nx.path_graph(3), [{0, 1}], backend="matchwood")
    with pytest.raises(ValueError, match="max_level"):
        nx.community.leiden_communities(nx.path_graph(3), max_level=0, backend="matchwood")


def test_maximal_matching(undirected):
    found = nx.maximal_matching(undirected, backend="matchwood")
    assert isinstance(found, set)
    assert nx.is_maximal_matching(undirected, found)
    assert found <= set(undirected.edges)  # in the direction in which NetworkX shows them


def test_weighted_matching_on_request():
    G = shuffled(40, 200, LABELS["words"])
    for i, (_, _, data) in enumerate(G.edges(data=True)):
        data["weight"] = (i * 37) % 101 - 20
    with pytest.raises(NotImplementedError):
        nx.max_weight_matching(G, backend="matchwood")
    with nx.config.backends.matchwood(approximate_matching=True):
        found = nx.max_weight_matching(G, backend="matchwood")
        with pytest.raises(NotImplementedError):
            nx.max_weight_matching(G, maxcardinality=True, backend="matchwood")

    def weight(matching):
        return sum(G.edges[edge]["weight"] for edge in matching)

    assert nx.is_matching(G, found)
    assert weight(found) >= weight(nx.max_weight_matching(G)) / 2


def test_bisection_on_request():
    """As many nodes on both sides as in NetworkX; from a given partition never worse."""
    G = nx.grid_2d_graph(5, 9)
    bisect = nx.community.kernighan_lin_bisection
    with pytest.raises(NotImplementedError):
        bisect(G, backend="matchwood")
    with nx.config.backends.matchwood(other_bisections=True):
        found = bisect(G, backend="matchwood")
        assert [len(part) for part in found] == [23, 22]
        assert nx.community.is_partition(G, found)
        assert nx.cut_size(G, *found) <= 6
        given = set(list(G)[::5]), set(G) - set(list(G)[::5])
        better = bisect(G, given, backend="matchwood")
        assert [len(part) for part in better] == [36, 9]
        assert nx.cut_size(G, *better) < nx.cut_size(G, *given)
        assert better == bisect(G, [list(part) for part in given], backend="matchwood")
        for wrong in (given[:1], [given[0], given[0]], 3):
            with pytest.raises(nx.NetworkXError):
                bisect(G, wrong, backend="matchwood")
        for options in ({"max_iter": 3}, {"weight": lambda u, v, data: 1}, {"partition": (G, ())}):
            with pytest.raises(NotImplementedError):
                bisect(G, **options, backend="matchwood")


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "text"])
def test_weighted_matching_of_what_is_no_weight(weight):
    G = nx.path_graph(4)
    G.edges[1, 2]["weight"] = weight
    with (
        nx.config.backends.matchwood(approximate_matching=True),
        pytest.raises(NotImplementedError),
    ):
        nx.max_weight_matching(G, backend="matchwood")


# Ranking


def same_ranks(G):
    for options in (
        {},
        {"weight": None},
        {"alpha": 0.5, "personalization": {next(iter(G)): 2}},
        {"dangling": dict.fromkeys(G, 1), "nstart": dict.fromkeys(G, 3)},
    ):
        expected = nx.pagerank.orig_func(G, **options)
        found = nx.pagerank(G, **options, backend="matchwood")
        assert list(found) == list(expected)
        assert all(abs(found[v] - expected[v]) < 1e-12 for v in expected)


def test_pagerank(undirected):
    same_ranks(undirected)


def test_pagerank_of_directed_graphs(directed):
    same_ranks(directed)


def test_pagerank_of_what_is_left_to_networkx():
    G = nx.path_graph(4, create_using=nx.DiGraph)
    G.add_edge(3, 0, weight=-0.5)
    assert nx.pagerank(G, backend="matchwood") == pytest.approx(nx.pagerank.orig_func(G))
    H = nx.cycle_graph(5)
    assert nx.pagerank(H, alpha=1.0, backend="matchwood") == pytest.approx(
        nx.pagerank.orig_func(H, alpha=1.0)
    )
    for options, error in (
        ({"max_iter": 0}, nx.PowerIterationFailedConvergence),
        ({"max_iter": 1, "nstart": {0: 1}}, nx.PowerIterationFailedConvergence),
        ({"personalization": {0: 0}}, ZeroDivisionError),
    ):
        with pytest.raises(error):
            nx.pagerank(H, **options, backend="matchwood")


def test_pagerank_counts_parallel_edges():
    for kind in (nx.MultiGraph, nx.MultiDiGraph):
        G = kind([(0, 1), (0, 1), (0, 2), (1, 0), (2, 2)])
        for weight in (None, "weight"):
            expected = nx.pagerank.orig_func(G, weight=weight)
            assert nx.pagerank(G, weight=weight, backend="matchwood") == pytest.approx(expected)


def test_bipartite_maximum_matching():
    for seed in range(4):
        G = nx.bipartite.random_graph(40, 30, 0.06, seed=seed)
        top = range(40)
        expected = nx.bipartite.hopcroft_karp_matching(G, top, backend="networkx")
        for function in (nx.bipartite.hopcroft_karp_matching, nx.bipartite.maximum_matching):
            found = function(G, top, backend="matchwood")
            assert len(found) == len(expected)
            assert all(found[v] == u and G.has_edge(u, v) for u, v in found.items())
    path = nx.path_graph(7)
    assert len(nx.bipartite.maximum_matching(path, backend="matchwood")) == 6
    assert nx.bipartite.maximum_matching(nx.Graph([(0, 1)]), backend="matchwood") == {0: 1, 1: 0}
    with pytest.raises(nx.AmbiguousSolution):
        nx.bipartite.maximum_matching(nx.Graph([(0, 1), (2, 3)]), backend="matchwood")
    with pytest.raises(nx.NetworkXError, match="not bipartite"):
        nx.bipartite.maximum_matching(nx.complete_graph(3), backend="matchwood")
