"""Gaps and arrangements by their definitions.  Logarithms are integers: __init__.py."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from matchwood.ordering.gap import log_of


def measure(
    view: Any, place: Any, which: tuple[str, ...], *, threads: int | None = None
) -> dict[str, int]:
    at = list(range(view.n)) if place is None else place.tolist()
    found = dict.fromkeys(("linear_arrangement", "log_arrangement", "linear_gap", "log_gap"), 0)
    for u in range(view.n):
        row = view.indices[view.indptr[u] : view.indptr[u + 1]].tolist()
        for v in row:
            if u < v:
                found["linear_arrangement"] += abs(at[u] - at[v])
                found["log_arrangement"] += log_of(abs(at[u] - at[v]))
        for before, after in pairwise(sorted(at[v] for v in row)):
            found["linear_gap"] += after - before
            found["log_gap"] += log_of(after - before)
    return {name: found[name] for name in which}
