"""Weight inside communities and their volumes, one entry after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.communities.weights import Level


def totals(level: Level, labels: Any, count: int, threads: int | None = None) -> tuple[int, Any]:
    """Weight of the entries inside communities, and the volume of each community."""
    inside = 0
    volumes = np.zeros(count, np.int64)
    for v in range(level.n):
        volumes[labels[v]] += level.strength[v]
        for k in range(int(level.indptr[v]), int(level.indptr[v + 1])):
            if labels[level.indices[k]] == labels[v]:
                inside += 1 if level.data is None else int(level.data[k])
    return inside, volumes
