"""Marks and values of some of a rank's places, packed into few words.

Marked places travel as a list, or as one bit for each place where that is shorter.  Marked places
with a value each travel as two lists, or as the bits and the values.  The length says which, so
there is no header: a list is always shorter than the bits would be.

Words have the type of the vertices, int32 or int64.  Arrays are NumPy's, or CuPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines

Array = np.ndarray[Any, Any]


def words_of_bits(size: int, kind: Any) -> int:
    """The number of words that hold one bit for each of `size` places."""
    bits = 8 * np.dtype(kind).itemsize
    return -(-int(size) // bits)


def pack_marks(places: Array, size: int, kind: Any) -> Array:
    """Words for ascending places below `size`."""
    if places.size < words_of_bits(size, kind):
        return places.astype(kind)
    return bits_of(places, words_of_bits(size, kind), kind)


def unpack_marks(words: Array, size: int) -> Array:
    if words.size < words_of_bits(size, words.dtype):
        return words.astype(np.int64)
    return places_of(words, size)


def pack_values(places: Array, values: Array, size: int) -> Array:
    """Words for ascending places below `size`, and a value for each; of the type of the values."""
    kind = values.dtype
    bits = words_of_bits(size, kind)
    if places.size < bits:
        return np.concatenate([places.astype(kind), values])
    return np.concatenate([bits_of(places, bits, kind), values])


def unpack_values(words: Array, size: int) -> tuple[Array, Array]:
    """The places, ascending, and their values."""
    bits = words_of_bits(size, words.dtype)
    if words.size < 2 * bits:
        half = words.size // 2
        return words[:half].astype(np.int64), words[half:]
    return places_of(words[:bits], size), words[bits:]


def bits_of(places: Any, words: int, kind: Any) -> Any:
    """`words` words of the type `kind`, with the bits of these places set."""
    xp = engines.xp(places)
    bits = xp.zeros(words * 8 * np.dtype(kind).itemsize, np.bool_)
    bits[places] = True
    return xp.packbits(bits, bitorder="little").view(kind)


def places_of(words: Any, size: int) -> Any:
    """The places below `size` whose bits are set, ascending."""
    xp = engines.xp(words)
    bits = xp.unpackbits(xp.ascontiguousarray(words).view(np.uint8), bitorder="little")
    return xp.flatnonzero(bits[:size].view(np.bool_))
