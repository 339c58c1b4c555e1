"""The starts of a small graph on the GPU: orders from four vertices, of which the best is kept.

The rule: trial.py, which compares a few numbers of each component on the host.  Kernels: gpu.cu,
and those of `place_levels`, which makes an order, and finds where the next one starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ordering.rcm.leveled.gpu import Levels, place_levels
from matchwood.ordering.rcm.start.gpu import SOURCE, Parts, far_from
from matchwood.ordering.rcm.start.trial import tried_starts
from matchwood.primitives.patterns import not_symmetric

Array = np.ndarray[Any, Any]


def connected(view: Any, caller: str) -> tuple[Levels | None, int]:
    """The order of a connected graph from its start, and how many starts were tried.

    No levels if the graph is not connected, which the order from the first start tells.
    """
    if view.nnz == 0:
        return None, 0
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    v = place_levels(view, -1, n, caller=caller)
    if v.size < n:
        return None, 0
    k = SOURCE.kernels(I=kind)
    last = cupy.full(1, -1, kind)
    k.last_alike(n, (n, view.indptr, None, v.order, last))  # v is the first of its order
    made = {v.start: v}

    def order_from(starts: Array) -> Levels:
        start = int(starts[0])
        if start not in made:
            made[start] = _complete(place_levels(view, start, n, caller=caller), n, caller)
        return made[start]

    def bands_from(starts: Array) -> Array:
        levels, band = order_from(starts), cupy.zeros(1, kind)
        k.widest_band(n, (n, levels.order, levels.owner, None, None, band))
        return np.asarray(band.get())

    starts, tried = tried_starts(
        np.array([v.start]),
        last.get(),
        lambda starts: np.array([order_from(starts).far]),
        bands_from,
    )
    return order_from(starts), int(tried[0])


def several(graph: Any, parts: Parts, closed: Array, caller: str) -> None:
    """Find the starts of all components of a small graph but the `closed` ones."""
    cupy = engines.cupy()
    view = graph.undirected_pattern()
    n, kind, label, count = view.n, view.indptr.dtype, parts.label, parts.count
    inner = view.indptr[parts.start + 1] > view.indptr[parts.start]
    opened = inner.get()
    total = n - count + int(opened.sum())  # vertices that have neighbours
    opened[closed] = False
    if not opened.any():
        return
    k = SOURCE.kernels(I=kind)
    last = cupy.full(count, -1, kind)
    k.last_alike(n, (n, view.indptr, label, parts.start, last))
    place = gpu.empty(n, kind, caller)

    def bands_from(starts: Array) -> Array:
        first = cupy.asarray(starts.astype(kind))[inner]
        levels = _complete(place_levels(view, first, total, caller=caller), total, caller)
        order = levels.order[:total]  # level by level, those of all components
        place[order[cupy.argsort(label[order], kind="stable")]] = cupy.arange(total, dtype=kind)
        band = cupy.zeros(count, kind)
        k.widest_band(total, (total, order, levels.owner, place, label, band))
        return np.asarray(band.get())

    given = parts.start.get()
    starts, tried = tried_starts(
        given, last.get(), lambda starts: far_from(graph, parts, starts), bands_from
    )
    parts.start = cupy.asarray(np.where(opened, starts, given).astype(kind))
    parts.searches += int(tried[opened].sum())


def _complete(levels: Levels, total: int, caller: str) -> Levels:
    if levels.size < total:  # the rest of the array holds anything
        raise not_symmetric(caller)
    return levels
