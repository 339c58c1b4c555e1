"""Refinement by its definition: whole rows are measured before and after a swap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.ordering.gap import log_of
from matchwood.ordering.refine import AROUND


def refine(
    view: Any, place: Any, chosen: Any, metric: str, median: bool, limit: int | None, *,
    threads: int | None = None,
) -> tuple[Any, int, int, int]:  # fmt: skip
    n = view.n
    rows = [view.indices[view.indptr[v] : view.indptr[v + 1]].tolist() for v in range(n)]
    at = place.tolist()

    def measure(w: int) -> int:
        gaps = [b - a for a, b in pairwise(sorted(at[v] for v in rows[w]))]
        return sum(map(log_of, gaps)) if metric == "log_gap" else sum(gaps)

    def gain(u: int, v: int) -> int:
        touched = set(rows[u]) | set(rows[v])
        before = sum(map(measure, touched))
        at[u], at[v] = at[v], at[u]
        after = sum(map(measure, touched))
        at[u], at[v] = at[v], at[u]
        return before - after

    def partners(u: int) -> list[int]:
        found = set(rows[u])
        if median:
            vertex = {p: v for v, p in enumerate(at)}
            middle = sorted(at[v] for v in rows[u])[len(rows[u]) // 2]
            found |= {vertex[middle + step] for step in AROUND if 0 <= middle + step < n}
        return sorted(found - {u})

    proposed = kept = done = 0
    while limit is None or done < limit:
        done += 1
        swaps = []
        for u in chosen.tolist():
            gains = [(gain(u, v), -v) for v in partners(u)]
            best, v = max(gains, default=(0, 0))
            if best > 0:
                swaps.append((u, -v))
        proposed += len(swaps)
        for u, v in swaps:
            if gain(u, v) > 0:
                at[u], at[v] = at[v], at[u]
                kept += 1
        if not swaps:
            break
    return np.array(at, view.indptr.dtype), proposed, kept, done
