"""Bandwidth, profile and wavefronts by their definitions."""

from __future__ import annotations

import math
from typing import Any


def measure(
    view: Any, place: Any, which: tuple[str, ...], *, threads: int | None = None
) -> dict[str, Any]:
    n = view.n
    at = list(range(n)) if place is None else place.tolist()
    first = list(range(n))  # of each row, in the new order; the diagonal counts
    for u in range(n):
        for v in view.indices[view.indptr[u] : view.indptr[u + 1]].tolist():
            first[at[u]] = min(first[at[u]], at[v])
    fronts = [sum(first[j] <= i for j in range(i, n)) for i in range(n)]
    answers = {
        "bandwidth": max((i - first[i] for i in range(n)), default=0),
        "profile": sum(i - first[i] for i in range(n)),
        "max_wavefront": max(fronts, default=0),
        "rms_wavefront": math.sqrt(sum(x * x for x in fronts) / max(1, n)),
    }
    return {name: answers[name] for name in which}
