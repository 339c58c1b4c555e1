"""What a bitmap and a queue of the same set are."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.primitives.frontier import words_for


def check_bitmap(queue: Any, n: int, bitmap: Any) -> None:
    """Raise `CheckFailed` unless `bitmap` marks exactly the vertices that `queue` lists."""
    answers.of_kind("check_bitmap", "iu", queue=queue)
    marked = _marked(bitmap, n)
    if (k := answers.first((queue < 0) | (queue >= n))) is not None:
        raise CheckFailed(f"bitmap: the queue lists {queue[k]}, not in 0 .. {n - 1}")
    if (k := answers.first(~marked[queue])) is not None:
        raise CheckFailed(f"bitmap: vertex {queue[k]} is in the queue and not marked")
    listed = np.zeros(n, dtype=np.bool_)
    listed[queue] = True
    if (k := answers.first(marked & ~listed)) is not None:
        raise CheckFailed(f"bitmap: vertex {k} is marked and not in the queue")


def check_queue(bitmap: Any, n: int, queue: Any) -> None:
    """Raise `CheckFailed` unless `queue` lists what `bitmap` marks, in increasing order."""
    answers.of_kind("check_queue", "iu", queue=queue)
    marked = _marked(bitmap, n)
    if (k := answers.first((queue < 0) | (queue >= n))) is not None:
        raise CheckFailed(f"queue: vertex {queue[k]} is not in 0 .. {n - 1}")
    if (i := answers.first(queue[1:] <= queue[:-1])) is not None:
        raise CheckFailed(f"queue: {queue[i]} and {queue[i + 1]} at {i}, {i + 1} do not increase")
    if (k := answers.first(~marked[queue])) is not None:
        raise CheckFailed(f"queue: vertex {queue[k]} is not marked in the bitmap")
    if queue.size != np.count_nonzero(marked):
        raise CheckFailed(
            f"queue: the bitmap marks {np.count_nonzero(marked)} vertices, {queue.size} are listed"
        )


def _marked(bitmap: Any, n: int) -> Any:
    """The bits of a bitmap as one bool for each vertex."""
    if bitmap.shape != (words_for(n),) or bitmap.dtype != np.uint64:
        raise CheckFailed(
            f"bitmap: {words_for(n)} words of uint64 expected for n = {n}, "
            f"got {bitmap.dtype} of shape {bitmap.shape}"
        )
    octets = bitmap.astype("<u8").view(np.uint8)
    marked = np.unpackbits(octets, bitorder="little").astype(np.bool_)
    if marked[n:].any():
        raise CheckFailed(f"bitmap: bits past n = {n} are set")
    return marked[:n]
