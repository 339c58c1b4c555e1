"""Kernels on patterns that are said to be symmetric and are not.

Symmetry is judged by hashed sums.  Whoever makes them agree for an unsymmetric pattern must get
a wrong answer or an error for it, and nothing else: every kernel stays inside its arrays and ends.
Here the judgement is replaced by "yes", and all functions that rely on it run, with memory in
which a step outside an array is fatal.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import matchwood as mw
from adversarial.children import Attack, make, unexpected
from adversarial.clock import attempts
from adversarial.guard_pages import everywhere, guarded
from matchwood.gate.graph import Graph
from matchwood.ordering.rcm import cpu, reference
from matchwood.ordering.rcm.cpu.batch_table import Tuning


def lie() -> None:
    """From now on every pattern and all values count as symmetric."""
    honest_symmetry, honest_facts = Graph.symmetry, Graph.inspected
    Graph.symmetry = lambda self: honest_symmetry(self)._replace(symmetric=True)
    Graph.inspected = lambda self, view: honest_facts(self, view)._replace(symmetric=True)


@contextlib.contextmanager
def hard_ways(k: int) -> Iterator[None]:
    """Have small graphs ordered as large ones are, every second or third time."""
    small, large, usual = cpu.SMALL_ARCS, reference.SMALL_GRAPH_EDGES, Tuning.of
    if k % 3:
        cpu.SMALL_ARCS = 0
        Tuning.of = staticmethod(lambda workers: TUNINGS[k % len(TUNINGS)])
    if k % 2:
        reference.SMALL_GRAPH_EDGES = -1
    try:
        yield
    finally:
        cpu.SMALL_ARCS, reference.SMALL_GRAPH_EDGES, Tuning.of = small, large, usual


TUNINGS = (
    Tuning(least=130, largest=130, enough=1, room=40, slots=2),
    Tuning(least=256, largest=256, enough=300, room=16, slots=3),
    Tuning(least=512, largest=2048, enough=2000, room=4096, slots=4, piece=20),
)


def arcs(kind: str, n: int, rng: np.random.Generator) -> Any:
    """(indptr, indices, data) of a directed graph."""
    if kind == "upwards":
        ends = rng.integers(0, n, (3 * n, 2))
        ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    elif kind == "to one":
        ends = np.stack([np.arange(1, n), np.zeros(n - 1, np.int64)], 1)
    elif kind == "from one":
        ends = np.stack([np.zeros(n - 1, np.int64), np.arange(1, n)], 1)
    elif kind == "chain":
        ends = np.stack([np.arange(n - 1), np.arange(1, n)], 1)
    elif kind == "chain back":
        ends = np.stack([np.arange(1, n), np.arange(n - 1)], 1)
    elif kind == "ring":
        ends = np.stack([np.arange(n), np.roll(np.arange(n), -1)], 1)
    elif kind == "tree":
        ends = np.stack([np.arange(1, n) // 2, np.arange(1, n)], 1)
    elif kind == "tree back":
        ends = np.stack([np.arange(1, n), np.arange(1, n) // 2], 1)
    else:  # random arcs, a few hubs
        ends = rng.integers(0, n, (4 * n, 2))
        ends[: n // 2, 0] //= 16
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    indptr = np.searchsorted(ends[:, 0], np.arange(n + 1)).astype(np.int32)
    weights = rng.choice([1.0, 2.0, 3.5], ends.shape[0]) if n % 2 else rng.random(ends.shape[0])
    return indptr, ends[:, 1].astype(np.int32), weights


KINDS = ("upwards", "to one", "from one", "chain", "chain back", "ring", "tree", "tree back",
         "random")  # fmt: skip


def _by(function: Callable[..., Any], method: str, G: Graph, threads: int) -> Any:
    return function(G, method=method, threads=threads)


def functions() -> dict[str, Callable[..., Any]]:
    """What runs on a Graph `G` with some number of threads."""
    made: dict[str, Callable[..., Any]] = {
        "bfs": lambda G, threads: mw.bfs(G, [0], threads=threads),
        "bfs both ways": lambda G, threads: mw.bfs(G, [0], directed=False, threads=threads),
        "condensation": lambda G, threads: mw.condensation(G, threads=threads),
        "matching_bound": lambda G, threads: mw.matching_bound(G, threads=threads),
        "coarsening_hierarchy": lambda G, threads: mw.coarsening_hierarchy(
            G, until=2, threads=threads
        ),
        "tridiagonal_of": lambda G, threads: mw.tridiagonal_of(G, mw.linear_forest(G)),
        "coverage_of_order": lambda G, threads: mw.coverage_of_order(G),
        "order_measures": lambda G, threads: mw.order_measures(G, threads=threads),
        "gaps": lambda G, threads: mw.gaps(G, threads=threads),
        "rabbit_order": lambda G, threads: mw.rabbit_order(G, threads=threads),
        "shingle_order": lambda G, threads: mw.shingle_order(G, threads=threads),
        "degree_order": lambda G, threads: mw.degree_order(G, threads=threads),
        "refine_order": lambda G, threads: mw.refine_order(G, fraction=1.0, threads=threads),
        "refine_order, median": lambda G, threads: mw.refine_order(
            G, fraction=1.0, partners="median", metric="linear_gap", threads=threads
        ),
        "fill": lambda G, threads: mw.fill(G, np.arange(G.n)[::-1]),
        "minimum_degree": lambda G, threads: mw.minimum_degree(G, stages=np.arange(G.n) % 3),
        "nested_dissection": lambda G, threads: mw.nested_dissection(G, leaf=9, threads=threads),
        "vertex_separator": lambda G, threads: mw.vertex_separator(G, threads=threads),
        "separator, labels": lambda G, threads: mw.vertex_separator(
            G, labels=np.arange(G.n) % 2, threads=threads
        ),
        "minimum_vertex_cover": lambda G, threads: mw.minimum_vertex_cover(G, threads=threads),
        "pagerank": lambda G, threads: mw.pagerank(G, threads=threads),
        "permute": lambda G, threads: mw.permute(G, np.arange(G.n)[::-1], threads=threads),
        "pseudo_peripheral_vertex": lambda G, threads: mw.pseudo_peripheral_vertex(
            G, threads=threads
        ),
        "rcm_ordering, started": lambda G, threads: mw.rcm_ordering(
            G, start=[G.n - 1], threads=threads
        ),
        "block preconditioner": lambda G, threads: mw.preconditioners.algebraic_block_tridiagonal(
            G, allow_singular=True, threads=threads
        ),
    }
    methods: dict[Callable[..., Any], tuple[str, ...]] = {
        mw.connected_components: ("afforest", "fastsv", "bfs"),
        mw.strongly_connected_components: ("auto", "tarjan", "forward_backward", "multistep"),
        mw.maximal_independent_set: ("luby", "lexicographic", "luby_sampling"),
        mw.minimum_spanning_forest: SPANNING,
        mw.weighted_matching: WEIGHTED,
        mw.maximal_matching: MAXIMAL,
        mw.maximum_matching: ("auto", "hopcroft_karp"),
        mw.linear_forest: FORESTS,
        mw.reverse_cuthill_mckee: ORDERING,
    }
    for function, names in methods.items():
        for name in names:
            made[f"{function.__name__}, {name}"] = functools.partial(_by, function, name)
    for n in (1, 2, 3, 5):
        for method in FACTORS:
            made[f"factor, {n}, {method}"] = lambda G, threads, n=n, method=method: (
                mw.degree_factor(G, n, method=method, M=None, threads=threads)
            )
    return made


SPANNING = ("boruvka", "awerbuch_shiloach", "kruskal", "filter_kruskal")
WEIGHTED = ("greedy", "dominant", "suitor", "augmented", "streaming", "random_weighted", "exact")
MAXIMAL = ("proposal", "serial")
FORESTS = ("splitters", "ranges", "doubling", "walk")
ORDERING = ("serial", "leveled", "unordered", "batch_basic", "batch")
FACTORS = ("parallel", "greedy")


def attack(function: Callable[..., Any], parts: Any, threads: int, k: int) -> str:
    at_end = k % 5 > 1
    try:
        with everywhere(at_end), hard_ways(k):
            function(mw.graph(tuple(guarded(part, at_end) for part in parts)), threads)
    except Exception as error:
        return unexpected(error)
    return ""


def attacks(seconds: float, only: str = "") -> Iterator[Attack]:
    lie()
    made = functions()
    for k in attempts(seconds):
        rng = np.random.default_rng(k)
        kind = KINDS[k % len(KINDS)]
        n = int((2, 5, 13, 64, 129, 700)[k // len(KINDS) % 6] + rng.integers(0, 3))
        parts = arcs(kind, n, rng)
        for name, function in made.items():
            if only not in name:
                continue
            threads = (1, 3, 2)[k // 2 % 3]
            what = f"{name} | {kind}, {n} vertices, {threads} threads, seed {k}"
            yield what, functools.partial(attack, function, parts, threads, k)


if __name__ == "__main__":
    make(attacks(float(sys.argv[2]), *sys.argv[3:]), int(sys.argv[1]))
