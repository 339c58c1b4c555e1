"""What a Graph keeps, whose memory its arrays are, and how a change of it is found.

    "copied"     the Graph's own, read-only: nobody can change it.  `graph` does this.
    "adopted"    arrays that were made here and that nobody else has: its own without a copy
    "shared"     the caller's, watched: ``graph(A, copy=False)``
    "borrowed"   the caller's, for one call: functions that are given a raw matrix

Watched memory is compared with its checksum before each use.  What outlives a call must not hold
memory that is borrowed: `Entries.watched` makes it shared.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from matchwood import engines
from matchwood.gate import inputs
from matchwood.gate.views import View
from matchwood.primitives.inspect import checksum

T = TypeVar("T")

TEAM_BYTES = 1 << 20  # larger arrays are copied by a team; calling it takes as long as 100 KB
SMALL_BYTES = 1 << 14  # smaller arrays are compared byte by byte: calling a team takes longer


class Watch(NamedTuple):
    """The caller's arrays by name, and the checksums of what they held."""

    arrays: dict[str, Any]
    sums: dict[str, Any]

    @classmethod
    def of(cls, **arrays: Any) -> Watch:
        """Watch these arrays from now on."""
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
    """The array of each pair (array, given), copied where it is the memory of `given`."""
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
        engines.load("matchwood.engines.devices", "cpu").copy(moves, None)
    return made


def _same(array: Any, given: Any) -> bool:
    return array is given or bool(engines.xp(array).may_share_memory(array, given))


def frozen(value: Any, watch: Watch | None = None) -> Any:
    """The arrays of a View, or an array, read-only for good; anything else as it is.

    Arrays that are frozen or watched stay the same objects: equal views of a graph stay equal.
    """
    if isinstance(value, np.ndarray):
        return value if _stays(value, watch) else engines.frozen(value)
    if isinstance(value, View) and not all(_stays(array, watch) for array in value):
        return View(*(frozen(array, watch) for array in value))
    return value


def _stays(array: Any, watch: Watch | None) -> bool:
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return True
    return watch is not None and id(array) in map(id, watch.arrays.values())


class Keeper:
    """An object that keeps what `keep` makes, safe with threads, pickles and forks.

    Two threads that ask at the same time get the same object.  A pickle or copy leaves out what was
    kept.  In a forked child every lock is new: a thread of the parent that held one does not exist
    there, and would never release it.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}
        self._lock = threading.RLock()
        _LIVE.add(self)

    def keep(self, key: str, make: Callable[[], T]) -> T:
        """What `make` returns, made at the first call for this key."""
        found: T | None = self._kept.get(key)
        if found is None:
            with self._lock:
                found = self._kept.get(key)
                if found is None:
                    try:
                        found = self._kept[key] = self.made(make)
                    except MemoryError as error:
                        raise engines.out_of_memory(error) from error
        return found

    def made(self, make: Callable[[], T]) -> T:
        """What `make` returns, as it is to be kept."""
        return make()

    def has_kept(self, key: str) -> bool:
        return key in self._kept

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_kept"], state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        Keeper.__init__(self)
        self.__dict__.update(state)


_LIVE: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _unlock() -> None:
    for keeper in list(_LIVE):
        keeper._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_unlock)
