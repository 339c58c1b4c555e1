"""Pairs from the definition, and cycles with dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csgraph, csr_array

Array = np.ndarray[Any, Any]

ROUNDS = 6  # of proposals; those still free afterwards join a neighbour
STRONG = 0.25  # of the strongest coupling of both ends: the usual threshold of algebraic multigrid
DOMINANT = 5.0  # a_ii over the sum of |a_ij| from which a row is left to the smoother (Notay)
GOOD_ENOUGH = 0.25  # |residual| after one step of a K-cycle over that before, which ends it
# A K-cycle visits a level once if it is deeper than the second and has few rows, for itself or
# beside the first level: a second visit saved no iteration there on grids of 200^2 and 500^2
# (bench/preconditioners/multilevel.py) and 2500^2 (bench/preconditioners/multilevel_gpu.py).
TWICE_DEPTH, TWICE_ROWS, TWICE_PART = 2, 1000, 300
# Rounding errors, in units of the type's epsilon.  A vector with so little energy c.Ac, over the
# sum of a_ii c_i c_i, is constant to rounding, and no step along it is computed.
NOISE = 4.0
# What the smoother leaves out of A counts this part on its diagonal.  From 1/2 on, and where A and
# the smoother T are definite, 2 T - A is definite, too: no smoothing step enlarges an error.  Along
# paths an eigenvalue is estimated instead, and T is scaled (hierarchy.py).
DAMPING = {"jacobi": 0.5, "l1_jacobi": 1.0, "tridiagonal": 0.0, "algebraic_tridiagonal": 0.0}


def mixed(v: int, seed: int) -> int:
    """The last steps of MurmurHash3, with products of 64 bits."""
    word = (1 << 64) - 1
    h = (v ^ seed) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & word
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & word
    return (h ^ (h >> 16)) & 0xFFFFFFFF


def _couplings(
    indptr: Array, indices: Array, data: Array, diagonal: Array, seed: int
) -> tuple[list[dict[int, Any]], list[int], list[bool]]:
    """(couplings of each vertex by neighbour, its hash, whether it takes part)."""
    n = len(diagonal)
    entries = [
        [(int(indices[k]), abs(float(data[k]))) for k in range(indptr[i], indptr[i + 1])]
        for i in range(n)
    ]
    sizes = [sum(w for _, w in row) for row in entries]
    there = [diagonal[i] > 0 and diagonal[i] < DOMINANT * sizes[i] for i in range(n)]
    scale = [1 / np.sqrt(float(diagonal[i])) if there[i] else 0.0 for i in range(n)]
    couplings = [
        {j: np.float32(w * (scale[i] * scale[j])) for j, w in row if j != i and scale[i] and w}
        for i, row in enumerate(entries)
    ]
    return couplings, [mixed(v, seed) for v in range(n)], there


def labels(
    indptr: Array, indices: Array, data: Array, diagonal: Array, seed: int, join: bool
) -> tuple[Array, int]:
    """(label of each vertex, number of groups); rows that are left out have that number.

    The arrays hold the entries off the diagonal.  See `multilevel`, Notes.
    """
    n = len(diagonal)
    couplings, hashes, there = _couplings(indptr, indices, data, diagonal, seed)
    top = [max(row.values(), default=np.float32(0)) for row in couplings]
    mate = [-1] * n

    def best(i: int, allowed: Any) -> int:
        found = [
            (w, hashes[i] ^ hashes[j], -j) for j, w in couplings[i].items() if w > 0 and allowed(j)
        ]
        return -max(found)[2] if found else -1

    def both(i: int, j: int) -> bool:
        limit = np.float32(STRONG) * max(top[i], top[j])
        return bool(mate[j] < 0 and couplings[i][j] >= limit)

    for _ in range(ROUNDS):
        choice = [-1 if mate[i] >= 0 else best(i, lambda j, i=i: both(i, j)) for i in range(n)]
        for i in range(n):
            if choice[i] >= 0 and choice[choice[i]] == i:
                mate[i] = choice[i]
    root = list(range(n))
    for i in range(n):
        if mate[i] >= 0:
            root[i] = min(i, mate[i])
        elif join and there[i]:
            limit = np.float32(STRONG) * top[i]
            j = best(i, lambda j, i=i, limit=limit: mate[j] >= 0 and couplings[i][j] >= limit)
            root[i] = min(j, mate[j]) if j >= 0 else i
    numbers: dict[int, int] = {}
    for i in range(n):
        if there[i] and root[i] == i:
            numbers[i] = len(numbers)
    found = [numbers[root[i]] if there[i] else len(numbers) for i in range(n)]
    return np.array(found, indices.dtype), len(numbers)


def neighbourhoods(
    indptr: Array, indices: Array, data: Array, diagonal: Array, seed: int
) -> tuple[Array, int]:
    """Like `labels`: a root and its neighbours are an aggregate; see `multilevel`, Notes."""
    n = len(diagonal)
    couplings, hashes, there = _couplings(indptr, indices, data, diagonal, seed)
    top = [max(row.values(), default=np.float32(0)) for row in couplings]
    strong = [
        [j for j, w in row.items() if w > 0 and w >= np.float32(STRONG) * max(top[i], top[j])]
        for i, row in enumerate(couplings)
    ]
    taken, count = [-1] * n, 0
    for i in range(n):
        if there[i] and all(taken[j] < 0 for j in [i, *strong[i]]):
            for j in [i, *strong[i]]:
                taken[j] = count
            count += 1
    found = []
    for i in range(n):
        near = [
            (w, hashes[i] ^ hashes[j], -j) for j, w in couplings[i].items() if w and taken[j] >= 0
        ]
        label = taken[i] if taken[i] >= 0 or not there[i] else taken[-max(near)[2]]
        found.append(label if there[i] else count)
    return np.array(found, indices.dtype), count


def basis(
    candidates: Array, group: Array, count: int, rank: float = 1e-10
) -> tuple[Array, Array, Array]:
    """(T, the aggregate of each of its columns, C) with ``T @ C`` the candidates on aggregates.

    T is orthonormal; of the candidates of an aggregate each gives a column, unless it depends on
    those before it.
    """
    columns, of, below = [], [], []
    for g in range(count):
        rows = np.flatnonzero(group == g)
        found: list[Array] = []
        for wanted in candidates[rows].T:
            rest = wanted - sum(((v @ wanted) * v for v in found), np.zeros(rows.size))
            rest = rest - sum(((v @ rest) * v for v in found), np.zeros(rows.size))
            if np.linalg.norm(rest) > rank * np.linalg.norm(wanted):
                found.append(rest / np.linalg.norm(rest))
        for v in found:
            whole = np.zeros(len(candidates))
            whole[rows] = v
            columns.append(whole)
            of.append(g)
            below.append(v @ candidates[rows])
    n, q = candidates.shape
    return np.array(columns).reshape(-1, n).T, np.array(of, int), np.array(below).reshape(-1, q)


def pseudoinverse(whole: Array, symmetric: bool) -> Array:
    """The pseudoinverse, component by component: they may be on very different scales."""
    found = np.zeros_like(whole)
    count, part = csgraph.connected_components(csr_array(whole), directed=False)
    for k in range(count):
        rows = np.flatnonzero(part == k)
        here = np.ix_(rows, rows)
        found[here] = np.linalg.pinv(whole[here], rcond=1e-10, hermitian=symmetric)
    return found


def visited_twice(sizes: Any) -> int:
    """The last level that a K-cycle visits twice; `sizes` are the rows of the levels."""
    few = max(TWICE_ROWS, sizes[0] // TWICE_PART)
    return sum(k <= TWICE_DEPTH or rows > few for k, rows in enumerate(sizes)) - 1


def cycle(
    levels: Any, r: Array, kind: str, *, symmetric: bool, sweeps: int = 1, depth: int = 0,
    twice: int | None = None,
) -> Array:  # fmt: skip
    """The cycle applied to r; `levels` are (A, S, P) as dense matrices, the last one (A, S, None).

    S is the inverse of the smoother; on the last level that of A, or of the smoother.
    """
    A, S, P = levels[0]
    if twice is None:
        twice = visited_twice([len(level[0]) for level in levels])
    if P is None:
        return S @ r
    z = S @ r
    for _ in range(1, sweeps):
        z = z + S @ (r - A @ z)
    z = z + P @ _solved(levels[1:], P.T @ (r - A @ z), kind, symmetric, sweeps, depth + 1, twice)
    for _ in range(sweeps):
        z = z + S @ (r - A @ z)
    return z


def _solved(
    levels: Any, r: Array, kind: str, symmetric: bool, sweeps: int, depth: int, twice: int
) -> Array:
    """The solution of a coarse level: one cycle, two, or two that a Krylov method combines."""

    def once(r: Array) -> Array:
        return cycle(levels, r, kind, symmetric=symmetric, sweeps=sweeps, depth=depth, twice=twice)

    A, _, P = levels[0]
    c = once(r)
    if P is None or kind == "V" or (kind == "K" and depth > twice):
        return c
    v = A @ c
    if kind == "W":
        return c + once(r - v)
    noise = NOISE * np.finfo(r.dtype).eps

    def is_noise(x: Array, energy: float) -> bool:
        scaled = np.diag(A) * x
        size = noise * (x @ scaled) if symmetric else noise**2 * (scaled @ scaled)
        return not energy > size

    test = c if symmetric else v
    rho = test @ v
    if is_noise(c, rho):
        return c
    t = (test @ r) / rho
    rest = r - t * v
    if np.linalg.norm(rest) <= GOOD_ENOUGH * np.linalg.norm(r):
        return t * c
    d = once(rest)
    w = A @ d
    test = d if symmetric else w
    gamma, beta = test @ v, test @ w
    left = beta - gamma**2 / rho
    if is_noise(d, left):
        return t * c
    two = (test @ rest) / left
    return (t - two * gamma / rho) * c + two * d
