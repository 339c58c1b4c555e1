"""Marks and values of some of a rank's places, in as few words as they fit.

Marked places travel as a list, or as one bit for each place where that is shorter.  Marked places
with a value each travel as two lists, or as the bits and the values.  The length tells which, so
there is no header: a list is always shorter than the bits would be.

Words have the type of the vertices, int32 or int64.  Arrays are NumPy's; marks may be CuPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.exchanges.cpu_bits import bits_of, places_of

Array = np.ndarray[Any, Any]


def words_of_bits(size: int, kind: Any) -> int:
    """Words of one bit for each of `size` places."""
    bits = 8 * np.dtype(kind).itemsize
    return -(-int(size) // bits)


def pack_marks(places: Array, size: int, kind: Any) -> Array:
    """Words for ascending places below `size`."""
    if places.size < words_of_bits(size, kind):
        return places.astype(kind)
    if engines.location(places) == "gpu":
        return engines.load(__package__, "gpu_bits").bits_of(
            places, words_of_bits(size, kind), kind
        )
    return bits_of(places, words_of_bits(size, kind), kind)


def unpack_marks(words: Array, size: int) -> Array:
    """The places, ascending."""
    if words.size < words_of_bits(size, words.dtype):
        return words.astype(np.int64)
    if engines.location(words) == "gpu":
        return engines.load(__package__, "gpu_bits").places_of(words, size)
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
