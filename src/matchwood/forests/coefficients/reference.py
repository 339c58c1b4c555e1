"""The values of a matrix along the paths, entry by entry.  Slow on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np


def coefficients(
    view: Any, table: Any, place: Any, position: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """See matchwood.forests.tridiagonal_of."""
    dl, d, du = (np.zeros(view.n, view.data.dtype) for _ in range(3))
    for v in range(view.n):
        near = {int(w): int(position[w]) - int(position[v]) for w in table[v] if w >= 0}
        for k in range(int(view.indptr[v]), int(view.indptr[v + 1])):
            j, value = int(view.indices[k]), view.data[k]
            if j == v:
                d[place[v]] = value
            elif near.get(j) == -1:
                dl[place[v]] = value
            elif near.get(j) == 1:
                du[place[v]] = value
    return dl, d, du
