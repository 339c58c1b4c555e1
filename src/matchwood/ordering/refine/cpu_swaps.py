"""A swap of two vertices: what it gains, and doing it.  The places of each row are kept sorted.

Swapping u and v, at the places a and b, replaces a by b in the rows of u's neighbours and b by a in
those of v's.  A row that holds both stays as it is.  A row is searched for both places; then the
places beside them say what changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device
from matchwood.engines.cpu.hints import prefetch
from matchwood.ordering.cpu_logs import log_of

Array = np.ndarray[Any, Any]

ONE = np.uint64(1)
SCAN = np.uint64(12)  # places of a row up to which it is searched from the start, not by bisection
HUB = np.uint64(64)  # neighbours; of more, many may have no other neighbour
AROUND = (-2, -1, 1, 2)  # as in plan.py


class Order(NamedTuple):
    """A graph and an order of it."""

    indptr: Any
    indices: Any
    place: Any
    near: Any  # places of the neighbours, row by row, ascending
    table: Any  # of logarithms; empty where gaps are added up as they are


@device
def _first_from(near: Array, low: Any, high: Any, p: Any) -> Any:
    """The first index in low..high whose place is p or more, or high."""
    while high - low > SCAN:
        middle = (low + high) >> ONE
        if near[middle] < p:
            low = middle + ONE
        else:
            high = middle
    while low < high and near[low] < p:
        low += ONE
    return low


@device
def _bend(left: Any, middle: Any, right: Any, has_left: bool, has_right: bool, logs: Array) -> Any:
    """What a place between two others adds to the metric of a row."""
    total = np.int64(0)
    if has_left:
        total += log_of(np.int64(middle) - np.int64(left), logs)
    if has_right:
        total += log_of(np.int64(right) - np.int64(middle), logs)
    if has_left and has_right:
        total -= log_of(np.int64(right) - np.int64(left), logs)
    return total


@device
def _log_change(near: Array, begin: Any, end: Any, a: Any, b: Any, logs: Array) -> Any:
    """By how much the sum of logarithms falls when b takes the place of a in a row."""
    low, high = min(a, b), max(a, b)
    i = _first_from(near, begin, end, low)
    j = _first_from(near, i, end, high)
    if a < b:
        if i >= end or near[i] != a or (j < end and near[j] == b):
            return np.int64(0)
        at = i  # where a lies
        left_of_b = j - ONE if j - ONE > i else i - ONE
        right_of_b = j
    else:
        if j >= end or near[j] != a or near[i] == b:
            return np.int64(0)
        at = j
        left_of_b = i - ONE
        right_of_b = i if i < j else j + ONE
    before = begin - ONE  # an index that no place has
    has_left, has_right = at > begin, at + ONE < end
    left = near[at - ONE] if has_left else a
    right = near[at + ONE] if has_right else a
    lost = _bend(left, a, right, has_left, has_right, logs)
    has_left, has_right = left_of_b != before, right_of_b < end
    left = near[left_of_b] if has_left else b
    right = near[right_of_b] if has_right else b
    return lost - _bend(left, b, right, has_left, has_right, logs)


@device
def _linear_change(near: Array, begin: Any, end: Any, a: Any, b: Any) -> Any:
    """By how much the distance from first to last falls when b takes the place of a in a row."""
    least, most = near[begin], near[end - ONE]
    if a != least and a != most and least < b and b < most:
        return np.int64(0)
    at = _first_from(near, begin, end, b)
    if at < end and near[at] == b:
        return np.int64(0)
    new_least, new_most = least, most
    if end - begin == ONE:
        return np.int64(0)
    if a == least:
        new_least = near[begin + ONE]
    if a == most:
        new_most = near[end - ONE - ONE]
    new_least, new_most = min(new_least, b), max(new_most, b)
    return (np.int64(most) - np.int64(least)) - (np.int64(new_most) - np.int64(new_least))


@device
def _changes_of_hub(order: Order, k: Any, stop: Any, a: Any, b: Any) -> Any:
    """`_changes` where many rows may hold a single place, which has no gaps: those are left out."""
    total = np.int64(0)
    while k < stop:
        w = np.uint64(order.indices[k])
        begin, end = np.uint64(order.indptr[w]), np.uint64(order.indptr[w + ONE])
        if end - begin > ONE:
            if order.table.size > 0:
                total += _log_change(order.near, begin, end, a, b, order.table)
            else:
                total += _linear_change(order.near, begin, end, a, b)
        k += ONE
    return total


@device
def _changes(order: Order, v: Any, a: Any, b: Any) -> Any:
    """By how much the rows of v's neighbours fall when v goes from place a to b."""
    total = np.int64(0)
    k, stop = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + ONE])
    if stop - k > HUB:
        return _changes_of_hub(order, k, stop, a, b)
    while k < stop:  # all rows are fetched at once; where they lie far apart that is a fifth faster
        prefetch(order.near, np.uint64(order.indptr[np.uint64(order.indices[k])]))
        k += ONE
    k = np.uint64(order.indptr[v])
    while k < stop:
        w = np.uint64(order.indices[k])
        begin, end = np.uint64(order.indptr[w]), np.uint64(order.indptr[w + ONE])
        if order.table.size > 0:
            total += _log_change(order.near, begin, end, a, b, order.table)
        elif begin < end:
            total += _linear_change(order.near, begin, end, a, b)
        k += ONE
    return total


@device
def gain_of(order: Order, u: Any, v: Any) -> Any:
    """By how much the metric falls when u and v swap places."""
    a, b = np.uint64(order.place[u]), np.uint64(order.place[v])
    return _changes(order, u, a, b) + _changes(order, v, b, a)


@device
def _replace(near: Array, begin: Any, end: Any, a: Any, b: Any) -> None:
    """b instead of a in a row that holds a and not b; else it stays as it is."""
    i = _first_from(near, begin, end, a)
    j = _first_from(near, begin, end, b)
    if i >= end or near[i] != a or (j < end and near[j] == b):
        return
    if a < b:
        while i + ONE < j:
            near[i] = near[i + ONE]
            i += ONE
    else:
        while i > j:
            near[i] = near[i - ONE]
            i -= ONE
    near[i] = b


@device
def swap(order: Order, u: Any, v: Any) -> None:
    """Swap the places of u and v."""
    a, b = np.uint64(order.place[u]), np.uint64(order.place[v])
    _move(order, u, a, b)
    _move(order, v, b, a)
    order.place[u], order.place[v] = b, a


@device
def _move(order: Order, v: Any, a: Any, b: Any) -> None:
    """b instead of a in the rows of v's neighbours."""
    k, stop = np.uint64(order.indptr[v]), np.uint64(order.indptr[v + ONE])
    while k < stop:
        w = np.uint64(order.indices[k])
        _replace(order.near, np.uint64(order.indptr[w]), np.uint64(order.indptr[w + ONE]), a, b)
        k += ONE


@device
def median_partner(order: Order, u: Any, vertex: Array, which: int) -> Any:
    """The vertex at one of the four places around the median of u's neighbours, or -1."""
    begin, end = np.int64(order.indptr[u]), np.int64(order.indptr[u + ONE])
    place = np.int64(order.near[np.uint64(begin + (end - begin) // 2)]) + AROUND[which]
    if place < 0 or place >= vertex.size:
        return np.int64(-1)
    return vertex[np.uint64(place)]
