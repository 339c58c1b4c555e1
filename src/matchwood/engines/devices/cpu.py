"""Copies by threads of the host, into the pinned memory that devices read, and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    Team,
    back_off,
    barrier,
    crew,
    default_threads,
    device,
    interrupted,
    kernel,
    load_acquire,
    next_chunk,
    share,
    stopping,
    store_release,
)
from matchwood.engines.cpu.compiled import Later, intrinsic
from matchwood.engines.cpu.team import STOP

Array = np.ndarray[Any, Any]
ir, types, cgutils = map(Later, ("llvmlite.ir", "numba.core.types", "numba.core.cgutils"))

PAGE = 4096  # bytes
LINE = 8  # words of 8 bytes of a cache line
COPY_THREADS = 12  # at most: they use most of a host's bandwidth, and each takes time to call
FILL_THREADS = 14  # at most, of a team that is called once; see `Filling` of pinned.py
OTHER_THREADS = 2  # cores that such a team leaves to the caller and to CUDA
THREAD_BYTES = 1 << 18  # of a copy, for each thread that is called
CHUNK = 1 << 18  # bytes that a thread takes at a time, so that others help one that was held up

# Counters that the caller of `fill` shares with its team, each in a cache line of its own.
FILLED, LEFT, ENDED, FILLING_WORDS = 0, LINE, 2 * LINE, 3 * LINE


@intrinsic
def _move(typingctx: Any, target: Any, source: Any, nbytes: Any) -> Any:
    """The C library's memcpy between two addresses: it knows the machine's fastest stores."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        there, here = (builder.inttoptr(address, byte) for address in args[:2])
        cgutils.raw_memcpy(builder, there, here, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), codegen


@kernel
def _touch(team: Team, memory: Array) -> None:
    lo, hi = share(team, (memory.size + PAGE - 1) // PAGE)
    for page in range(lo, hi):
        if interrupted(team, page):
            return
        memory[page * PAGE] = 0


@device
def _copy_chunks(team: Team, moves: Array) -> None:
    """Do all moves; moves[k] = (address to, address from, bytes)."""
    total = moves[:, 2].sum()
    while True:
        lo = next_chunk(team, total, CHUNK)
        if lo < 0:
            return
        hi, done = min(lo + CHUNK, total), 0
        for k in range(moves.shape[0]):
            first, last = max(lo, done), min(hi, done + moves[k, 2])
            if first < last:
                _move(moves[k, 0] + first - done, moves[k, 1] + first - done, last - first)
            done += moves[k, 2]


@kernel
def _copy(team: Team, moves: Array) -> None:
    _copy_chunks(team, moves)


@device
def _ends(team: Team, words: Array) -> bool:
    """Whether the caller has ended the fill.  The first member that sees it stops all others."""
    if load_acquire(words, ENDED) != 0:
        store_release(team.words, STOP, 1)
    return stopping(team)


@kernel
def _fill(team: Team, moves: Array, firsts: Array, slots: int, words: Array) -> None:
    """Turn t is the moves firsts[t] to firsts[t + 1] - 1; the device has read LEFT turns."""
    for turn in range(firsts.size - 1):
        looks = 0
        while load_acquire(words, LEFT) + slots <= turn:
            if _ends(team, words):
                return
            looks = back_off(looks)
        _copy_chunks(team, moves[firsts[turn] : firsts[turn + 1]])
        if barrier(team) or _ends(team, words):
            return
        if team.me == 0:
            store_release(words, FILLED, turn + 1)


@kernel
def _convert(team: Team, target: Array, source: Array) -> None:
    lo, hi = share(team, target.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        target[i] = source[i]


@kernel
def _gather(team: Team, target: int, at: int, size: int, source: int, itemsize: int,
            begin: Array, done: Array) -> None:  # fmt: skip
    """See `gather`; `target` and `source` are addresses.  Each member takes the next words."""
    words = max(1, CHUNK // itemsize)
    while True:
        lo = next_chunk(team, size, words)
        if lo < 0:
            return
        hi = min(lo + words, size)
        row = np.int64(np.searchsorted(done, at + lo, side="right")) - 1
        while lo < hi:
            upto = min(hi, done[row + 1] - at)
            first = begin[row] + at + lo - done[row]
            _move(target + lo * itemsize, source + first * itemsize, (upto - lo) * itemsize)
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
    most, own = counts.shape[1] - 1, counts[team.me]
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        own[min(most, np.int64(indptr[i + 1]) - np.int64(indptr[i]))] += 1


def touched(size: int, dtype: Any, threads: int | None) -> Array:
    """A new array whose pages are mapped already: to map them takes most of a copy's time."""
    made = np.empty(size, dtype)
    crew(threads, work=made.nbytes // 8).run(_touch, made.view(np.uint8))
    return made


def _team(nbytes: int, threads: int | None) -> Crew:
    """The threads for a copy of `nbytes` bytes."""
    most = min(COPY_THREADS, threads or default_threads(), nbytes // THREAD_BYTES)
    return crew(max(1, most), work=nbytes // 8)


def copy(pairs: Sequence[tuple[Array, Array]], threads: int | None) -> None:
    """Copy each source of (target, source) to its target; wide indices become narrow ones."""
    moves = []
    for target, source in pairs:
        if target.dtype == source.dtype and source.flags.c_contiguous:
            moves.append((target.ctypes.data, source.ctypes.data, target.nbytes))
        else:
            _team(target.nbytes, threads).run(_convert, target, np.asarray(source))
    if moves:
        table = np.array(moves, np.int64)
        _team(int(table[:, 2].sum()), threads).run(_copy, table)


def fill_threads(threads: int | None, partitions: int) -> int:
    """The number of threads in each team that fills slots, one team for each partition."""
    most = min(FILL_THREADS, (threads or default_threads()) - OTHER_THREADS)
    return max(1, most // partitions)


def fill(moves: Array, firsts: Array, slots: int, words: Array, threads: int) -> None:
    """Fill turn after turn, each when its slot is free, until the last, or until ENDED is set."""
    crew(threads, work=0).run(_fill, moves, firsts, slots, words)


def gather(
    target: Array, at: int, source: Array, begin: Array, done: Array, threads: int | None = 1
) -> None:
    """Fill `target` with words of ranges that lie one after the other, from the word `at` on.

    Range i is the words of `source` from ``begin[i]`` on, as many as ``done[i + 1] - done[i]``.
    """
    if source.dtype != target.dtype:
        there = np.empty(target.size, source.dtype)
        gather(there, at, source, begin, done, threads)
        copy([(target, there)], threads)
        return
    _team(target.nbytes, threads).run(
        _gather, target.ctypes.data, at, target.size, source.ctypes.data, target.itemsize,
        begin, done,
    )  # fmt: skip


def find_rows(indptr: Array, ids: Array, threads: int | None) -> tuple[Array, Array]:
    """(begin, offsets): where the rows of `ids` begin in the graph, and when put together."""
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
