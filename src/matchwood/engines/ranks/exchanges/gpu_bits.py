"""One bit for each place, on the GPU; the functions are those of cpu_bits.py.

They run on NumPy arrays too, which is how they are tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


def bits_of(places: Any, words: int, kind: Any) -> Any:
    """So many words of the type `kind`, with the bits of these places set."""
    xp = engines.xp(places)
    bits = xp.zeros(words * 8 * np.dtype(kind).itemsize, np.uint8)
    bits[places] = 1
    return xp.packbits(bits, bitorder="little").view(kind)


def places_of(words: Any, size: int) -> Any:
    """The places below `size` whose bits are set, ascending."""
    xp = engines.xp(words)
    bits = xp.unpackbits(xp.ascontiguousarray(words).view(np.uint8), bitorder="little")
    return xp.flatnonzero(bits[:size])
