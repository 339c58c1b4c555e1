"""From the arrays of a blob to those of a traffic matrix: checked, and converted to 32 bits.

`narrow_rows` counts faults, in loops without branches, which the compiler vectorizes.  i must
ascend within rows and may fall from a row to the next, so the falls between rows are counted apart:
both numbers are equal where no row falls inside.  What is wrong is found by blob.py.  An archive is
read in 8 % less time than with NumPy, one that is not compressed in 30 % less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, kernel

Array = np.ndarray[Any, Any]

ENTRIES_PER_STEP = 16  # entries checked in about the time of one work step (engines.cpu.crew)

# What `narrow_rows` reports, one int64 each
WRONG, EMPTY = range(2)
REPORT_WORDS = 2


@kernel
def narrow_rows(
    team: Team, p: Array, h: Array, i: Array, dimensions: tuple[int, int], sources: Array,
    destinations: Array, report: Array,
) -> None:  # fmt: skip
    """sources = h and destinations = i, with 32 bits; report what is wrong, and rows without links.

    The host has compared the ends of p.  For one member: a window takes half a millisecond.
    """
    if team.me > 0:
        return
    rows, columns = np.uint64(dimensions[0]), np.uint64(dimensions[1])
    wrong, empty = _starts(p)
    wrong += _ascending(h, rows, sources)
    report[WRONG], report[EMPTY] = wrong, empty
    if wrong != 0:  # p may lead outside of i
        return
    report[WRONG] = _falls(i, columns, destinations) - _falls_between(p, i)


@device
def _starts(p: Array) -> Any:
    """(places where p falls, rows without links)."""
    falls, empty = 0, 0
    for r in range(p.size - 1):
        falls += p[r + 1] < p[r]
        empty += p[r + 1] == p[r]
    return falls, empty


@device
def _ascending(h: Array, limit: np.uint64, out: Array) -> int:
    """Copy h; count the entries that do not ascend or leave 0..limit."""
    wrong = 0
    if h.size:
        wrong += np.uint64(h[0]) >= limit
        out[0] = np.uint32(h[0])
    for r in range(1, h.size):
        wrong += (h[r] <= h[r - 1]) | (np.uint64(h[r]) >= limit)
        out[r] = np.uint32(h[r])
    return wrong


@device
def _falls(i: Array, limit: np.uint64, out: Array) -> int:
    """Copy i; count the places where it does not ascend, and far more where it leaves 0..limit."""
    falls, outside = 0, 0
    if i.size:
        outside += np.uint64(i[0]) >= limit
        out[0] = np.uint32(i[0])
    for k in range(1, i.size):
        falls += i[k] <= i[k - 1]
        outside += np.uint64(i[k]) >= limit
        out[k] = np.uint32(i[k])
    return falls + (outside << 32)


@device
def _falls_between(p: Array, i: Array) -> int:
    """The places where i does not ascend from one row to the next that has links."""
    falls = 0
    for r in range(1, p.size - 1):
        k = p[r]
        if 0 < k < i.size and p[r + 1] > k:
            falls += i[k] <= i[k - 1]
    return falls


def narrowed(
    p: Array, h: Array, i: Array, dimensions: tuple[int, int]
) -> tuple[Array, Array, bool, bool]:
    """(sources, destinations, whether rows are empty, whether something is wrong)."""
    sources, destinations = np.empty(h.size, np.uint32), np.empty(i.size, np.uint32)
    report = np.zeros(REPORT_WORDS, np.int64)
    team = crew(1, work=(h.size + i.size) // ENTRIES_PER_STEP)
    team.run(narrow_rows, p, h, i, dimensions, sources, destinations, report)
    return sources, destinations, bool(report[EMPTY]), bool(report[WRONG])
