"""Matrices whose [0,2]-factor is known: paths and cycles, in shuffled order."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def paths_and_cycles(
    paths: list[int], cycles: list[int], *, seed: int = 0, shuffled: bool = True, ties: bool = False
) -> sp.csr_array:
    """A symmetric matrix that is paths and cycles of these lengths; `ties`: few weights."""
    rng = np.random.default_rng(seed)
    n = sum(paths) + sum(cycles)
    name = rng.permutation(n) if shuffled else np.arange(n)
    parts, start = [np.empty((0, 2), np.int64)], 0
    for length in (*paths, *(-length for length in cycles)):
        inside = np.arange(start, start + abs(length))
        pairs = np.stack((inside, np.roll(inside, -1)), axis=1)
        parts.append(pairs if length < 0 else pairs[:-1])
        start += abs(length)
    u, v = name[np.concatenate(parts)].T
    w = rng.integers(1, 4, u.size).astype(float) if ties else rng.random(u.size) + 0.5
    A = sp.coo_array((w, (u, v)), shape=(n, n))
    return sp.csr_array(A + A.T)
