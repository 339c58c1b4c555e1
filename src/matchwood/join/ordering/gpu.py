"""Pairs in order on the GPU, which has found them; rows and scores come back.

Rows travel as 32-bit numbers and become 64-bit ones on the way.  Host threads take piece after
piece: each piece goes through pinned memory, so that the bus is busy while others write theirs to
pages that the system has to make first.

What the memory of the GPU cannot hold, and pairs that came in several parts, are sorted by CPU
threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.join.candidates.cpu import Raw
from matchwood.join.ordering import cpu, shift_of
from matchwood.join.result import scores_of
from matchwood.primitives.sort import radix_sort
from matchwood.teams import crew

PIECE = 1 << 19  # numbers that a thread brings at a time: 2 or 4 MB of pinned memory
BYTES_PER_PAIR = 96  # on the GPU: pairs, keys, places, what the sort works in, and the result


def in_order(
    parts: list[Any], sizes: tuple[np.ndarray, ...], scored: bool, threads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """left, right and score of all pairs, by (left, right).  `parts` is empty afterwards."""
    if len(parts) == 1 and engines.location(parts[0].left) == "gpu":
        size = parts[0].left.size
        if size and size * BYTES_PER_PAIR <= gpu.free_bytes():
            return _sorted_there(parts, sizes, scored, threads)
    for i, part in enumerate(parts):
        parts[i] = Raw(*(engines.moved(array, "cpu") for array in part))
    return cpu.in_order(parts, sizes, scored, threads)


def _sorted_there(
    parts: list[Any], sizes: tuple[np.ndarray, ...], scored: bool, threads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    left, right, weight = parts.pop()
    shift = shift_of(sizes[1].size)
    keys = left.astype(np.int64)
    keys <<= shift
    keys |= right
    del left, right
    keys, weight = radix_sort(keys, weight)
    left, right = (keys >> shift).astype(np.int32), (keys & ((1 << shift) - 1)).astype(np.int32)
    del keys
    found = [left, right]
    if scored:
        one, other = (engines.moved(side, "gpu") for side in sizes)
        found.append(scores_of(weight, one[left] + other[right]))
    rows, others, *score = brought(found, (np.int64, np.int64, np.float64), threads)
    return rows, others, score[0] if scored else None


def brought(arrays: list[Any], kinds: tuple[Any, ...], threads: int | None) -> list[np.ndarray]:
    """Arrays of the GPU on the host, as numbers of these kinds."""
    cupy = engines.cupy()
    import cupyx

    size, device = arrays[0].size, cupy.cuda.Device()
    there = [np.empty(size, kind) for _, kind in zip(arrays, kinds, strict=False)]
    each = -(-size // PIECE)
    cupy.cuda.get_current_stream().synchronize()

    def bring(i: int) -> None:
        which, piece = i // each, i % each
        part = slice(piece * PIECE, (piece + 1) * PIECE)
        with device:
            source = arrays[which][part]
            staged = cupyx.empty_pinned(source.size, source.dtype)
            source.get(out=staged, stream=cupy.cuda.Stream.ptds)
        np.copyto(there[which][part], staged)

    crew(threads, work=8 * size).spread(bring, each * len(arrays))
    return there
