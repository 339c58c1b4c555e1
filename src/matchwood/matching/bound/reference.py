"""The two starts and the sweeps, with NumPy over all edges."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def improve(
    view: Any, mate: Array, sweeps: int, from_matching: bool, threads: int | None = None
) -> Array:
    """A dual solution, from one of the starts."""
    n = view.n
    u, v = np.repeat(np.arange(n), np.diff(view.indptr)), view.indices
    w = view.data.astype(np.float64)

    def largest(values: Array) -> Array:
        out = np.zeros(n)
        np.maximum.at(out, u, values)
        return out

    own = largest(np.where(mate[u] == v, w, 0.0))
    if from_matching:
        y = own + largest(w - own[u] - own[v]) / 2
    else:
        y = largest(w) / 2
    for _ in range(sweeps):
        need = largest(np.where(mate[u] == v, 0.0, w - y[v]))
        with_mate = need[mate]  # for free vertices any number; it is not used
        new = np.where(mate >= 0, need + np.maximum(0.0, own - need - with_mate) / 2, need)
        y = (y + new) / 2
    return y
