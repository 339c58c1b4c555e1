"""Graphs that another thread changes while the NetworkX backend reads them.

A graph goes from one of a few states to another, each time by one call of a compiled function, so
that no other state exists; every edge says in which state it is there and between which nodes.
Each answer must be that of one of the states, as the backend gives it for a copy that nobody
changes, or a RuntimeError that says that the graph was changed.  Where NetworkX's own methods
change the graph, edge by edge, each edge of an answer must say that it lies where it is.

    python changing_graphs.py SECONDS        prints answers, errors and changes of each case
"""

from __future__ import annotations

import random
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from functools import partial
from operator import call
from typing import Any

import networkx as nx

import matchwood
from matchwood.gate import networkx as reading
from matchwood.networkx_backend import convert_from_nx, convert_to_nx, register

N, STATES = 200, 3


class Own:
    """A node with methods in Python.

    No other node has its hash: a dictionary that compares them runs `__eq__`, and there the thread
    that changes the graph could lose the interpreter lock between two states.
    """

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return -5 - self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and other.number == self.number


LABELS: dict[str, Callable[[int], Any]] = {
    "numbers": int,
    "names": "node {}".format,
    "mixed": lambda i: [i, f"{i}", (i,), i + 0.5, frozenset({i}), 2**61 - 1 + i, Own(i)][i % 7],
}


def copied(node: Any) -> Any:
    """A name as another object, as when a graph comes from a file."""
    return "".join(list(node)) if isinstance(node, str) else node


def state(kind: Any, nodes: list[Any], k: int, moved: bool) -> Any:
    """The graph in state k: every node has as many neighbours as in the others."""
    r = random.Random(k)
    G = kind(state=k)
    G.add_nodes_from(nodes, state=k)
    steps = (1, 2 + 7 * k if moved else 2)
    for step in steps:
        for i in range(N):
            u, v = map(copied, (nodes[i], nodes[(i + step) % N]))
            for _ in range(2 if G.is_multigraph() and i % 3 == 0 else 1):
                G.add_edge(u, v, weight=r.random(), ends=(u, v), state=k)
    return G


def edges(G: Any) -> frozenset[Any]:
    """All edges; of a tree those that were chosen."""
    found = frozenset((d["weight"], d["state"], d["ends"]) for _, _, d in G.edges(data=True))
    for u, v, data in G.edges(data=True):
        assert {u, v} == set(data["ends"]), f"{u} and {v} have an edge of {data['ends']}"
    return found


def whole(G: Any) -> Any:
    H = convert_to_nx(convert_from_nx(G, preserve_all_attrs=True))
    return edges(H), H.graph["state"], frozenset(H.nodes(data="state"))


def located(G: Any) -> frozenset[Any]:
    """All edges, by an attribute that says where each is."""
    M = convert_from_nx(G, edge_attrs={"ends": 1})
    ends = M.edge_values("ends")
    for u, v, pair in zip(M.names(M.edges.u), M.names(M.edges.v), ends, strict=True):
        assert {u, v} == set(pair), f"{u} and {v} have an edge of {pair}"
    return frozenset(ends)


def arrays(G: Any) -> tuple[bytes, ...]:
    """The graph as our own functions read it."""
    H = matchwood.graph(G)
    return H.indptr.tobytes(), H.indices.tobytes(), H.data.tobytes()


def calls(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """By name, a call and its answer in a form that can be compared."""
    ours = {"backend": "matchwood"}

    def first(G: Any) -> Any:
        return next(iter(G))

    found = {
        "convert": whole,
        "one attribute": located,
        "our own functions": arrays,
        "pagerank": lambda G: nx.pagerank(G, **ours),
        "lengths": lambda G: nx.single_source_shortest_path_length(G, first(G), **ours),
    }
    if kind is nx.DiGraph:
        components = nx.strongly_connected_components
        return {**found, "components": lambda G: list(components(G, **ours))}
    if kind is nx.Graph:
        found["matching"] = lambda G: nx.max_weight_matching(G, **ours)
    chosen = partial(nx.maximum_spanning_edges, **ours)
    return {
        **found,
        "tree": lambda G: edges(nx.minimum_spanning_tree(G, **ours)),
        "tree edges": lambda G: {
            (frozenset(edge[:2]), *edge[2:]) for edge in chosen(G, data=False)
        },
        "louvain": lambda G: nx.community.louvain_communities(G, seed=1, **ours),
    }


def held(G: Any) -> list[dict[Any, Any]]:
    return [G._adj, G._node, G.graph]


def inner(G: Any) -> list[dict[Any, Any]]:
    """The dictionaries of attributes."""
    edges, nodes = ([d for *_, d in of(data=True)] for of in (G.edges, G.nodes))
    return [*edges, *nodes, G.graph]


def switches(G: Any, states: list[Any], how: str) -> list[Callable[[], Any]]:
    """Functions that put the graph into each state, by one call of a compiled function."""
    steps: list[list[Callable[[], Any]]]
    if how == "rows":
        steps = [
            [partial(old.update, new) for old, new in zip(held(G), held(S), strict=True)]
            for S in states
        ]
    elif how == "nodes":
        steps = [
            [step for old, new in zip(held(G), held(S), strict=True)
             for step in (old.clear, partial(old.update, new))]
            for S in states
        ]  # fmt: skip
    else:  # weights
        steps = [
            [partial(old.update, new) for old, new in zip(inner(G), inner(S), strict=True)]
            for S in states
        ]
    return [partial(lambda each: deque(map(call, each), 0), each) for each in steps]


def meddle(G: Any, nodes: list[Any], r: random.Random) -> None:
    """Some changes by NetworkX's own methods."""
    for _ in range(r.randrange(40)):
        u, v = r.choice(nodes), r.choice(nodes)
        what = r.random()
        if what < 0.4:
            G.add_edge(u, v, weight=r.random(), ends=(u, v), state=0)
        elif what < 0.8 and G[u]:
            G.remove_edge(u, next(iter(G[u])))
        elif what < 0.9:
            G.remove_node(u)
            G.add_node(u, state=0)
            for w in r.sample(nodes, 6):
                G.add_edge(u, w, weight=1, ends=(u, w), state=0)
        else:
            for w in range(60):
                G.add_edge(u, (w, u), weight=2.5, ends=(u, (w, u)), state=0)
            G.remove_nodes_from([(w, u) for w in range(60)])


def run(kind: Any, label: str, how: str, seconds: float) -> str:
    """Call while the graph changes; how often that gave answers and errors."""
    nodes = list(map(LABELS[label], range(N)))
    renamed = [[(k, v) for v in nodes] if how == "nodes" else nodes for k in range(STATES)]
    states = [state(kind, renamed[k], k, how != "weights") for k in range(STATES)]
    G = state(kind, renamed[0], 0, how != "weights")
    functions = calls(kind)
    if how == "methods":
        edgewise = {"convert", "one attribute", "tree"}
        functions = {name: functions[name] for name in functions.keys() & edgewise}
        expected: dict[str, list[Any]] = {}
    else:
        expected = {name: [f(S) for S in states] for name, f in functions.items()}
    r, over, changes = random.Random(2), threading.Event(), [0]
    if how == "methods":
        turns: list[Callable[[], Any]] = [partial(meddle, G, nodes, random.Random(3))]
    else:
        turns = switches(G, states, how)

    def change() -> None:
        mine = random.Random(4)
        while not over.is_set():
            time.sleep(mine.choice([0, 1e-5, 3e-4, 3e-3]))
            mine.choice(turns)()
            changes[0] += 1

    thread = threading.Thread(target=change)
    thread.start()
    answers = errors = 0
    end = time.monotonic() + seconds
    try:
        while (now := time.monotonic()) < end or (now < end + 100 and not (answers and changes[0])):
            name = r.choice(list(functions))
            G.__networkx_cache__.clear()
            try:
                found = functions[name](G)
            except (RuntimeError, nx.NodeNotFound, StopIteration) as error:
                # the first node may be gone when the graph is read
                if "chang" not in str(error) and how != "nodes":
                    raise
                errors += 1
                continue
            answers += 1
            assert not expected or found in expected[name], f"{name}: an answer of no state"
    finally:
        over.set()
        thread.join()
    return f"{answers} answers, {errors} errors, {changes[0]} changes"


CASES = [
    (nx.Graph, "names", "rows"),
    (nx.Graph, "numbers", "rows"),
    (nx.Graph, "mixed", "rows"),
    (nx.Graph, "names", "weights"),
    (nx.Graph, "mixed", "nodes"),
    (nx.DiGraph, "names", "rows"),
    (nx.DiGraph, "numbers", "weights"),
    (nx.MultiGraph, "mixed", "rows"),
    (nx.MultiGraph, "names", "weights"),
    (nx.Graph, "names", "methods"),
    (nx.DiGraph, "numbers", "methods"),
    (nx.MultiGraph, "numbers", "methods"),
]

if __name__ == "__main__":
    register()
    warnings.simplefilter("ignore")
    sys.setswitchinterval(2e-5)
    reading.COMPILED_FROM = 0  # compiled code reads what it can
    nx.config.backends.matchwood.approximate_matching = True
    for case in CASES:
        try:
            said = run(*case, float(sys.argv[1]) / len(CASES))
        except Exception as error:
            said = f"fault: {error!r}"
        print(case[0].__name__, *case[1:], said, flush=True)
