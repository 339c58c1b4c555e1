"""How much a file may ask for: a few bytes can declare 10**18 vertices or unpack to terabytes.

Both limits grow with what the file really holds, so that no normal file reaches them.  The options
`most_vertices` and `most_bytes` of `matchwood.io.read` set them by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import count

VERTICES_PER_EDGE = 1000  # a file that declares more vertices is refused,
FREE_VERTICES = 10_000_000  # except up to so many vertices, for which any machine has room
BYTES_PER_COMPRESSED_BYTE = 200  # a file that unpacks to more is refused; real ones have 3 to 30,
FREE_BYTES = 100_000_000  # except up to so many bytes, which is a second of work


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
        if self.vertices is not None:
            return self.vertices
        return max(FREE_VERTICES, VERTICES_PER_EDGE * edges)

    def most_bytes(self, compressed: int) -> int:
        """Bytes that a file of this size may unpack to."""
        if self.bytes is not None:
            return self.bytes
        return max(FREE_BYTES, BYTES_PER_COMPRESSED_BYTE * compressed)


def _whole(caller: str, name: str, value: Any) -> int | None:
    return None if value is None else count(caller, name, value)


NO_LIMITS = Limits()


def matrix_bytes(shape: tuple[int, int], entries: int, workers: int = 1) -> int:
    """Bytes that a matrix takes while it is put together, a counter a row for each worker."""
    index = 4 if max(*shape, entries) <= np.iinfo(np.int32).max else 8
    return (shape[0] + 1) * index + max(shape) * 8 * workers + entries * (index + 8)
