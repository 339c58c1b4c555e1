"""The starts of a small graph, all components at once, in NumPy.

The rule is `_tried_start` in reference.py.  The callers, the check of an order and the
GPU, pass functions that give levels and orders from given starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FromStarts = Callable[[Array], Array]
"""Something about every vertex, from the starts of all components."""


def tried_starts(
    view: Any, labels: Array, levels_from: FromStarts, order_from: FromStarts
) -> tuple[Array, Array]:
    """The start of every component, and how many were tried.

    `view` and `labels` are on the host.  `levels_from` gives the level of each vertex, and
    `order_from` the order of Cuthill and McKee, in which components follow their labels.
    """
    degree = np.diff(view.indptr).astype(np.int64)
    v = least(labels, degree, np.arange(view.n))
    x = _far_from(v, labels, degree, levels_from)
    y = _far_from(x, labels, degree, levels_from)
    candidates = [v, x, y, _last_of_least(labels, degree, v)]
    start, band = v, _bands(view, labels, order_from(v))
    tried = np.where(degree[v] > 0, 1, 0)
    for k, other in enumerate(candidates[1:], 1):
        fresh = np.all([other != earlier for earlier in candidates[:k]], axis=0)
        if fresh.any():
            tried += fresh
            new_band = _bands(view, labels, order_from(other))
            start = np.where(new_band < band, other, start)
            band = np.minimum(band, new_band)
    return start, tried


def least(labels: Array, degree: Array, vertices: Array) -> Array:
    """Of each component's vertices that with the least (degree, vertex)."""
    ordered = vertices[np.lexsort((vertices, degree[vertices], labels[vertices]))]
    return ordered[np.flatnonzero(np.diff(labels[ordered], prepend=-1))]


def _last_of_least(labels: Array, degree: Array, v: Array) -> Array:
    """Of each component the greatest vertex that has the degree of v."""
    last = v.copy()
    alike = np.flatnonzero(degree == degree[v][labels])
    np.maximum.at(last, labels[alike], alike)
    return last


def _far_from(v: Array, labels: Array, degree: Array, levels_from: FromStarts) -> Array:
    """Of each component the vertex of least (degree, vertex) in the last level from v."""
    level = levels_from(v).astype(np.int64)
    depth = np.zeros(v.size, np.int64)
    np.maximum.at(depth, labels, level)
    return least(labels, degree, np.flatnonzero(level == depth[labels]))


def _bands(view: Any, labels: Array, order: Array) -> Array:
    """The bandwidth of each component."""
    place = np.empty(view.n, np.int64)
    place[order] = np.arange(view.n)
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    bands = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    np.maximum.at(bands, labels[row], np.abs(place[row] - place[view.indices]))
    return bands
