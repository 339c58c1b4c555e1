"""The NetworkX backend against NetworkX: odd nodes, odd weights, graphs that change meanwhile."""

from __future__ import annotations

import contextlib
import fractions
import random
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from networkx.algorithms.approximation.kcomponents import _AntiGraph

from adversarial.clock import attempts, seconds
from forked import forked_script
from matchwood.networkx_backend import CALLS, convert_from_nx, register
from matchwood.networkx_backend.info import DEFAULTS


class Alike:
    """Objects of which many have one hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number % 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and other.number == self.number

    def __repr__(self) -> str:
        return f"Alike({self.number})"


BIG = 2**61 - 1  # the modulus of Python's hashes of numbers: that of BIG is 0
ODD = [
    0, 1, 2, 3, -1, -2, BIG, BIG + 1, 2 * BIG, -BIG, 2**61, 2**62, 2**63, 2**64, 10**40, -(2**63),
    True, 1.0, 0.5, float(2**61), float("inf"), float("nan"), 1e300, "", "a", "ab", b"", b"a", (),
    (0,), (1, 2), frozenset(), frozenset({1}), fractions.Fraction(1, 3), 1j, Ellipsis, int, len,
    *(Alike(i) for i in range(6)),
]  # fmt: skip
NUMBERED = [BIG, *range(1, 12)]  # the hashes are 0, 1, 2, ...
KINDS: list[Any] = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def ordered(kind: Any) -> Any:
    """A subclass with other dictionaries at every level."""
    factories = ("node", "node_attr", "adjlist_outer", "adjlist_inner", "edge_key", "edge_attr")
    return type("Ordered", (kind,), {f"{name}_dict_factory": OrderedDict for name in factories})


def thin(kind: Any) -> Any:
    """A subclass whose edges share one dictionary."""
    shared = {"weight": 2}
    return type("Thin", (kind,), {"edge_attr_dict_factory": lambda self: shared})


KINDS += [ordered(kind) for kind in KINDS[:4]] + [thin(nx.Graph), thin(nx.DiGraph)]
WEIGHTS = [
    lambda r: r.random(),
    lambda r: r.randrange(4),
    lambda r: r.choice([0.0, -0.0, 0, True, 1.0, 1]),
    lambda r: r.choice([2**53, 2**53 + 1, 2**60, 2.0**53, 1 - 2**30, 2**30]),
    lambda r: r.choice([2**70, -(2**70), 1]),
    lambda r: r.choice([float("inf"), -float("inf"), 1e308, 5e-324, -1e308]),
    lambda r: fractions.Fraction(r.randrange(9), 7),
]


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    register()
    CALLS.clear()
    with nx.config.backends.matchwood(**DEFAULTS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def drawn(r: random.Random) -> Any:
    """A random graph of any kind."""
    G = r.choice(KINDS)()
    how = r.random()
    if how < 0.2:
        pool: list[Any] = NUMBERED[: r.randrange(1, 12)]
    elif how < 0.4:
        pool = list(range(r.randrange(1, 12)))
    else:
        pool = r.sample(ODD, r.randrange(1, 12))
    if how < 0.9:
        G.add_nodes_from(r.sample(pool, len(pool)))
    weight, part = r.choice(WEIGHTS), r.choice([0.0, 0.3, 1.0])
    for _ in range(r.randrange(25)):
        data = {"weight": weight(r)} if r.random() >= part else {}
        if r.random() < 0.3:
            data["other"] = r.choice(["text", None, [1], 3])
        G.add_edge(r.choice(pool), r.choice(pool), **data)
    if r.random() < 0.3 and G.number_of_edges():
        with contextlib.suppress(KeyError, nx.NetworkXError):  # which a loop at NaN gives
            G.remove_edges_from(r.sample(list(G.edges), 1))  # a hole in a table
    if r.random() < 0.2 and len(G) > 1:
        G.remove_node(r.choice(list(G)))
    if r.random() < 0.2:
        G = G.subgraph(r.sample(list(G), r.randrange(len(G) + 1)))
    elif r.random() < 0.1:
        G = G.reverse(copy=False) if G.is_directed() else G.to_directed(as_view=True)
    return G


def outcome(name: str, call: Any, backend: str) -> tuple[Any, ...]:
    """What a call gives, in its order, or the kind of error."""
    try:
        found = call(backend=backend)
        if isinstance(found, nx.Graph):
            rows = [(u, [(v, row[v]) for v in row]) for u, row in found._adj.items()]
            return "graph", type(found), rows, list(found.nodes(data=True)), found.graph
        if isinstance(found, dict):  # the order is promised of what leads away from a node only
            return "dict", found if "single_target" in name else list(found.items())
        return "value", list(found) if hasattr(found, "__next__") else found
    except (KeyError, TypeError, ValueError, OverflowError, nx.NetworkXException) as error:
        return "error", type(error)


def calls(G: Any, r: random.Random) -> Iterator[tuple[str, Any]]:
    """Every function whose answer is NetworkX's own."""
    nodes = list(G)
    pick = [r.choice(nodes) if nodes else 0, r.choice(ODD)]
    weight = r.choice(["weight", "weight", "other", "absent"])
    limit = r.choice([None, 0, 1, 2, 2.5])
    names = ["is_weakly_connected", "weakly_connected_components", "is_strongly_connected"]
    names += ["number_strongly_connected_components", "number_weakly_connected_components"]
    if not G.is_directed():
        names = ["connected_components", "number_connected_components", "is_connected"]
        # NetworkX's Kruskal never ends on a node that is not equal to itself
        for which in ("minimum", "maximum") if all(v == v for v in nodes) else ():
            for keys in (True, False):
                options = {"weight": weight, "keys": keys, "ignore_nan": r.random() < 0.5}
                name = f"{which}_spanning_edges"
                yield name, partial(getattr(nx, name), G, **options)
            name = f"{which}_spanning_tree"
            yield name, partial(getattr(nx, name), G, weight=weight)
    for name in names:
        yield name, partial(getattr(nx, name), G)
    for node in pick:
        if not G.is_directed():
            name = "node_connected_component"
            yield name, partial(nx.node_connected_component, G, node)
        for name in ("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree"):
            yield name, partial(getattr(nx, name), G, node, depth_limit=limit)
        for name in ("single_source_shortest_path_length", "single_target_shortest_path_length"):
            yield name, partial(getattr(nx, name), G, node, cutoff=limit)
        yield "generic_bfs_edges", partial(nx.generic_bfs_edges, G, node)
        name = "descendants_at_distance"
        yield name, partial(nx.descendants_at_distance, G, node, 1)
        yield "bfs_layers", partial(nx.bfs_layers, G, [node])


def same(theirs: tuple[Any, ...], ours: tuple[Any, ...]) -> bool:
    """Equal; by text where a NaN inside keeps equal things from being so."""
    return bool(theirs == ours) or repr(theirs) == repr(ours)


@pytest.mark.slow
def test_every_answer_is_that_of_networkx() -> None:
    compare(-1)  # loads compiled code, which takes longer than all that follows
    for number in attempts(0.7):
        compare(number)


def compare(number: int) -> None:
    r = random.Random(number)
    G = drawn(r)
    for name, call in calls(G, r):
        theirs, ours = (outcome(name, call, b) for b in ("networkx", "matchwood"))
        assert same(theirs, ours), (number, name, list(G), list(G.edges(data=True)))
    if not (G.is_directed() or G.is_multigraph()):
        found = nx.maximal_matching(G, backend="matchwood")
        # NetworkX takes a loop at NaN, which differs from itself, for an edge that could be added
        H = nx.Graph(edge for edge in G.edges if edge[0] is not edge[1])
        H.add_nodes_from(G)
        assert nx.is_maximal_matching(H, found)
    if not G.is_directed() and len(G):
        call = partial(nx.maximal_independent_set, G, seed=abs(number))
        theirs, ours = (outcome("", call, b) for b in ("networkx", "matchwood"))
        assert theirs[0] == ours[0], (number, list(G.edges))  # an error where there is a loop
        if ours[0] == "error":
            assert theirs == ours, number
            return
        found = set(ours[1])
        assert all(v in found or not found.isdisjoint(G[v]) for v in G), number
        between = [(u, v) for u, v in G.edges() if u != v and u is not v]  # NaN differs from itself
        assert not any(u in found and v in found for u, v in between), number


def test_a_node_whose_hash_is_zero_is_not_zero() -> None:
    for first in (BIG, -BIG, 2 * BIG):
        G = nx.path_graph([first, *range(1, 700)])
        edges = list(nx.bfs_edges(G, first, backend="matchwood"))
        assert edges == list(nx.bfs_edges(G, first))
        assert edges[0] == (first, 1)
        assert next(nx.connected_components(G, backend="matchwood")) == set(G)
    G = nx.path_graph([0, 1, BIG + 2, 3, *range(4, 700)])
    assert list(nx.bfs_edges(G, 0, backend="matchwood")) == list(nx.bfs_edges(G, 0))


@pytest.mark.parametrize("weight", ["text", None, 2**60, (1, 2), float("nan"), 1j])
def test_what_needs_no_weights_reads_none(weight: Any) -> None:
    G = nx.path_graph(600)
    for *_, data in G.edges(data=True):
        data["weight"] = weight
    assert nx.is_connected(G, backend="matchwood")
    assert len(list(nx.bfs_edges(G, 0, backend="matchwood"))) == 599
    found = nx.maximal_matching(G, backend="matchwood")
    # NetworkX takes a loop at NaN, which differs from itself, for an edge that could be added
    H = nx.Graph(edge for edge in G.edges if edge[0] is not edge[1])
    H.add_nodes_from(G)
    assert nx.is_maximal_matching(H, found)
    assert nx.maximal_independent_set(G, seed=1, backend="matchwood")


def test_a_broken_graph_is_refused() -> None:
    G = nx.path_graph(600)
    G._adj[3][590] = {}  # at one end only
    with pytest.raises(RuntimeError, match="at one of its ends only"):
        nx.maximal_matching(G, backend="matchwood")


def test_a_complement_is_left_to_networkx() -> None:
    """Its dictionaries hold the edges that are not there."""
    G = _AntiGraph(nx.star_graph(40).edges)
    with (
        nx.config.backend_priority(algos=["matchwood"]),
        nx.config.backends.matchwood(small_graphs=True),
    ):
        found = nx.maximal_independent_set(G, seed=1)
    assert len(found) == (2 if 0 in found else 1)  # all others are neighbours
    assert not CALLS
    with pytest.raises(TypeError, match="_AntiGraph has its own"):
        convert_from_nx(G)


@pytest.mark.slow
def test_graphs_that_another_thread_changes(tmp_path: Path) -> None:
    script = Path(__file__).with_name("changing_graphs.py").read_text()
    said = forked_script(tmp_path, script, str(seconds(2))).splitlines()
    assert len(said) == 12
    assert not [line for line in said if "fault" in line]
    assert not [line for line in said if " 0 answers" in line or " 0 changes" in line]


@pytest.mark.slow
def test_ctrl_c_while_reading(tmp_path: Path) -> None:
    script = """
        import networkx as nx, os, signal, threading, time
        from matchwood.networkx_backend import convert_from_nx
        G = nx.gnm_random_graph(20000, 100000, seed=1)
        convert_from_nx(G)
        begin = time.monotonic()
        try:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            while time.monotonic() < begin + 60:
                convert_from_nx(G)
        except KeyboardInterrupt:
            print("heard")
    """
    assert forked_script(tmp_path, script) == "heard"
