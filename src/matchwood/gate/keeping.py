"""Objects that are made once and kept, safe with threads, pickles and forks.

Two threads that ask at the same time get the same object.  A pickle or copy leaves out what was
kept.  In a forked child every lock is new: a thread of the parent that held one does not exist
there, and would never release it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from matchwood import engines

T = TypeVar("T")


class Keeper:
    """An object that keeps what `keep` has made."""

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
        """Whether something is kept for this key."""
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
