"""Graphs with weights for the GPU tests of matchings."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import from_edges

SEED = 7


def weighted(A: Any, kind: Any, levels: int = 1 << 20) -> Any:
    """The pattern of A with random weights: so many different ones, exact in both types."""
    rng = np.random.default_rng(SEED)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    upper = rows < A.indices
    w = rng.integers(1, levels, int(upper.sum()), endpoint=True)
    return from_edges(A.shape[0], rows[upper], A.indices[upper], w, dtype=kind)


def two_hubs(n: int) -> Any:
    """Two vertices with rows long enough for a block, which share their neighbours."""
    others = np.arange(2, n)
    ends = np.concatenate((np.zeros(n - 2, int), np.ones(n - 2, int), others[:-1]))
    return from_edges(n, ends, np.concatenate((others, others, others[1:])))


def subnormal(A: Any) -> Any:
    A.data *= np.finfo(A.dtype).smallest_subnormal
    return A
