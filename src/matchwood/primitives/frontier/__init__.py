"""The two forms of a set of vertices: a queue that lists them, a bitmap that marks them.

A search that visits the vertices of the set uses the queue: its work grows with the set.  A search
that asks "is v in the set" uses the bitmap: n bits, which stay in cache.  Read on in reference.py,
check.py, cpu.py, gpu.py: the engines' files hold the device functions that kernels call (append to
a queue through a buffer, set and test bits), and the two conversions below.

A bitmap is an array of uint64 words; vertex v is bit v % 64 of word v // 64.  Bits past n are 0.
"""

from __future__ import annotations

from typing import Any

from matchwood.arguments import INDEX, any_type, count, index_type, shown, vector
from matchwood.engines import call, location
from matchwood.memory import require_memory

__all__ = ["bitmap_from_queue", "queue_from_bitmap"]


def words_for(n: int) -> int:
    """uint64 words of a bitmap over n vertices."""
    return (n + 63) // 64


def bitmap_from_queue(
    queue: Any, n: int, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """Mark the vertices that a queue lists.

    Parameters
    ----------
    queue : (k,) int32 or int64 array
        Vertices 0 .. n - 1 in any order; one may occur more than once.
    n : int
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `queue` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    bitmap : uint64 array of (n + 63) // 64 words

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type; if a vertex is not in 0 .. n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.frontier import bitmap_from_queue
    >>> bitmap_from_queue(np.array([0, 3, 65, 3], dtype=np.int32), 70).tolist()
    [9, 2]
    """
    queue = vector("bitmap_from_queue", "queue", queue, INDEX)
    n = count("bitmap_from_queue", "n", n)
    if location(queue) == "cpu":
        require_memory("bitmap_from_queue", n // 8, f"a bitmap of {n} vertices")
    return call(__name__, "bitmap_from_queue", (queue, n), engine, threads=threads)


def queue_from_bitmap(
    bitmap: Any, n: int, *, dtype: Any = None, engine: str | None = None, threads: int | None = None
) -> Any:
    """List the vertices that a bitmap marks, in increasing order.

    Parameters
    ----------
    bitmap : uint64 array of (n + 63) // 64 words
        Bits past `n` must be 0.
    n : int
    dtype : int32, int64 or None
        Type of the vertices; None takes int32 where n fits.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `bitmap` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    queue : (k,) array of `dtype`

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type; if `bitmap` has another size or marks a vertex past n.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.frontier import queue_from_bitmap
    >>> queue_from_bitmap(np.array([9, 2], dtype=np.uint64), 70).tolist()
    [0, 3, 65]
    """
    bitmap = vector("queue_from_bitmap", "bitmap", bitmap, ("uint64",))
    n = count("queue_from_bitmap", "n", n)
    if bitmap.size != words_for(n):
        raise ValueError(
            f"queue_from_bitmap: bitmap must have {words_for(n)} words for n = {n}, "
            f"got {bitmap.size}"
        )
    if n % 64 and int(bitmap[-1]) >> (n % 64):
        raise ValueError(f"queue_from_bitmap: bitmap marks vertices past n = {n}")
    result = index_type(n) if dtype is None else any_type(dtype)
    if result is None or result.name not in INDEX:
        raise TypeError(f"queue_from_bitmap: dtype must be int32 or int64, got {shown(dtype)}")
    return call(__name__, "queue_from_bitmap", (bitmap, n), engine, dtype=result, threads=threads)


def vertex_out_of_range(n: int, place: int) -> ValueError:
    """The error of all engines for ``queue[place]`` outside 0 .. n - 1."""
    return ValueError(f"bitmap_from_queue: queue[{place}] must be in 0 .. n - 1 with n = {n}")
