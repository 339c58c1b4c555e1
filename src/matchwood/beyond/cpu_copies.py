"""Words that threads of the host move for the devices: into pinned memory, and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import Team, crew, default_threads, interrupted, kernel, share

Array = np.ndarray[Any, Any]

PAGE = 4096  # bytes
COPY_THREADS = 6  # at most: they fill most of a host's bandwidth, and to call one takes time
PIECE_BYTES = 1 << 20  # of a thread at least: 0.1 ms
LINE = 8  # words of 8 bytes of a cache line
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # of so many bytes


@kernel
def _touch(team: Team, memory: Array) -> None:
    pages = (memory.size + PAGE - 1) // PAGE
    for page in range(team.rank, pages, team.size):
        memory[page * PAGE] = 0


@kernel
def _gather(team: Team, target: Array, at: int, source: Array, begin: Array, done: Array) -> None:
    lo, hi = share(team, target.size)
    row = np.int64(np.searchsorted(done, at + lo, side="right")) - 1
    while lo < hi:
        if interrupted(team, row):
            return
        upto = min(hi, done[row + 1] - at)
        first = begin[row] + at - done[row]
        for i in range(lo, upto):
            target[i] = source[first + i]
        lo = upto
        row += 1


@kernel
def _count_degrees(team: Team, indptr: Array, counts: Array) -> None:
    lo, hi = share(team, indptr.size - 1)
    most, own = counts.shape[1] - 1, counts[team.rank]
    for i in range(lo, hi):
        own[min(most, np.int64(indptr[i + 1]) - np.int64(indptr[i]))] += 1


def touched(size: int, dtype: Any, threads: int | None) -> Array:
    """A new array whose pages are there: to ask the system for them takes most of a copy's time."""
    made = np.empty(size, dtype)
    crew(threads, work=made.nbytes // 8).run(_touch, made.view(np.uint8))
    return made


def copy(target: Array, source: Array, threads: int | None) -> None:
    """The same numbers in both, which have one size; wide indices become narrow ones.

    NumPy copies: a loop of ours over bytes takes ten times as long.
    """
    pieces = min(-(-target.nbytes // PIECE_BYTES), COPY_THREADS)
    each = -(-target.size // max(1, pieces))

    def piece(i: int) -> None:
        part = slice(i * each, (i + 1) * each)
        np.copyto(target[part], source[part], casting="unsafe")

    if pieces <= 1 or threads == 1:
        np.copyto(target, source, casting="unsafe")
    else:
        crew(threads or min(pieces, default_threads()), work=target.size).spread(piece, pieces)


def gather(
    target: Array, at: int, source: Array, begin: Array, done: Array, threads: int | None
) -> None:
    """Fill `target` with words of ranges that lie one after the other, from the word `at` on.

    Range i is the words of `source` from ``begin[i]`` on, as many as ``done[i + 1] - done[i]``.
    """
    words = WORDS[target.itemsize]
    team = crew(threads, work=4 * target.size)
    team.run(_gather, target.view(words), at, np.asarray(source).view(words), begin, done)


def count_degrees(indptr: Array, longest: int, threads: int | None = None) -> Array:
    """counts[d] = rows with d entries; the last counts those with `longest` or more."""
    team = crew(threads, work=indptr.size)
    counts = np.zeros((team.size, -(-(longest + 1) // LINE) * LINE + LINE), np.int64)
    team.run(_count_degrees, indptr, counts[:, : longest + 1])
    found: Array = counts.sum(axis=0)[: longest + 1]
    return found
