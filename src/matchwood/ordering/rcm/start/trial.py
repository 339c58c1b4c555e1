"""The starts of a small graph, all components at once.

The rule is `_tried_start` in reference.py.  The callers, the check of an order and the
GPU, pass functions that tell what a search or an order from given starts comes to.  The check
makes these of levels and orders by what else is here, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FromStarts = Callable[[Array], Array]
"""Something about every component, from the starts of all of them."""


def tried_starts(
    v: Array, last: Array, far_from: FromStarts, bands_from: FromStarts
) -> tuple[Array, Array]:
    """The start of every component, and how many were tried.

    `v` and `last` are the first and the last vertex of least degree.  `far_from` gives the vertex
    of least (degree, vertex) in the last level, and `bands_from` the bandwidth of the order.
    """
    x = far_from(v)
    candidates = [v, x, far_from(x), last]
    start, band = v, bands_from(v)
    tried = np.ones(v.size, np.int64)
    for k, other in enumerate(candidates[1:], 1):
        fresh = np.all([other != earlier for earlier in candidates[:k]], axis=0)
        if fresh.any():
            tried += fresh
            new_band = bands_from(other)
            start = np.where(new_band < band, other, start)
            band = np.minimum(band, new_band)
    return start, tried


def least(labels: Array, degree: Array, vertices: Array) -> Array:
    """Of each component's vertices that with the least (degree, vertex)."""
    ordered = vertices[np.lexsort((vertices, degree[vertices], labels[vertices]))]
    return ordered[np.flatnonzero(np.diff(labels[ordered], prepend=-1))]


def last_of_least(labels: Array, degree: Array, v: Array) -> Array:
    """Of each component the greatest vertex that has the degree of v."""
    last = v.copy()
    alike = np.flatnonzero(degree == degree[v][labels])
    np.maximum.at(last, labels[alike], alike)
    return last


def far(labels: Array, degree: Array, level: Array) -> Array:
    """Of each component the vertex of least (degree, vertex) in its last level."""
    depth = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    np.maximum.at(depth, labels, level)
    return least(labels, degree, np.flatnonzero(level == depth[labels]))


def bands(view: Any, labels: Array, order: Array) -> Array:
    """The bandwidth of each component, in an order that has one after the other."""
    place = np.empty(view.n, np.int64)
    place[order] = np.arange(view.n)
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    found = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    np.maximum.at(found, labels[row], np.abs(place[row] - place[view.indices]))
    return found
