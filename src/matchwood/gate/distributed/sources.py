"""Where the entries of a distributed graph come from, and what ranks agree on before they are sent.

A `Source` is one rank's part: arrays that it has, a part of a file, a part of a random stream.  It
can be read more than once, batch after batch, so that a graph need never be in memory as a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.gate.distributed import collecting
from matchwood.gate.distributed.order import HashedOrder

LIMIT = 1.5  # largest part over the mean of the entries, from which vertices are renumbered
ENTRIES = 1024  # entries a rank, on the mean; below that nobody waits for anybody
SAMPLE = 1 << 21  # entries of a rank that are counted; of longer sources, batches evenly spaced


class Source(NamedTuple):
    """The entries of one rank, in the user's ids, within 0 .. n - 1."""

    parts: Callable[..., Iterable[collecting.Entry]]  # parts(k): every k-th batch; parts(): all
    rounds: int  # number of batches
    entries: int  # of all batches together, about
    kind: Any = None  # type of the values, the same on all ranks; None: none have values


def of_arrays(u: Any, v: Any, data: Any, kind: Any) -> Source:
    """The source of arrays in memory."""
    rounds = -(-int(u.shape[0]) // collecting.BATCH)
    return Source(
        lambda stride=1: collecting.batches(u, v, data, stride=stride),
        rounds,
        int(u.shape[0]),
        kind,
    )


def chosen_order(comm: Any, grid: Any, source: Source, order: str) -> HashedOrder | None:
    """How vertices are renumbered; "auto" looks how the entries would lie on the ranks."""
    if order == "auto":
        order = "hashed" if largest_share(comm, grid, source) > LIMIT else "given"
    return HashedOrder(grid.n) if order == "hashed" else None


def largest_share(comm: Any, grid: Any, source: Source) -> float:
    """The most entries that a rank would keep, over the mean; 1.0 where there are only a few."""
    if comm.size == 1:
        return 1.0
    whole = comm.allreduce(np.array([source.entries], np.int64), "sum")
    if int(whole[0]) < ENTRIES * comm.size:
        return 1.0
    counts = comm.allreduce(_sampled(comm, grid, source), "sum")
    return float(counts.max() * comm.size / max(int(counts.sum()), 1))


def _sampled(comm: Any, grid: Any, source: Source) -> Any:
    """How many entries of this rank go to each rank."""
    counts = np.zeros(comm.size, np.int64)
    step = max(source.entries // SAMPLE, 1)
    tally = engines.load("matchwood.gate.distributed", "cpu_routes").tally
    for u, v, _ in source.parts(step):
        if u.shape[0]:
            to, _, _ = collecting.routes(grid, u, v, comm.threads)
            counts += tally(np.ascontiguousarray(to), comm.size, comm.threads)
    return counts
