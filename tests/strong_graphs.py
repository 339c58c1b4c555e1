"""Directed graphs that are hard for one way or another to find strong components."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from graphs import disjoint, from_edges, grid, random_graph, rmat, shuffled


def directed_path(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n - 1), np.arange(1, n), symmetric=False)


def directed_cycle(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n), (np.arange(n) + 1) % n, symmetric=False)


def chain_of_cycles(cycles: int, each: int, *, backwards: bool = False) -> sp.csr_array:
    """Cycles of `each` vertices, one leading to the next, in ascending order or not."""
    v = np.arange(cycles * each)
    turn = v // each * each + (v + 1) % each
    first = np.arange(0, cycles * each, each)
    u, w = (first[1:], first[:-1]) if backwards else (first[:-1], first[1:])
    return from_edges(v.size, np.append(v, u), np.append(turn, w), symmetric=False)


def oriented_grid(rows: int, cols: int) -> sp.csr_array:
    return sp.csr_array(sp.triu(grid(rows, cols), 1))


def big_and_small(scale: int = 11) -> sp.csr_array:
    """A giant component, many of a few vertices around it, and long ways in and out."""
    parts = [rmat(scale, 8, symmetric=False), chain_of_cycles(200, 5), directed_path(1500)]
    A = disjoint(parts).tocoo()
    n = A.shape[0]
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, n, 300), rng.integers(0, n, 300)
    joined = from_edges(n, np.append(A.row, u), np.append(A.col, v), symmetric=False)
    return shuffled(joined, isolated=40)


HARD = {
    "path": lambda: directed_path(5000),
    "path, shuffled": lambda: shuffled(directed_path(5000)),
    "cycle": lambda: directed_cycle(5000),
    "cycle, shuffled": lambda: shuffled(directed_cycle(5000)),
    "chain of cycles": lambda: chain_of_cycles(1000, 4),
    "chain of cycles, backwards": lambda: chain_of_cycles(1000, 4, backwards=True),
    "chain of cycles, shuffled": lambda: shuffled(chain_of_cycles(1000, 4)),
    "oriented grid": lambda: oriented_grid(60, 60),
    "rmat": lambda: rmat(12, 8, symmetric=False),
    "sparse": lambda: random_graph(6000, 7000, symmetric=False),
    "dense": lambda: random_graph(300, 40_000, symmetric=False),
    "big and small": big_and_small,
}
