"""Marks and values of some of a rank's places, in as few words as they fit.

Marked places travel as a list, or as one bit for each place where that is shorter.  Marked places
with a value each travel as two lists, or as the bits and the values.  The length tells which, so
there is no header: a list is always shorter than the bits would be.

Words have the type of the vertices, int32 or int64.  Arrays are NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def words_of_bits(size: int, kind: Any) -> int:
    """Words of one bit for each of `size` places."""
    bits = 8 * np.dtype(kind).itemsize
    return -(-int(size) // bits)


def pack_marks(places: Array, size: int, kind: Any) -> Array:
    """Words for ascending places below `size`."""
    if places.size < words_of_bits(size, kind):
        return places.astype(kind)
    return _bits(places, size, kind)


def unpack_marks(words: Array, size: int) -> Array:
    """The places, ascending."""
    if words.size < words_of_bits(size, words.dtype):
        return words.astype(np.int64)
    return _places(words, size)


def pack_values(places: Array, values: Array, size: int) -> Array:
    """Words for ascending places below `size`, and a value for each; of the type of the values."""
    kind = values.dtype
    if places.size < words_of_bits(size, kind):
        return np.concatenate([places.astype(kind), values])
    return np.concatenate([_bits(places, size, kind), values])


def unpack_values(words: Array, size: int) -> tuple[Array, Array]:
    """The places, ascending, and their values."""
    bits = words_of_bits(size, words.dtype)
    if words.size < 2 * bits:
        half = words.size // 2
        return words[:half].astype(np.int64), words[half:]
    return _places(words[:bits], size), words[bits:]


def _bits(places: Array, size: int, kind: Any) -> Array:
    whole = words_of_bits(size, kind) * 8 * np.dtype(kind).itemsize
    marks = np.zeros(whole, np.bool_)
    marks[places] = True
    return np.packbits(marks, bitorder="little").view(kind)


def _places(words: Array, size: int) -> Array:
    marks = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")
    return np.flatnonzero(marks[:size])
