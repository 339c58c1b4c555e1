"""Making many Python objects at once."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from looking through everything again and again.

    It starts whenever a quarter more objects are alive, and a graph of a million dictionaries
    takes it a tenth of a second; a tree of 100,000 nodes was built five times slower for it.
    What is built inside is all in use, so there is nothing to collect.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
