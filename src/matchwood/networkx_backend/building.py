"""Making many Python objects at once."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import setitem
from typing import Any

import numpy as np

_pausing = threading.Lock()
_pauses = 0
_was_enabled = False


def _forget_pauses() -> None:
    """In a forked process, which has none of the threads that paused the collector."""
    global _pausing, _pauses
    _pausing = threading.Lock()
    if _pauses and _was_enabled:
        gc.enable()
    _pauses = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pauses)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from looking through everything again and again.

    It starts whenever a quarter more objects are alive, and a graph of a million dictionaries
    takes it a tenth of a second; a tree of 100,000 nodes was built five times slower for it.
    What is built inside is all in use, so there is nothing to collect.  Of several threads inside
    the last one starts the collector again.
    """
    global _pauses, _was_enabled
    with _pausing:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _pausing:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()


def joined_rows(
    names: Sequence[Any], u: Any, v: Any, data: list[dict[Any, Any]]
) -> list[dict[Any, Any]]:
    """The row of each node in an undirected adjacency with these edges, in their order.

    `u` and `v` are places in `names`.  Both ends of an edge share its dictionary.
    """
    rows: list[dict[Any, Any]] = [{} for _ in names]
    ends, others = (np.stack(pair, axis=1).ravel().tolist() for pair in ((u, v), (v, u)))
    twice = chain.from_iterable(zip(data, data, strict=True))
    entered = map(setitem, map(rows.__getitem__, ends), map(names.__getitem__, others), twice)
    deque(entered, maxlen=0)
    return rows
