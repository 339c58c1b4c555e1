"""Where the entries of a distributed graph come from, and how its vertices are renumbered.

A `Source` is one rank's part: arrays that it has, a part of a file, a part of a random stream.  It
can be read more than once, batch after batch, so that a graph need never be in memory as a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.gate.distributed import collecting
from matchwood.primitives.hashing import GOLDEN, mix64
from matchwood.primitives.hashing.reference import mix64_number

MOST_UNEVEN = 1.5  # largest part over the mean of the entries, from which vertices are renumbered
FEW_ENTRIES = 1024  # of a rank, on the mean; below that nobody waits for anybody
SAMPLED_ENTRIES = 1 << 21  # of a rank that are counted; of longer sources, batches evenly spaced
ROUNDS = 6
KEY = 0x6D617463_68776F6F  # any number: all ranks and all runs use the same permutation


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
        order = "hashed" if largest_share(comm, grid, source) > MOST_UNEVEN else "given"
    return HashedOrder(grid.n) if order == "hashed" else None


def largest_share(comm: Any, grid: Any, source: Source) -> float:
    """The most entries that a rank would keep, over the mean; 1.0 where there are only a few."""
    if comm.size == 1:
        return 1.0
    whole = comm.allreduce(np.array([source.entries], np.int64), "sum")
    if int(whole[0]) < FEW_ENTRIES * comm.size:
        return 1.0
    counts = comm.allreduce(_sampled(comm, grid, source), "sum")
    return float(counts.max() * comm.size / max(int(counts.sum()), 1))


def _sampled(comm: Any, grid: Any, source: Source) -> Any:
    """How many entries of this rank go to each rank."""
    counts = np.zeros(comm.size, np.int64)
    step = max(source.entries // SAMPLED_ENTRIES, 1)
    count = engines.load(__package__, "cpu").count_by_rank
    for u, v, _ in source.parts(step):
        if u.shape[0]:
            to, _, _ = collecting.routes(grid, u, v, comm.threads)
            counts += count(np.ascontiguousarray(to), comm.size, comm.threads)
    return counts


class HashedOrder:
    """A permutation of 0 .. n - 1, for graphs whose numbers have structure.

    `inside` numbers are those of the grid, whose stripes they decide; users see only theirs.  A
    Feistel network of the next even number of bits, applied again while it leads outside of
    0 .. n - 1.  Both directions are computed, so no rank keeps a table of n numbers.
    """

    name = "hashed"

    def __init__(self, n: int) -> None:
        self.n = n
        self.half = max(1, ((max(n, 2) - 1).bit_length() + 1) // 2)
        self.keys = np.array(
            [mix64_number(KEY + k * GOLDEN & (2**64 - 1)) for k in range(ROUNDS)], np.uint64
        )

    def inside(self, ids: Any, threads: int | None = 1) -> Any:
        """The grid's numbers of these vertices."""
        return self._mapped(ids, self.keys, threads)

    def user(self, ids: Any, threads: int | None = 1) -> Any:
        """The user's numbers of the grid's."""
        return self._mapped(ids, self.keys[::-1].copy(), threads, back=True)

    def _mapped(self, ids: Any, keys: Any, threads: int | None, back: bool = False) -> Any:
        if engines.location(ids) == "gpu":
            return self.mapped_arrays(ids, keys, back)
        ids = np.ascontiguousarray(ids)
        out = np.empty_like(ids)
        engine = engines.load(__package__, "cpu")
        engine.permute(ids, self.n, self.half, keys, back, out, threads)
        return out

    def mapped_arrays(self, ids: Any, keys: Any, back: bool) -> Any:
        """The same by operations on whole arrays, NumPy's or CuPy's; the steps: cpu.py."""
        xp = engines.xp(ids)
        half, mask = np.uint64(self.half), np.uint64((1 << self.half) - 1)
        found = ids.astype(np.uint64)
        left = xp.arange(found.shape[0])  # which of them are not below n yet
        while left.shape[0]:
            high, low = found[left] >> half, found[left] & mask
            for key in keys:
                if back:
                    high, low = low ^ (mix64(high + key) & mask), high
                else:
                    high, low = low, high ^ (mix64(low + key) & mask)
            found[left] = (high << half) | low
            left = left[found[left] >= np.uint64(self.n)]
        return found.astype(ids.dtype)
