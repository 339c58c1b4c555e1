"""Whose memory the arrays of a Graph are, and how a change of it is found.

    "copied"     our own, read-only: nobody can change it.  `graph` does this.
    "adopted"    arrays that were made here and that nobody else has: our own without a copy
    "shared"     the caller's, watched: ``graph(A, copy=False)``
    "borrowed"   the caller's, for one call: functions that are given a raw matrix

Watched memory is compared with its checksum before each use.  What outlives a call must not hold
memory that is borrowed: `Entries.watched` makes it shared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.gate import inputs
from matchwood.gate.views import View
from matchwood.primitives.inspect import checksum

TEAM_BYTES = 1 << 20  # a copy of more is made by a team; to call it takes as long as 100 KB
SMALL_BYTES = 1 << 14  # of an array that is its own checksum: to call a team takes longer


class Watch(NamedTuple):
    """The caller's arrays by name, and what they held."""

    arrays: dict[str, Any]
    sums: dict[str, Any]

    @classmethod
    def of(cls, **arrays: Any) -> Watch:
        """From now on."""
        there = {name: array for name, array in arrays.items() if array is not None}
        return cls(there, {name: _sum(array) for name, array in there.items()})

    def changed(self) -> list[str]:
        """The arrays that hold something else now."""
        return [name for name, array in self.arrays.items() if _sum(array) != self.sums[name]]


def _sum(array: Any) -> Any:
    small = array.nbytes <= SMALL_BYTES and engines.location(array) == "cpu"
    return array.tobytes() if small else checksum(array)


def plain_values(data: Any) -> Any:
    """The values without gaps, or None; a Column is copied, since no engine reads its memory."""
    if isinstance(data, inputs.Column):
        return data.copied()
    return None if data is None else engines.xp(data).ascontiguousarray(data)


def copies(pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Copies of the arrays that still are the memory of what was given; (array, given)."""
    made, moves = [], []
    for array, given in pairs:
        if array is None or isinstance(array, inputs.Column) or not _same(array, given):
            made.append(array)
        elif engines.location(array) == "gpu" or array.nbytes < TEAM_BYTES:
            made.append(array.copy())
        else:
            made.append(np.empty(array.shape, array.dtype))
            moves.append((made[-1], array))
    if moves:
        engines.load("matchwood.engines.devices", "cpu_copies").copy(moves, None)
    return made


def _same(array: Any, given: Any) -> bool:
    return array is given or bool(engines.xp(array).may_share_memory(array, given))


def frozen(value: Any, watch: Watch | None = None) -> Any:
    """The arrays of a View, or an array, read-only for good; anything else as it is.

    So are arrays that are frozen, or watched: views of a graph that are the same stay the same.
    """
    if isinstance(value, np.ndarray):
        return value if _stays(value, watch) else engines.frozen(value)
    if isinstance(value, View) and not all(_stays(array, watch) for array in value):
        return View(*(frozen(array, watch) for array in value))
    return value


def _stays(array: Any, watch: Watch | None) -> bool:
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return True
    return watch is not None and any(array is given for given in watch.arrays.values())
