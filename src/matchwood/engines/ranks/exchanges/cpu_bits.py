"""One bit for each place: set the bits of a list, list the bits that are set; by one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel

Array = np.ndarray[Any, Any]


def _unsigned(words: Array) -> Array:
    return words.view(np.uint32 if words.dtype.itemsize == 4 else np.uint64)


@kernel
def _set(team: Any, places: Array, words: Array) -> None:
    if team.rank > 0:
        return
    one = words.dtype.type(1)
    width = 8 * words.itemsize
    for i in range(places.size):
        if interrupted(team, i):
            return
        words[places[i] // width] |= one << words.dtype.type(places[i] % width)


def bits_of(places: Array, words: int, kind: Any) -> Array:
    """So many words of the type `kind`, with the bits of these places set."""
    found = np.zeros(words, kind)
    crew(1, work=places.size).run(_set, places, _unsigned(found))
    return found


@kernel
def _list(team: Any, words: Array, places: Array, count: Array) -> None:
    if team.rank > 0:
        return
    width = 8 * words.itemsize
    at: Any = np.int64(0)
    for k in range(words.size):
        if interrupted(team, k):
            return
        word = words[k]
        if word == 0:
            continue
        for bit in range(width):
            # written even where the bit is not set: no branch that may be mispredicted
            places[at] = k * width + bit
            at += np.int64((word >> words.dtype.type(bit)) & words.dtype.type(1))
    count[0] = at


def places_of(words: Array, size: int) -> Array:
    """The places below `size` whose bits are set, ascending."""
    places, count = np.empty(size + 1, np.int64), np.zeros(1, np.int64)
    words = _unsigned(np.ascontiguousarray(words))
    crew(1, work=size).run(_list, words, places, count)
    return places[: int(count[0])]
