"""Words that threads of the host move for the devices: into pinned memory, and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import Team, crew, interrupted, kernel, share

Array = np.ndarray[Any, Any]

PAGE = 4096  # bytes
LINE = 8  # words of 8 bytes of a cache line
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # of so many bytes


@kernel
def _touch(team: Team, memory: Array) -> None:
    lo, hi = share(team, (memory.size + PAGE - 1) // PAGE)
    for page in range(lo, hi):
        if interrupted(team, page):
            return
        memory[page * PAGE] = 0


@kernel
def _gather(team: Team, target: Array, at: int, source: Array, begin: Array, done: Array) -> None:
    """One member works: each thread fills another target."""
    lo, hi = 0, target.size
    row = np.int64(np.searchsorted(done, at, side="right")) - 1
    while lo < hi:
        upto = min(hi, done[row + 1] - at)
        first = begin[row] + at - done[row]
        for i in range(lo, upto):
            target[i] = source[first + i]
        lo = upto
        row += 1


@kernel
def _find_rows(team: Team, indptr: Array, ids: Array, begin: Array, length: Array) -> None:
    lo, hi = share(team, ids.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin[i] = indptr[ids[i]]
        length[i] = indptr[ids[i] + 1] - indptr[ids[i]]


@kernel
def _count_degrees(team: Team, indptr: Array, counts: Array) -> None:
    lo, hi = share(team, indptr.size - 1)
    most, own = counts.shape[1] - 1, counts[team.rank]
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        own[min(most, np.int64(indptr[i + 1]) - np.int64(indptr[i]))] += 1


def touched(size: int, dtype: Any, threads: int | None) -> Array:
    """A new array whose pages are there: to ask the system for them takes most of a copy's time."""
    made = np.empty(size, dtype)
    crew(threads, work=made.nbytes // 8).run(_touch, made.view(np.uint8))
    return made


def copy(target: Array, source: Array) -> None:
    """The same numbers in both, which have one size; wide indices become narrow ones.

    NumPy copies: a loop of ours over bytes takes ten times as long.
    """
    np.copyto(target, source, casting="unsafe")


def gather(target: Array, at: int, source: Array, begin: Array, done: Array) -> None:
    """Fill `target` with words of ranges that lie one after the other, from the word `at` on.

    Range i is the words of `source` from ``begin[i]`` on, as many as ``done[i + 1] - done[i]``.
    """
    if source.dtype != target.dtype:
        there = np.empty(target.size, source.dtype)
        gather(there, at, source, begin, done)
        copy(target, there)
        return
    words = WORDS[target.itemsize]
    crew(1, work=0).run(
        _gather, target.view(words), at, np.asarray(source).view(words), begin, done
    )


def find_rows(indptr: Array, ids: Array, threads: int | None) -> tuple[Array, Array]:
    """Where the rows of `ids` begin; and where, when they lie one after the other, with the end."""
    begin, offsets = np.empty(ids.size, np.int64), np.zeros(ids.size + 1, np.int64)
    crew(threads, work=8 * ids.size).run(_find_rows, indptr, ids, begin, offsets[1:])
    np.cumsum(offsets, out=offsets)
    return begin, offsets


def count_degrees(indptr: Array, longest: int, threads: int | None = None) -> Array:
    """counts[d] = rows with d entries; the last counts those with `longest` or more."""
    team = crew(threads, work=indptr.size)
    counts = np.zeros((team.size, -(-(longest + 1) // LINE) * LINE + LINE), np.int64)
    team.run(_count_degrees, indptr, counts[:, : longest + 1])
    found: Array = counts.sum(axis=0)[: longest + 1]
    return found
