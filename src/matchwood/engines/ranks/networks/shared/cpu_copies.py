"""Large arrays that are copied by all threads of a rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, kernel, share

Array = np.ndarray[Any, Any]

LARGE = 1 << 21
"""Bytes from which on a team copies.  For less, calling its members takes what they save: with
small copies by a team, too, searches and components on ranks became slower."""
WIDEST = 8  # bytes of the widest element


@kernel
def _copy(team: Any, source: Array, into: Array) -> None:
    lo, hi = share(team, source.size)
    old, new = source[lo:hi], into[lo:hi]
    for i in range(old.size):
        new[i] = old[i]


def copy(threads: int, array: Array, into: Array) -> None:
    """The bytes of an array into so many others, which begin where its elements could."""
    if threads == 1 or array.nbytes < LARGE:
        into[:] = array.view(np.uint8)
        return
    kind = np.dtype(f"u{min(array.itemsize & -array.itemsize, WIDEST)}")
    crew(threads, work=array.nbytes).run(_copy, array.view(kind), into.view(kind))
