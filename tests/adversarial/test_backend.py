"""The NetworkX backend against NetworkX: odd nodes, odd weights, graphs that change meanwhile."""

from __future__ import annotations

import fractions
import random
import signal
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from adversarial.clock import attempts, seconds
from forked import forked_script
from matchwood.networkx_backend import CALLS, reading, register
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
    0.5, float(2**61), float("inf"), float("nan"), 1e300, "", "a", "ab", b"", b"a", (), (0,),
    (1, 2), frozenset(), frozenset({1}), fractions.Fraction(1, 3), 1j, Ellipsis, int, len,
    *(Alike(i) for i in range(6)),
]  # fmt: skip
NUMBERED = [BIG, *range(1, 12)]  # the hashes are 0, 1, 2, ...
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
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
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    register()
    CALLS.clear()
    monkeypatch.setattr(reading, "QUICK_FROM", 0)  # small graphs are read in memory too
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
        G.remove_edges_from(r.sample(list(G.edges), 1))  # a hole in a table
    if r.random() < 0.2 and len(G) > 1:
        G.remove_node(r.choice(list(G)))
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
        found = set(nx.maximal_independent_set(G, seed=abs(number), backend="matchwood"))
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
    for neighbour in (9999, -1, "x"):
        H = nx.path_graph(600)
        H._adj[3][neighbour] = {}
        with pytest.raises(RuntimeError, match="changed while"):
            list(nx.bfs_edges(H, 0, backend="matchwood"))


CHANGING = """
import random, sys, threading, time, warnings
import networkx as nx
from matchwood.networkx_backend import convert_from_nx, interface as ours, register

register()
warnings.simplefilter("ignore")
kind, label, limit = getattr(nx, sys.argv[1]), sys.argv[2], float(sys.argv[3])
sys.setswitchinterval(5e-5)
G = kind(nx.gnm_random_graph(1500, 5000, seed=1, directed="Di" in sys.argv[1]))
if label == "names":
    G = nx.relabel_nodes(G, lambda i: f"node {i}")
nodes, over = list(G), threading.Event()


def change():
    r = random.Random(2)
    while not over.is_set():
        time.sleep(r.choice([0, 3e-4, 3e-3]))
        for _ in range(r.randrange(40)):
            u, v = r.choice(nodes), r.choice(nodes)
            what = r.random()
            if what < 0.4:
                G.add_edge(u, v, weight=r.random())
            elif what < 0.8 and G[u]:
                G.remove_edge(u, next(iter(G[u])))
            elif what < 0.9:
                G.remove_node(u)
                G.add_node(u)
                G.add_edges_from([(u, w) for w in r.sample(nodes, 6)], weight=1)
            else:
                G.add_edges_from([(u, (w, u)) for w in range(60)], weight=2.5)
                G.remove_nodes_from([(w, u) for w in range(60)])


thread = threading.Thread(target=change)
thread.start()
end, answers = time.monotonic() + limit, 0
while time.monotonic() < end or (not answers and time.monotonic() < end + 100):
    M = None
    try:
        M = convert_from_nx(G, preserve_all_attrs=True)
        assert (M.indptr[-1], len(M.indptr)) == (len(M.indices), len(M.nodes) + 1)
        if G.is_directed():
            list(ours.strongly_connected_components(M))
        else:
            ours.maximal_independent_set(M, seed=1)
        answers += 1
        ours.minimum_spanning_tree(M) if not G.is_directed() else M.edge_values("weight")
    except RuntimeError as error:
        assert "chang" in str(error), error
over.set()
thread.join()
print(answers)
"""


@pytest.mark.parametrize(
    ("kind", "label"), [("Graph", "numbers"), ("DiGraph", "names"), ("MultiGraph", "numbers")]
)
def test_a_graph_that_another_thread_changes(tmp_path: Path, kind: str, label: str) -> None:
    limit = str(seconds(2) / 3)
    assert int(forked_script(tmp_path, CHANGING, kind, label, limit)) > 0


def test_ctrl_c_while_reading(tmp_path: Path) -> None:
    script = """
        import networkx as nx, os, signal, threading, time
        from matchwood.networkx_backend import reading
        G = nx.gnm_random_graph(20000, 100000, seed=1)
        reading.read_rows(G._adj)
        begin = time.monotonic()
        try:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            while time.monotonic() < begin + 60:
                reading.read_rows(G._adj)
        except KeyboardInterrupt:
            print("heard")
    """
    assert forked_script(tmp_path, script) == "heard"


def test_a_signal_that_waits_ends_a_kernel_and_is_handled() -> None:
    """The handler is called once, and what was being read is read to its end."""
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        G = nx.gnm_random_graph(3000, 9000, seed=1)
        signal.raise_signal(signal.SIGINT)
        rows = reading.read_rows(G._adj)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1]
    assert rows.indices.size == 18000
