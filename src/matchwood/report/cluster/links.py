"""Latency and bandwidth between the ranks of a communicator, measured with our own collectives."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

SMALL_TRIES = 50
LARGE_TRIES = 5
RING_BYTES = 1 << 23  # that each rank sends to the next one


def links(comm: Any) -> dict[str, Any]:
    """Seconds of a small reduction and of a barrier; bytes a second from each rank to the next.

    All ranks call it; None for a single rank, which sends nothing.
    """
    import numpy as np

    if comm.size == 1:
        return {"allreduce": None, "barrier": None, "bandwidth": None}
    word = np.zeros(1)
    block = np.zeros(RING_BYTES, np.uint8)
    counts = [0] * comm.size
    counts[(comm.rank + 1) % comm.size] = RING_BYTES
    ring = _median(comm, lambda: comm.alltoallv(block, counts), LARGE_TRIES)
    return {
        "allreduce": _median(comm, lambda: comm.allreduce(word), SMALL_TRIES),
        "barrier": _median(comm, comm.barrier, SMALL_TRIES),
        "bandwidth": RING_BYTES / ring,
    }


def _median(comm: Any, work: Callable[[], Any], tries: int) -> float:
    """The median time of a call on the slowest rank; the first call is not counted."""
    import numpy as np

    times = []
    for _ in range(tries + 1):
        comm.barrier()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    slowest = comm.allreduce(np.array(times[1:]), "max")
    return statistics.median(slowest.tolist())
