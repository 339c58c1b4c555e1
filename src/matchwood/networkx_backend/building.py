"""Making many Python objects at once."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

from matchwood.networkx_backend.info import settings
from matchwood.networkx_backend.memory.layout import layout_is_known
from matchwood.networkx_backend.reading import QUICK_FROM


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


def joined_rows(nodes: list[Any], u: Any, v: Any, data: list[Any]) -> list[dict[Any, Any]]:
    """The row of each node in an undirected adjacency with these edges, in their order.

    `u` and `v` are places in `nodes`.  Both ends of an edge share a copy of its dictionary.
    """
    rows: list[dict[Any, Any]] = [{} for _ in nodes]
    nodes, data = list(nodes), list(data)  # nodes may have methods that let other threads run
    done = 0
    if len(nodes) >= QUICK_FROM and settings().read_memory and layout_is_known():
        from matchwood.networkx_backend.memory import cpu

        done = cpu.join(id(rows), id(nodes), id(data), id(dict), u, v)
    rest = zip(u[done:].tolist(), v[done:].tolist(), data[done:], strict=True)
    for a, b, attributes in rest:
        rows[a][nodes[b]] = rows[b][nodes[a]] = attributes.copy()
    return rows
