"""Keys alone, on a team: divide by leading bits, then sort ranges that fit into a cache.

A pass over the keys puts them into 256 ranges: members count the digits of their shares, learn
from all counts where each of them writes, and move their keys.  A range that is still long is
divided again, so that a key (or a prefix) which very many have in common does not leave one member
alone with it.  NumPy sorts the ranges: it has vector code for AVX-512, AVX2 and aarch64, and lets
other threads run.  On AVX-512 it sorts 135 M keys/s of 64 bits in cache and 93 M keys/s beyond it.

No more than 2^20 keys are sorted at once (60 ms without vector code).  Ctrl-C is heard between
ranges.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Crew, Team, barrier, crew, device, kernel, share, stopping
from matchwood.engines.cpu.hints import leading_zeros, prefetch_write

DIGIT_BITS = 8  # see cpu.py
DIGITS = 1 << DIGIT_BITS
AHEAD = 8  # keys from a write to the line that is fetched; as in cpu.py
BLOCK = 1 << 16  # keys between two looks at the stop word
WHOLE = 1 << 18  # keys that a team sorts without a pass before: 2 ms, and 2 MB fit into a cache
ALONE = 1 << 20  # the same for one member: a pass gains it nothing, but Ctrl-C must be heard
PARTS = 4  # a range is divided again if it holds more than 1 / (PARTS * members) of all keys


def undivided(team: Crew) -> int:
    """Keys that are sorted without a pass before."""
    return ALONE if team.size == 1 else WHOLE


class Scratch(NamedTuple):
    """What members tell each other in a pass."""

    differing: Any  # (members, 16): bits in which keys differ, a cache line for each member
    counts: Any  # (members, DIGITS)
    places: Any  # (members, DIGITS)
    bounds: Any  # (DIGITS + 1,): where ranges begin, the result


def scratch(members: int) -> Scratch:
    return Scratch(
        np.zeros((members, 16), np.uint64),
        np.empty((members, DIGITS), np.int64),
        np.empty((members, DIGITS), np.int64),
        np.empty(DIGITS + 1, np.int64),
    )


@device
def differing_bits(team: Team, keys: Any) -> Any:
    """The bits in which keys of this member's share differ from the first key of all."""
    lo, hi = share(team, keys.size)
    found = np.uint64(0)
    if keys.size == 0:
        return found
    first = np.uint64(keys[0])
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        block = keys[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            found |= np.uint64(block[i]) ^ first
    return found


@device
def leading_digit(differing: Any) -> Any:
    """The shift that brings the leading DIGIT_BITS of the differing bits to the bottom."""
    if differing == 0:
        return np.uint64(0)
    top = np.int64(64) - np.int64(leading_zeros(differing))
    return np.uint64(max(np.int64(0), top - DIGIT_BITS))


@device
def _write_places(team: Team, scratch: Scratch) -> None:
    """Where this member writes the keys of each digit; rank 0 says where ranges begin."""
    place = scratch.places[team.rank]
    before = np.int64(0)
    for digit in range(DIGITS):
        if team.rank == 0:
            scratch.bounds[digit] = before
        for rank in range(team.size):
            if rank == team.rank:
                place[digit] = before
            before += scratch.counts[rank, digit]
    if team.rank == 0:
        scratch.bounds[DIGITS] = before


@device
def find_places(team: Team, keys: Any, scratch: Scratch) -> Any:
    """(shift of the digit, whether to stop): what a member must know before it moves its keys.

    The digit is made of the leading bits in which keys differ.  All members count the digits of
    their shares; then each knows where it writes (`scratch.places`), and rank 0 says where ranges
    begin.
    """
    scratch.differing[team.rank, 0] = differing_bits(team, keys)
    if barrier(team):
        return np.uint64(0), True
    differing = np.uint64(0)
    for rank in range(team.size):
        differing |= scratch.differing[rank, 0]
    shift, mask = leading_digit(differing), np.uint64(DIGITS - 1)
    mine = scratch.counts[team.rank]
    mine[:] = 0
    lo, hi = share(team, keys.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        block = keys[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            mine[(np.uint64(block[i]) >> shift) & mask] += 1
    if barrier(team):
        return shift, True
    _write_places(team, scratch)
    return shift, False


@kernel
def _divide(team: Team, keys: Any, out: Any, scratch: Scratch) -> None:
    """Put the keys into ranges by the leading bits in which they differ; equal keys are one."""
    shift, stop = find_places(team, keys, scratch)
    if stop:
        return
    place, mask = scratch.places[team.rank], np.uint64(DIGITS - 1)
    lo, hi = share(team, keys.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        block = keys[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            digit = (np.uint64(block[i]) >> shift) & mask
            target = np.uint64(place[digit])
            place[digit] = target + np.uint64(1)
            out[target] = block[i]
            prefetch_write(out, target + np.uint64(AHEAD))
    if barrier(team):
        return


class Range(NamedTuple):
    """Keys lo .. hi - 1, all below the keys of the next range; `away`: in the second buffer."""

    lo: int
    hi: int
    away: bool


def ranges_of(words: Scratch) -> list[Range]:
    """The ranges that a pass has made, those without keys left out."""
    bounds = itertools.pairwise(words.bounds.tolist())
    return [Range(a, b, False) for a, b in bounds if a < b]


def sort_ranges(
    team: Crew, keys: Any, other: Any, ranges: list[Range], words: Scratch | None = None
) -> None:
    """Sort within ranges; the result is in `keys`.  `other` has the same size."""
    words = words or scratch(team.size)
    buffers = (keys, other)
    longest = min(max(undivided(team), keys.size // (PARTS * team.size)), ALONE)
    waiting, ready = list(ranges), []
    while waiting:
        lo, hi, away = waiting.pop()
        if hi - lo <= longest:
            ready.append(Range(lo, hi, away))
            continue
        team.run(_divide, buffers[away][lo:hi], buffers[not away][lo:hi], words)
        starts = (words.bounds + lo).tolist()
        if (hi - lo) in np.diff(words.bounds):
            # one range only: all keys are equal, since they differ in the digit otherwise
            ready.append(Range(lo, hi, not away))
        else:
            waiting += [Range(a, b, not away) for a, b in itertools.pairwise(starts) if a < b]
    ready.sort(key=lambda part: part.lo - part.hi)  # the longest first, so that none is left alone

    def finish(i: int) -> None:
        lo, hi, away = ready[i]
        part = buffers[away][lo:hi]
        if hi - lo <= longest:
            part.sort()
        if away:
            keys[lo:hi] = part

    team.spread(finish, len(ready))


def sort_keys(keys: Any, *, threads: int | None = None) -> Any:
    """See matchwood.primitives.sort.sort_keys."""
    n = keys.size
    team = crew(threads, work=4 * n)
    found = np.empty(n, keys.dtype)
    if n <= undivided(team):
        found[:] = keys
        team.spread(lambda _: found.sort(), 1)
        return found
    words = scratch(team.size)
    team.run(_divide, np.ascontiguousarray(keys), found, words)
    ranges = ranges_of(words)
    if len(ranges) > 1:
        sort_ranges(team, found, np.empty(n, keys.dtype), ranges, words)
    return found
