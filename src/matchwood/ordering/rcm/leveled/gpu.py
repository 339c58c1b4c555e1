"""Cuthill-McKee by levels on the GPU.  Kernels and the idea: gpu.cu."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ordering.rcm.leveled import huge

SOURCE = gpu.Source(__package__, "gpu.cu", ("place_levels<I>", "find_levels<I>"))

BLOCK = SOURCE.constant("LEVEL_BLOCK")
CLUSTER = SOURCE.constant("MOST_CLUSTER")
ROLL_WORDS, STAGE, DONE = SOURCE.constants("ROLL_WORDS", "STAGE", "DONE")
RUNNING, LEFT_OFFER, LEFT_SEEK = SOURCE.constants("RUNNING", "LEFT_OFFER", "LEFT_SEEK")
HEAD, TAIL, DEPTH, LENGTH, WIDTH, FIRST, FAR, MIXED, SOUGHT, CONTROL_WORDS = SOURCE.constants(
    "HEAD", "TAIL", "DEPTH", "LENGTH", "WIDTH", "FIRST", "FAR", "MIXED", "SOUGHT", "CONTROL_WORDS"
)
RANKED_CHILDREN, LONG_ROW = SOURCE.constants("RANKED_CHILDREN", "LONG_ROW")

ENTRIES_PER_BLOCK = 1024  # rows and entries of a small graph for each block that takes part
PLACE = 5  # of the lists of `place_levels` that which has places by vertex
# A level of more entries is left to huge.py, or one with a row of more, and of more than a share of
# n: every vertex is looked at there.  Where indices have 32 bits.
HUGE_ENTRIES = 1 << 23
HUGE_ROW, HUGE_ROW_SHARE = 1 << 15, 1 / 2048
LEVELS_PER_LAUNCH = 8192  # levels; at most some 80 ms.  Ctrl-C takes effect between launches


class Levels(NamedTuple):
    """The levels of a search, one after the other in `order`."""

    order: Any
    owner: Any  # n for what is not reached, less for what is; or None
    in_order: bool  # of Cuthill and McKee; else vertices of a level are in any order
    size: int  # vertices reached
    depth: int  # the last level
    width: int  # most vertices in two levels that follow one another
    start: int  # the first
    far: int  # of the last level the vertex of least (degree, vertex)


def place_levels(
    view: Any, starts: Any, total: int, *, caller: str = "reverse_cuthill_mckee"
) -> Levels:
    """Vertices in the order of Cuthill and McKee from all starts at once, level by level.

    `starts` is an array, or one vertex as in `find_levels`.  `total` vertices can be reached, and
    are placed; the rest of the array is left as it is.  Memory beside the result: six arrays of n,
    and what huge.py takes.
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
        """The next level, which was left to the host."""
        head, tail = words[HEAD], words[TAIL]
        sought = words[SOUGHT] if words[STAGE] == LEFT_SEEK else 0
        place = space.lists[PLACE]
        children, longest = huge.place_level(view, found, head, tail, owner, place, sought, caller)
        words[WIDTH] = max(words[WIDTH], tail - head + children)
        words[LENGTH] = longest if children else 2**64 - 1  # -1: no level comes after it
        if children:
            words[HEAD], words[TAIL], words[DEPTH] = tail, tail + children, words[DEPTH] + 1

    result = (found, owner)
    return _launched(
        view, k.place_levels, arguments, from_many[2], result, space.control, place_one
    )


def find_levels(
    view: Any,
    start: int = -1,
    total: int | None = None,
    limit: int | None = None,
    *,
    caller: str = "reverse_cuthill_mckee",
) -> Levels:
    """Levels from one vertex, or, if it is -1, from that of least (degree, vertex).

    Vertices without neighbours are not chosen unless there are no others.  At most `total`
    vertices can be reached.  Gives up when the width comes to `limit`.
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
    view: Any,
    kernel: Any,
    arguments: tuple[Any, ...],
    start: int,
    result: tuple[Any, Any],
    control: Any,
    place_one: Any = None,
) -> Levels:
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
    """One on each multiprocessor, in whole clusters."""
    return max(1, gpu.multiprocessors() // CLUSTER) * CLUSTER
