"""How much a file may ask for: a few bytes can declare 10**18 vertices or unpack to terabytes.

Both limits grow with what the file really holds, so that no honest file meets them; the options
`most_vertices` and `most_bytes` of `matchwood.io.read` set them by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

WIDE = 1000  # vertices for each edge beyond which a file is not believed,
MODEST = 10_000_000  # unless there are no more than these, for which any machine has room
RATIO = 200  # bytes of text for each compressed one; what people measure has 3 to 30,
FREE = 100_000_000  # and so many bytes are unpacked in any case: a second of work


class Limits(NamedTuple):
    """What the caller allows; None leaves it to the rules above."""

    vertices: int | None = None
    bytes: int | None = None

    def checked(self, caller: str) -> Limits:
        """Whole numbers, or an error."""
        return Limits(
            _whole(caller, "most_vertices", self.vertices), _whole(caller, "most_bytes", self.bytes)
        )

    def most_vertices(self, edges: int) -> int:
        """Rows or columns that a matrix with so many entries may have."""
        return max(MODEST, WIDE * edges) if self.vertices is None else self.vertices

    def most_bytes(self, compressed: int) -> int:
        """Bytes that a file of this size may unpack to."""
        return max(FREE, RATIO * compressed) if self.bytes is None else self.bytes


def _whole(caller: str, name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{caller}: {name} must be a whole number or None, got {value!r}")
    if value < 0:
        raise ValueError(f"{caller}: {name} must not be negative, got {value}")
    return int(value)


NO_LIMITS = Limits()


def matrix_bytes(shape: tuple[int, int], entries: int, workers: int = 1) -> int:
    """Bytes that a matrix takes while it is put together, a counter a row for each worker."""
    index = 4 if max(*shape, entries) <= np.iinfo(np.int32).max else 8
    return (shape[0] + 1) * index + max(shape) * 8 * workers + entries * (index + 8)
