"""The zoo: small graphs on which code goes wrong, every one made from a fixed seed.

`ZOO` maps a name to a function that makes a fresh SciPy `csr_array`, so a test may spoil it:

    @pytest.mark.parametrize("name", ZOO)
    def test_something(name):
        A = ZOO[name]()

Arrays are not canonical unless said so: duplicates are not summed, rows may be unsorted, zeros
may be stored, a matrix may be unsymmetric.  `UNDIRECTED` names those that are symmetric in
pattern and values.  At most a few thousand entries each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray[Any, Any]
SEED = 20240607


def from_edges(
    n: int, u: Any, v: Any, w: Any = 1.0, *, symmetric: bool = True, dtype: Any = np.float64
) -> sp.csr_array:
    """CSR with sorted rows and no duplicates (the last of several equal edges counts)."""
    u, v = np.asarray(u, np.int64).ravel(), np.asarray(v, np.int64).ravel()
    w = np.broadcast_to(np.asarray(w, dtype), u.shape)
    if symmetric:
        u, v = np.minimum(u, v), np.maximum(u, v)
    _, last = np.unique((u * n + v)[::-1], return_index=True)
    rows, cols, data = (x[::-1][last] for x in (u, v, w))
    if symmetric:
        back = rows != cols
        rows, cols = np.append(rows, cols[back]), np.append(cols, rows[back])
        order = np.lexsort((cols, rows))
        rows, cols, data = rows[order], cols[order], np.append(data, data[back])[order]
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    return sp.csr_array((data, cols.astype(np.int32), indptr), shape=(n, n))


def raw_csr(
    n: int, u: Any, v: Any, w: Any, *, index_dtype: Any = np.int32, shuffle: bool = False
) -> sp.csr_array:
    """CSR with the entries just as given: duplicates stay, and rows are unsorted if asked."""
    u, v, w = np.asarray(u, np.int64), np.asarray(v, np.int64), np.asarray(w)
    if shuffle:
        order = np.random.default_rng(SEED).permutation(u.size)
        u, v, w = u[order], v[order], w[order]
    order = np.argsort(u, kind="stable")
    indptr = np.zeros(n + 1, index_dtype)
    np.cumsum(np.bincount(u, minlength=n), out=indptr[1:])
    return sp.csr_array((w[order], v[order].astype(index_dtype), indptr), shape=(n, n))


def path(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n - 1), np.arange(1, n), 1.0 + np.arange(n - 1) % 7)


def cycle(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n), (np.arange(n) + 1) % n)


def star(n: int, centre: int = 0) -> sp.csr_array:
    leaves = np.delete(np.arange(n), centre)
    return from_edges(n, np.full(n - 1, centre), leaves, 1.0 + leaves)


def complete(n: int) -> sp.csr_array:
    u, v = np.triu_indices(n, 1)
    return from_edges(n, u, v, np.random.default_rng(SEED).random(u.size))


def bipartite(left: int, right: int) -> sp.csr_array:
    """Complete bipartite."""
    u, v = np.divmod(np.arange(left * right), right)
    return from_edges(left + right, u, left + v)


def grid(rows: int, cols: int, w: Any = None) -> sp.csr_array:
    """5-point grid without the diagonal."""
    at = np.arange(rows * cols).reshape(rows, cols)
    u = np.concatenate((at[:, :-1].ravel(), at[:-1].ravel()))
    v = np.concatenate((at[:, 1:].ravel(), at[1:].ravel()))
    weights = np.random.default_rng(SEED).random(u.size) if w is None else w
    return from_edges(rows * cols, u, v, weights)


def binary_tree(n: int) -> sp.csr_array:
    child = np.arange(1, n)
    return from_edges(n, (child - 1) // 2, child)


def random_graph(n: int, m: int, *, symmetric: bool = True, seed: int = SEED) -> sp.csr_array:
    """About m random edges, no self loops."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    keep = u != v
    return from_edges(n, u[keep], v[keep], rng.random(int(keep.sum())), symmetric=symmetric)


def rmat(scale: int, edge_factor: int, *, symmetric: bool = True, seed: int = SEED) -> sp.csr_array:
    """Graph500's skewed random graph: a few vertices of high degree, many without an edge."""
    rng = np.random.default_rng(seed)
    m = edge_factor << scale
    u, v = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for _ in range(scale):
        quarter = np.searchsorted([0.57, 0.76, 0.95], rng.random(m), side="right")
        u, v = 2 * u + quarter // 2, 2 * v + quarter % 2
    return from_edges(1 << scale, u, v, rng.random(m), symmetric=symmetric)


def disjoint(parts: Sequence[sp.csr_array]) -> sp.csr_array:
    """Several graphs side by side, as one."""
    return sp.csr_array(sp.block_diag(parts, format="csr"))


def shuffled(A: sp.csr_array, *, isolated: int = 0, seed: int = SEED) -> sp.csr_array:
    """A copy with the vertices renumbered at random, and some isolated ones mixed in."""
    n = A.shape[0] + isolated
    name = np.random.default_rng(seed).permutation(n)
    coo = A.tocoo()
    return from_edges(n, name[coo.row], name[coo.col], coo.data, symmetric=False)


def with_dtypes(A: sp.csr_array, index_dtype: Any, data_dtype: Any) -> sp.csr_array:
    return sp.csr_array(
        (A.data.astype(data_dtype), A.indices.astype(index_dtype), A.indptr.astype(index_dtype)),
        shape=A.shape,
    )


def _self_loops() -> sp.csr_array:
    A = random_graph(60, 120).tocoo()
    loops = np.arange(0, 60, 3)
    return from_edges(
        60, np.append(A.row, loops), np.append(A.col, loops), np.append(A.data, loops + 1.0)
    )


def _duplicates(*, shuffle: bool = False) -> sp.csr_array:
    """Every edge two or three times, in both directions, with different values."""
    A = random_graph(80, 200).tocoo()
    copies = np.where((A.row + A.col) % 2 == 0, 2, 3)
    u, v = np.repeat(A.row, copies), np.repeat(A.col, copies)
    return raw_csr(80, u, v, 1.0 + (u + v) % 5, shuffle=shuffle)


def _explicit_zeros(*, every: int = 3) -> sp.csr_array:
    A = random_graph(70, 150).tocoo()
    data = np.where((A.row + A.col) % every == 0, 0.0, A.data)
    return raw_csr(70, A.row, A.col, data)


def _cancelling_duplicates() -> sp.csr_array:
    """Two stored entries whose sum is 0: still an edge for patterns, as a stored zero is."""
    return raw_csr(4, [0, 0, 1, 1, 1, 2], [1, 1, 0, 0, 2, 1], [2.0, -2.0, 2.0, -2.0, 1.0, 1.0])


def _skew() -> sp.csr_array:
    """A + A.T is zero everywhere: whoever symmetrises by adding sees an empty graph."""
    A = sp.csr_array(sp.triu(grid(7, 9), 1))
    return sp.csr_array(A - A.T)


def _upper() -> sp.csr_array:
    return sp.csr_array(sp.triu(random_graph(90, 200), 1))


def _mixed_signs() -> sp.csr_array:
    A = random_graph(60, 200)
    coo = A.tocoo()
    sign = np.where((coo.row + coo.col) % 2 == 0, 1.0, -1.0)
    return from_edges(60, coo.row, coo.col, sign * coo.data, symmetric=False)


def _components() -> sp.csr_array:
    """Thirteen components of many sizes, two of them single vertices."""
    sizes = (1, 2, 3, 4, 5, 8, 13, 21, 34, 55, 89)
    return shuffled(disjoint([path(n) for n in sizes] + [complete(7), cycle(6)]), isolated=2)


ZOO: dict[str, Callable[[], sp.csr_array]] = {
    # the small ones
    "0x0": lambda: sp.csr_array((0, 0)),
    "1x1": lambda: sp.csr_array((1, 1)),
    "1x1 loop": lambda: from_edges(1, [0], [0], symmetric=False),
    "one edge": lambda: from_edges(2, [0], [1]),
    "no edges": lambda: sp.csr_array((5, 5)),
    "triangle": lambda: complete(3),
    # shapes
    "path": lambda: path(40),
    "long path": lambda: path(1000),
    "cycle": lambda: cycle(31),
    "star": lambda: star(50),
    "star, last is centre": lambda: star(50, centre=49),
    "complete": lambda: complete(24),
    "bipartite": lambda: bipartite(5, 60),
    "tree": lambda: binary_tree(127),
    "grid": lambda: grid(16, 23),
    "thin grid": lambda: grid(2, 200),
    # several components
    "disconnected": lambda: disjoint([grid(5, 6), star(9), path(2), complete(5)]),
    "components": _components,
    "shuffled path": lambda: shuffled(path(300), isolated=10),
    "shuffled grid": lambda: shuffled(grid(12, 13), isolated=10),
    "shuffled grid 2": lambda: shuffled(grid(12, 13), isolated=10, seed=SEED + 1),
    "shuffled tree": lambda: shuffled(binary_tree(200), isolated=10),
    "first and last isolated": lambda: raw_csr(6, [1, 2, 3, 4], [2, 1, 4, 3], np.ones(4)),
    # how the matrix is stored
    "self loops": _self_loops,
    "only self loops": lambda: sp.csr_array(sp.eye_array(6, format="csr")),
    "duplicates": _duplicates,
    "duplicates, unsorted": lambda: _duplicates(shuffle=True),
    "cancelling duplicates": _cancelling_duplicates,
    "unsorted rows": lambda: raw_csr(
        60, *random_graph(60, 200).tocoo().coords, random_graph(60, 200).data, shuffle=True
    ),
    "explicit zeros": _explicit_zeros,
    "only zeros": lambda: from_edges(5, [0, 1, 3], [1, 2, 4], 0.0),
    "float32": lambda: with_dtypes(random_graph(80, 200), np.int32, np.float32),
    "int64 indices": lambda: with_dtypes(random_graph(80, 200), np.int64, np.float64),
    "int64 indices, float32": lambda: with_dtypes(grid(9, 9), np.int64, np.float32),
    "integer values": lambda: from_edges(30, *random_graph(30, 60).tocoo().coords, 3, dtype=int),
    "boolean values": lambda: with_dtypes(random_graph(40, 90), np.int32, np.bool_),
    # weights
    "equal weights": lambda: grid(11, 11, 1.0),
    "few weights": lambda: grid(11, 11, 1.0 + np.arange(220) % 3),
    "mixed signs": _mixed_signs,
    "skew-symmetric": _skew,
    # unsymmetric
    "directed": lambda: random_graph(100, 250, symmetric=False),
    "directed path": lambda: from_edges(30, np.arange(29), np.arange(1, 30), symmetric=False),
    "directed cycle": lambda: from_edges(9, np.arange(9), (np.arange(9) + 1) % 9, symmetric=False),
    "upper triangle": _upper,
    "both ways, other values": lambda: raw_csr(3, [0, 1, 1, 2], [1, 0, 2, 1], [1.0, 5.0, 2.0, 9.0]),
    # large enough that every member of a team has something to do
    "random": lambda: random_graph(600, 2000),
    "rmat": lambda: rmat(9, 4),
    "rmat, directed": lambda: rmat(9, 4, symmetric=False),
}


def dense_pattern(A: sp.csr_array) -> Array:
    """Boolean matrix of the stored entries, zeros included."""
    dense = np.zeros(A.shape, bool)
    dense[np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices] = True
    return dense


def dense_values(A: sp.csr_array) -> Array:
    """Dense matrix with duplicates summed, in float64."""
    dense = np.zeros(A.shape)
    at = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices
    np.add.at(dense, at, A.data.astype(np.float64))
    return dense


def _is_undirected(A: sp.csr_array) -> bool:
    pattern, values = dense_pattern(A), dense_values(A)
    return bool((pattern == pattern.T).all() and (values == values.T).all())


UNDIRECTED = tuple(name for name, make in ZOO.items() if _is_undirected(make()))
"""Names of the graphs that are symmetric in pattern and values."""
