"""Roots by their definition: go up from every vertex."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.traversal.pointer_jumping import has_cycle


def roots(parent: Any, *, threads: int | None = None) -> Any:
    """See matchwood.traversal.pointer_jumping.forest_roots."""
    n = parent.size
    found = np.empty(n, parent.dtype)
    for v in range(n):
        at = v
        for _ in range(n + 1):
            if parent[at] in (-1, at):
                break
            at = int(parent[at])
        else:
            raise has_cycle("forest_roots", v)
        found[v] = at
    return found
