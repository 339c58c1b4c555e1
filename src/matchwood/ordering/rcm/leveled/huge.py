"""A level of very many entries, in launches of its own.  Kernels: huge_levels.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(
    __package__,
    "huge_levels.cu",
    (
        "measure_rows<I>",
        "offer_places<I>",
        "tell_places<I>",
        "seek_places<I>",
        "count_children<I>",
        "list_children<I>",
    ),
)

TILE_ENTRIES = SOURCE.constant("TILE_ENTRIES")
RUNS = 1024  # blocks that list children; each adds up the counts of all before it
RUN_BLOCK = 512  # threads


def place_level(
    view: Any, order: Any, head: int, tail: int, owner: Any, place: Any, seek: bool, caller: str
) -> tuple[int, int]:
    """Place the children of the frontier order[head:tail]; how many, and their longest row.

    Free vertices seek their owners in `place`, or the frontier offers itself.  Memory: 40 bytes a
    child, and 8 more for each vertex of the frontier.  Indices have 32 bits.
    """
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    k = SOURCE.kernels(I=kind)
    front = order[head:tail]
    if seek:
        k.tell_places(front.size, (front.size, head, front, place))
        k.seek_places(n, (n, view.indptr, view.indices, place, head, owner))
    else:
        _offer(k, view, front, head, owner, caller)
    blocks = min(RUNS, -(-n // RUN_BLOCK))
    run = -(-n // blocks)
    counts, longest = gpu.empty(blocks, kind, caller), cupy.zeros(1, kind)
    grid = {"block": RUN_BLOCK, "grid": blocks}
    k.count_children(None, (n, run, view.indptr, owner, head, counts, longest), **grid)
    children = int(counts.sum(dtype=np.int64))
    if children:
        keys = gpu.empty(children, np.uint64, caller)
        found = gpu.empty(children, kind, caller)
        k.list_children(None, (n, run, view.indptr, owner, head, counts, keys, found), **grid)
        # stable, and children ascend: by (owner, degree, vertex)
        order[tail : tail + children] = found[cupy.argsort(keys, kind="stable")]
    return children, int(longest[0])


def _offer(k: Any, view: Any, front: Any, head: int, owner: Any, caller: str) -> None:
    size, kind = front.size, view.indptr.dtype
    lengths = gpu.empty(size, kind, caller)
    starts = gpu.empty(size + 1, kind, caller)
    k.measure_rows(size, (size, front, view.indptr, lengths))
    scan.scan_into(lengths, starts)  # the entries of some rows: they fit
    arcs = int(starts[size])
    tiles = -(-(size + arcs) // TILE_ENTRIES) * 32
    arrays = (view.indptr, view.indices, owner)
    k.offer_places(tiles, (size, arcs, starts, head, front, *arrays))
