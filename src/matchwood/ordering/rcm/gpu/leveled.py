"""Cuthill-McKee by levels on the GPU.  Kernels and the idea: leveled.cu.

A level of very many entries, or with a very long row, has launches of its own: huge_levels.cu.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(__package__, "leveled.cu", ("place_levels<I>", "find_levels<I>"))
HUGE_SOURCE = gpu.Source(
    __package__,
    "huge_levels.cu",
    (
        "measure_rows<I>",
        "mark_free<I>",
        "offer_places<I>",
        "store_places<I>",
        "seek_places<I>",
        "count_children<I>",
        "list_children<I>",
        "take_children<I>",
    ),
)

BLOCK = SOURCE.constant("LEVEL_BLOCK")
CLUSTER = SOURCE.constant("MOST_CLUSTER")
ROLL_WORDS, STAGE, DONE = SOURCE.constants("ROLL_WORDS", "STAGE", "DONE")
RUNNING, LEFT_OFFER, LEFT_SEEK = SOURCE.constants("RUNNING", "LEFT_OFFER", "LEFT_SEEK")
HEAD, TAIL, DEPTH, LENGTH, WIDTH, FIRST, FAR, MIXED, SOUGHT, CONTROL_WORDS = SOURCE.constants(
    "HEAD", "TAIL", "DEPTH", "LENGTH", "WIDTH", "FIRST", "FAR", "MIXED", "SOUGHT", "CONTROL_WORDS"
)
RANKED_CHILDREN, LONG_ROW = SOURCE.constants("RANKED_CHILDREN", "LONG_ROW")

ENTRIES_PER_BLOCK = 1024  # rows and entries of a small graph for each block that takes part
PLACE = 5  # the number, among the lists of `place_levels`, of the places by vertex
# Left to `place_level`, where indices have 32 bits: a level of more entries, or with a row of more
# than HUGE_ROW entries and HUGE_ROW_SHARE of n: `place_level` reads every vertex.
HUGE_ENTRIES = 1 << 23
HUGE_ROW, HUGE_ROW_SHARE = 1 << 15, 1 / 2048
LEVELS_PER_LAUNCH = 8192  # levels; at most some 80 ms.  Ctrl-C takes effect between launches

TILE_ENTRIES, FREE_WORDS = HUGE_SOURCE.constants("TILE_ENTRIES", "FREE_WORDS")
# PARTS: the share of the frontier's entries up to the end of each part that offers its places.
# Early parts give most vertices their owners.  Each part takes a pass over all vertices, so a
# frontier of at most FEW_ENTRIES entries, or of fewer than n, is one part.
FEW_ENTRIES = 1 << 22
PARTS = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])
# OFFERED_FIRST: entries that the frontier offers before free vertices seek, as shares of the free
# vertices' entries, where the graph has FAR_VERTICES: there the caches do not hold the places.  On
# R-MAT 21 it leaves a fifth of the entries to be read.  On an H200, seeking in R-MAT 24 takes 0.49
# ms without, and 0.46 and as much for the offers with it; R-MAT 26 7.9 ms without, 2.6 + 1.2 with.
FAR_VERTICES = 1 << 25
OFFERED_FIRST = np.array([1 / 32, 1 / 16, 1 / 8])
KEY_BITS = 64
RUNS = 1024  # blocks that list children; each adds up the counts of all before it
RUN_BLOCK = 512  # threads


class Levels(NamedTuple):
    """The levels of a search, one after the other in `order`."""

    order: Any
    owner: Any  # n for vertices that are not reached, less for others; or None
    in_order: bool  # of Cuthill and McKee; else vertices of a level are in any order
    size: int  # vertices reached
    depth: int  # the last level
    width: int  # most vertices in two levels that follow one another
    start: int  # the first vertex
    far: int  # of the last level the vertex of least (degree, vertex)


def place_levels(
    view: Any, starts: Any, total: int, *, caller: str = "reverse_cuthill_mckee"
) -> Levels:
    """Vertices in the order of Cuthill and McKee from all starts at once, level by level.

    `starts` is an array, or one vertex as in `find_levels`.  `total` vertices can be reached, and
    are placed; the rest of the array is left as it is.  Memory beside the result: six arrays of n,
    and what `place_level` takes.
    """
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    found, owner = (gpu.empty(n, kind, caller) for _ in range(2))
    space = gpu.workspace(
        caller,
        lists=((6, n), kind),
        big=(n // RANKED_CHILDREN + 1, kind),
        piece=(4 * (nnz // LONG_ROW) + 2, kind),
        sums=(_blocks(view), kind),
        control=(CONTROL_WORDS, np.uint64),
    )
    from_many = (None, 0, starts) if isinstance(starts, int) else (starts, starts.size, 0)
    huge_ones = (HUGE_ENTRIES, max(HUGE_ROW, int(HUGE_ROW_SHARE * n)))
    if kind.itemsize > 4:
        huge_ones = (2**64 - 1, 2**64 - 1)
    arguments = (
        n, view.indptr, view.indices, *from_many, total, LEVELS_PER_LAUNCH, *huge_ones, found,
        owner, *space.lists, space.big, space.piece, space.sums, space.control,
    )  # fmt: skip
    k = SOURCE.kernels(I=kind)

    def place_one(words: Any) -> None:
        head, tail = words[HEAD], words[TAIL]
        sought = words[SOUGHT] if words[STAGE] == LEFT_SEEK else 0
        place = space.lists[PLACE]
        children, longest = place_level(view, found, head, tail, owner, place, sought, caller)
        words[WIDTH] = max(words[WIDTH], tail - head + children)
        words[LENGTH] = longest if children else 2**64 - 1  # -1: no level follows
        if children:
            words[HEAD], words[TAIL], words[DEPTH] = tail, tail + children, words[DEPTH] + 1

    result = (found, owner)
    return _launched(
        view, k.place_levels, arguments, from_many[2], result, space.control, place_one
    )


def find_levels(
    view: Any, start: int = -1, total: int | None = None, limit: int | None = None, *,
    caller: str = "reverse_cuthill_mckee",
) -> Levels:  # fmt: skip
    """Levels from one vertex, or, if it is -1, from that of least (degree, vertex).

    Vertices without neighbours are not chosen unless there are no others.  At most `total`
    vertices can be reached.  Gives up when the width reaches `limit`.
    """
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    found = gpu.empty(n, kind, caller)
    space = gpu.workspace(
        caller,
        owner=(n, kind),
        piece=(4 * (nnz // LONG_ROW) + 2, kind),
        bits=(-(-n // 32), np.uint32),
        control=(CONTROL_WORDS, np.uint64),
    )
    arguments = (
        n, view.indptr, view.indices, start, n if total is None else total,
        n if limit is None else limit, LEVELS_PER_LAUNCH, found, space.owner, space.piece,
        space.bits, space.control,
    )  # fmt: skip
    k = SOURCE.kernels(I=kind)
    return _launched(view, k.find_levels, arguments, start, (found, None), space.control)


def _launched(
    view: Any, kernel: Any, arguments: tuple[Any, ...], start: int, result: tuple[Any, Any],
    control: Any, place_one: Any = None,
) -> Levels:  # fmt: skip
    """Launch until it is done; `place_one` does a level that the kernel leaves to the host."""
    control.data.memset_async(0, control.nbytes)
    while True:
        kernel(None, arguments, block=BLOCK, grid=_blocks(view))
        words = control.get().tolist()
        if words[STAGE] == DONE:
            break
        if words[STAGE] in (LEFT_OFFER, LEFT_SEEK):
            place_one(words)
            words[STAGE] = RUNNING
            control.set(np.array(words, np.uint64))
        control.data.memset_async(0, ROLL_WORDS * control.itemsize)
    first, far = (~words[word] % 2**64 % view.n for word in (FIRST, FAR))
    return Levels(
        *result,
        in_order=not words[MIXED],
        size=words[TAIL],
        depth=words[DEPTH],
        width=words[WIDTH],
        start=first if start < 0 else start,
        far=far,
    )


def _blocks(view: Any) -> int:
    most = _most_blocks(engines.cupy().cuda.runtime.getDevice())
    return min(most, _needed(view.n + view.nnz))


def _needed(work: int) -> int:
    return CLUSTER * -(-work // (ENTRIES_PER_BLOCK * CLUSTER))


@functools.cache
def _most_blocks(device: int) -> int:
    """One block on each multiprocessor, in whole clusters."""
    return max(1, gpu.multiprocessors() // CLUSTER) * CLUSTER


# Huge levels


def place_level(
    view: Any, order: Any, head: int, tail: int, owner: Any, place: Any, sought: int, caller: str
) -> tuple[int, int]:
    """Place the children of the frontier order[head:tail]; returns their number and longest row.

    Free vertices, which have `sought` entries, seek their owners in `place`; if it is 0, the
    frontier offers its places.  Memory: 40 bytes a child, and 8 for each vertex of the frontier.
    Indices have 32 bits.
    """
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    k = HUGE_SOURCE.kernels(I=kind)
    front = order[head:tail]
    if sought:
        if sought > FEW_ENTRIES and n >= FAR_VERTICES:
            wanted = (OFFERED_FIRST * sought).astype(kind) + 1
            _offer(k, view, front[: int(wanted[-1])], head, owner, wanted, caller)
        k.store_places(front.size, (front.size, head, front, place))
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

    `wanted` has the number of entries up to the end of each part; None: by PARTS, all of them.
    """
    cupy = engines.cupy()
    n, kind, size = view.n, view.indptr.dtype, front.size
    lengths = gpu.empty(size, kind, caller)
    starts = gpu.empty(size + 1, kind, caller)
    words = -(-n // 32)
    free = gpu.empty(words, np.uint32, caller)
    k.measure_rows(size, (size, front, view.indptr, lengths))
    scan.scan_into(lengths, starts)  # sums of some rows' lengths: they fit the index type
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
