"""A level of very many entries, or with a very long row, in launches of its own.

Kernels: huge_levels.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(
    __package__,
    "huge_levels.cu",
    (
        "measure_rows<I>",
        "mark_free<I>",
        "offer_places<I>",
        "tell_places<I>",
        "seek_places<I>",
        "count_children<I>",
        "list_children<I>",
        "take_children<I>",
    ),
)

TILE_ENTRIES, FREE_WORDS = SOURCE.constants("TILE_ENTRIES", "FREE_WORDS")
# Of the frontier's entries, those up to the end of each part that offers itself.  Early parts give
# most vertices their owners.  Each takes a pass over all vertices: a frontier of few entries is one
# part, and so is one of fewer than there are vertices.
FEW_ENTRIES = 1 << 22
PARTS = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])
# Of the entries of the free vertices, as many are offered before these seek.  On R-MAT 21, where
# that is one in twenty of the frontier's, it leaves a fifth of them to be read.  It pays where the
# caches do not hold the places.  On an H200, R-MAT 24 takes 0.49 ms without, and 0.46
# and as much for the offers with it; R-MAT 26 7.9 ms without, and 2.6 and 1.2 with it.
FAR_VERTICES = 1 << 25
OFFERED_FIRST = np.array([1 / 32, 1 / 16, 1 / 8])
KEY_BITS = 64
RUNS = 1024  # blocks that list children; each adds up the counts of all before it
RUN_BLOCK = 512  # threads


def place_level(
    view: Any, order: Any, head: int, tail: int, owner: Any, place: Any, sought: int, caller: str
) -> tuple[int, int]:
    """Place the children of the frontier order[head:tail]; how many, and their longest row.

    Free vertices seek their owners in `place` if `sought`, which is how many entries they have; if
    it is 0, the frontier offers itself.  Memory: 40 bytes a child, and 8 more for each vertex of
    the frontier.  Indices have 32 bits.
    """
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    k = SOURCE.kernels(I=kind)
    front = order[head:tail]
    if sought:
        if sought > FEW_ENTRIES and n >= FAR_VERTICES:
            wanted = (OFFERED_FIRST * sought).astype(kind) + 1
            _offer(k, view, front[: int(wanted[-1])], head, owner, wanted, caller)
        k.tell_places(front.size, (front.size, head, front, place))
        k.seek_places(n, (n, view.indptr, view.indices, place, head, owner))
    else:
        _offer(k, view, front, head, owner, None, caller)
    blocks = min(RUNS, -(-n // RUN_BLOCK))
    run = -(-n // blocks)
    counts, longest = gpu.empty(blocks, kind, caller), cupy.zeros(1, kind)
    grid = {"block": RUN_BLOCK, "grid": blocks}
    k.count_children(None, (n, run, view.indptr, owner, head, counts, longest), **grid)
    children, most = int(counts.sum(dtype=np.int64)), int(longest[0])
    if children:
        low, high = (n - 1).bit_length(), most.bit_length()
        together = low + high + (front.size - 1).bit_length() <= KEY_BITS
        low = low if together else 0
        keys = gpu.empty(children, np.uint64, caller)
        found = None if together else gpu.empty(children, kind, caller)
        arrays = (view.indptr, owner, head, counts, low + high, low, keys, found)
        k.list_children(None, (n, run, *arrays), **grid)
        if found is None:
            keys.sort()
            placed = order[tail : tail + children]
            k.take_children(children, (children, keys, (1 << low) - 1, placed))
        else:  # stable, and children ascend
            order[tail : tail + children] = found[cupy.argsort(keys, kind="stable")]
    return children, most


def _offer(k: Any, view: Any, front: Any, head: int, owner: Any, wanted: Any, caller: str) -> None:
    """The frontier offers its places, part by part.

    `wanted` are the entries up to the end of each part, of which there are as many; None is all.
    """
    cupy = engines.cupy()
    n, kind, size = view.n, view.indptr.dtype, front.size
    lengths = gpu.empty(size, kind, caller)
    starts = gpu.empty(size + 1, kind, caller)
    words = -(-n // 32)
    free = gpu.empty(words, np.uint32, caller)
    k.measure_rows(size, (size, front, view.indptr, lengths))
    scan.scan_into(lengths, starts)  # the entries of some rows: they fit
    if wanted is None:
        arcs = int(starts[size])
        shares = PARTS if arcs > max(FEW_ENTRIES, n) else PARTS[-1:]
        wanted = (shares * arcs).astype(kind)
    ends = cupy.minimum(cupy.searchsorted(starts[1:], cupy.asarray(wanted)) + 1, size)
    places = starts[ends].get().tolist()
    begin = before = 0
    for end, after in zip(ends.get().tolist(), places, strict=True):
        rows, arcs = end - begin, after - before
        if rows <= 0:
            continue
        tiles = -(-(rows + arcs) // TILE_ENTRIES) * 32
        its = (starts[begin : end + 1] - before, head + begin, front[begin:end])
        k.mark_free(-(-words // FREE_WORDS) * 32, (n, owner, free))
        k.offer_places(tiles, (rows, arcs, *its, view.indptr, view.indices, free, owner))
        begin, before = end, after
