"""Arrays over a group whose vertices lie in stripes: by position, and by owner.

Position k * ranks + s is place k of rank s.  NumPy reads the whole array once for each rank; here
it goes through the cache in tiles.  Elements are words of their size, whatever they mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel, next_chunk

Array = np.ndarray[Any, Any]

TILE = 512  # places of each rank that a member takes at a time: they fit into the nearest cache
TAKEN = 4096  # elements that a member takes at a time
BITS = 64  # places in a word
LARGE = 1 << 14  # elements; NumPy is as quick with fewer


@kernel
def _move(team: Any, values: Array, starts: Array, by_owner: bool, out: Array) -> None:
    """From an array by position to one by owner, or back."""
    parts, most, one = np.uint64(starts.size - 1), starts[1], np.uint64(1)
    tile = next_chunk(team, most, TILE)
    while tile >= 0:
        for s in range(parts):
            begin = np.uint64(starts[s])
            end = min(tile + TILE, starts[s + one] - starts[s])
            source, step = (s, parts) if by_owner else (begin, one)
            target, stride = (begin, one) if by_owner else (s, parts)
            for k in range(np.uint64(tile), np.uint64(max(end, tile))):
                out[target + k * stride] = values[source + k * step]
        tile = next_chunk(team, most, TILE)


@kernel
def _take(team: Any, values: Array, places: Array, out: Array) -> None:
    first = next_chunk(team, places.size, TAKEN)
    while first >= 0:
        for i in range(first, min(first + TAKEN, places.size)):
            out[i] = values[places[i]]
        first = next_chunk(team, places.size, TAKEN)


@kernel
def _with_entries(team: Any, indptr: Array, rows: int, words: Array) -> None:
    """One member."""
    if team.rank > 0:
        return
    s, place = 0, 0
    for v in range(rows):
        if interrupted(team, v):
            return
        full = np.uint64(indptr[v] < indptr[v + 1])
        words[s, place // BITS] |= full << np.uint64(place % BITS)
        s += 1
        if s == words.shape[0]:
            s, place = 0, place + 1


def rows_with_entries(indptr: Array, grid: Any) -> Array:
    """(C, words) a bit for each place of each rank of the row whose row of a block has entries."""
    words = np.zeros((grid.C, -(-grid.most_owned // BITS)), np.uint64)
    crew(1, work=grid.n_rows).run(_with_entries, indptr, grid.n_rows, words)
    return words


def by_owner(values: Array, counts: list[int], threads: int | None) -> Array:
    """From an array by position; rank s has counts[s] elements, rank 0 the most."""
    return _moved(values, counts, True, threads)


def by_position(flat: Array, counts: list[int], threads: int | None) -> Array:
    """From what the ranks have, one after the other."""
    return _moved(flat, counts, False, threads)


def places_by_owner(positions: Array, counts: list[int]) -> Array:
    """Where these positions are in what the ranks have, one after the other; unsigned."""
    parts, starts = len(counts), (np.cumsum(counts) - counts).astype(positions.dtype)
    return starts[positions % parts] + positions // parts


def taken(values: Array, places: Array, threads: int | None) -> Array:
    """``values[places]``; places are unsigned."""
    out = np.empty(places.size, values.dtype)
    crew(threads, work=places.size).run(_take, values, places, out)
    return out


def _moved(values: Array, counts: list[int], by_owner: bool, threads: int | None) -> Array:
    out = np.empty_like(values)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    word = np.dtype(f"u{values.itemsize}")
    crew(threads, work=values.size).run(_move, values.view(word), starts, by_owner, out.view(word))
    return out
