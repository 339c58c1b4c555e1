"""Sorts on a team: keys with a payload by a radix sort; keys alone by ranges, further below.

Radix sort: least significant digit first, one stable pass a digit of 8 bits.  In a pass each member
counts the digits of its share; all learn from all counts where the digits of each member start in
the output; each member moves its share there, in order.  Places are disjoint, so there are no
races.  Passes alternate between two buffers, and the input is only read.

Two things make it fast.  The bits in which keys differ at all are found first, and digits are laid
over those bits alone: keys below 2^20 cost three passes, whatever their width.  And each write
fetches the next cache line of its digit: 256 streams are more than the hardware follows, and a
pass over 10 M pairs takes 29 instead of 72 ms (one thread of a Xeon, bench/primitives/sort.py).
Collecting whole lines and streaming them out was no faster (26 against 24 ms, packed pairs).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import Crew, Team, barrier, crew, device, kernel, share, stopping
from matchwood.engines.cpu.hints import leading_zeros, prefetch_write, trailing_zeros

Array = np.ndarray[Any, Any]

DIGIT_BITS = 8  # 256 counters and twice as many lines being written stay in a first-level cache
DIGITS = 1 << DIGIT_BITS
AHEAD = 8  # elements from a write to the line that is fetched; 16 measured 20 % slower
BLOCK = 1 << 16  # elements between two checks of the stop word

UNSIGNED, SIGNED, FLOATING = 0, 1, 2
_KINDS = {"u": UNSIGNED, "i": SIGNED, "f": FLOATING}


class Scratch(NamedTuple):
    """What members share in a pass."""

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


class Buffers(NamedTuple):
    """Room for two sets of all pairs, between which passes alternate."""

    keys_a: Any
    payload_a: Any
    keys_b: Any
    payload_b: Any


@device
def _encode(key: Any, kind: int, ones: Any) -> Any:
    """The unsigned number that stands for a key; see reference.order_bits.  `ones`: all bits."""
    sign = ones ^ (ones >> np.uint64(1))
    if kind == SIGNED:
        return key ^ sign
    if kind == FLOATING:
        return key ^ (ones if key & sign else sign)
    return np.uint64(key)


@device
def _decode(code: Any, kind: int, ones: Any) -> Any:
    """The key that `_encode` turned into `code`."""
    sign = ones ^ (ones >> np.uint64(1))
    if kind == SIGNED:
        return code ^ sign
    if kind == FLOATING:
        return code ^ (sign if code & sign else ones)
    return np.uint64(code)


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
def all_differing(team: Team, scratch: Scratch) -> Any:
    """The bits in which any keys differ: of all members, after a barrier."""
    found = np.uint64(0)
    for me in range(team.size):
        found |= scratch.differing[me, 0]
    return found


@device
def _encode_share(team: Team, keys: Any, kind: int, ones: Any, codes: Any) -> Any:
    """The bits in which the keys of this member's share differ from the first key of all.

    Keys that are not unsigned already are also written to `codes`, encoded.
    """
    if kind == UNSIGNED or keys.size == 0:
        return differing_bits(team, keys)
    lo, hi = share(team, keys.size)
    differing, first = np.uint64(0), _encode(keys[0], kind, ones)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        source = keys[start : min(start + BLOCK, hi)]
        target = codes[start : min(start + BLOCK, hi)]
        for i in range(source.size):
            code = _encode(source[i], kind, ones)
            differing |= code ^ first
            target[i] = code
    return differing


@device
def write_places(team: Team, keys: Any, shift: Any, mask: Any, scratch: Scratch) -> bool:
    """Note where this member writes the keys of each digit; member 0 notes where ranges begin.

    All members count the digits of their shares first.  True: the team stops.
    """
    mine = scratch.counts[team.me]
    mine[:] = 0
    lo, hi = share(team, keys.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        block = keys[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            mine[(np.uint64(block[i]) >> shift) & mask] += 1
    if barrier(team):
        return True
    place = scratch.places[team.me]
    before = np.int64(0)
    for digit in range(DIGITS):
        if team.me == 0:
            scratch.bounds[digit] = before
        for me in range(team.size):
            if me == team.me:
                place[digit] = before
            before += scratch.counts[me, digit]
    if team.me == 0:
        scratch.bounds[DIGITS] = before
    return False


@device
def _move_by_digit(
    team: Team, keys: Any, payload: Any, shift: Any, bits: Any, scratch: Scratch, out_keys: Any,
    out_payload: Any,
) -> bool:  # fmt: skip
    """A pass by the digit of `bits` at `shift`; `payload` None: positions.  True: team stops."""
    digit_mask = (bits >> shift) & np.uint64(DIGITS - 1)
    if write_places(team, keys, shift, digit_mask, scratch):
        return True
    place = scratch.places[team.me]
    lo, hi = share(team, keys.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        block = keys[start : min(start + BLOCK, hi)]
        if payload is not None:
            carried = payload[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            key = block[i]
            digit = (key >> shift) & digit_mask
            target = np.uint64(place[digit])
            place[digit] = target + np.uint64(1)
            out_keys[target] = key
            if payload is None:
                out_payload[target] = start + i
            else:
                out_payload[target] = carried[i]
            prefetch_write(out_keys, target + np.uint64(AHEAD))
            prefetch_write(out_payload, target + np.uint64(AHEAD))
    return barrier(team)


@kernel
def _sort(
    team: Team, keys: Any, payload: Any, kind: int, ones: Any, bits: Any, scratch: Scratch,
    buffers: Buffers, passes: Any,
) -> None:  # fmt: skip
    """Sort by the bits in `bits`; passes[0] says how many passes it took.

    After an odd number the result is in what was passed as a, after an even number (or none) in b.
    """
    keys_a, payload_a, keys_b, payload_b = buffers
    scratch.differing[team.me, 0] = _encode_share(team, keys, kind, ones, keys_b)
    if barrier(team):
        return
    left = all_differing(team, scratch) & bits
    done = 0
    if left != 0:
        shift = trailing_zeros(left)
        left &= ~(np.uint64(DIGITS - 1) << shift)
        source = keys if kind == UNSIGNED else keys_b
        if _move_by_digit(team, source, payload, shift, bits, scratch, keys_a, payload_a):
            return
        done = 1
    while left != 0:
        shift = trailing_zeros(left)
        left &= ~(np.uint64(DIGITS - 1) << shift)
        if _move_by_digit(team, keys_a, payload_a, shift, bits, scratch, keys_b, payload_b):
            return
        keys_a, keys_b = keys_b, keys_a  # the result is always in a
        payload_a, payload_b = payload_b, payload_a
        done += 1
    lo, hi = share(team, keys.size)
    if done == 0:
        for i in range(lo, hi):
            keys_b[i] = keys[i]
            if payload is None:
                payload_b[i] = i
            else:
                payload_b[i] = payload[i]
    elif kind != UNSIGNED:
        result = keys_a[lo:hi]
        for i in range(result.size):
            result[i] = _decode(result[i], kind, ones)
    if team.me == 0:
        passes[0] = done


def sort_pairs(
    keys: Array, payload: Array | None = None, *, bits: int | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    n, width = keys.size, 8 * keys.dtype.itemsize
    unsigned = np.ascontiguousarray(keys).view(f"u{keys.dtype.itemsize}")
    carried = index_type(n) if payload is None else payload.dtype
    if payload is not None:
        payload = np.ascontiguousarray(payload)
    buffers = Buffers(*(np.empty(n, kind) for kind in (unsigned.dtype, carried) * 2))
    team = crew(threads, work=4 * n)
    passes = np.zeros(1, np.int64)
    ones = np.uint64((1 << width) - 1)
    looked_at = np.uint64((1 << (width if bits is None else bits)) - 1)
    kind = _KINDS[keys.dtype.kind]
    words = scratch(team.size)
    team.run(_sort, unsigned, payload, kind, ones, looked_at, words, buffers, passes)
    result = buffers[:2] if passes[0] % 2 else buffers[2:]
    return result[0].view(keys.dtype), result[1]


# Keys alone: divided by leading bits, then ranges that fit into a cache are sorted.
#
# A pass over the keys puts them into 256 ranges: members count the digits of their shares, learn
# from all counts where each of them writes, and move their keys.  A range that is still long is
# divided again, so that a key (or a prefix) which very many have in common does not leave one
# member alone with it.  NumPy sorts the ranges: it has vector code for AVX-512, AVX2 and aarch64,
# and lets other threads run.  On AVX-512 it sorts 135 M keys/s of 64 bits in cache and 93 M keys/s
# beyond it.
#
# No more than MEMBER_KEYS keys are sorted at once (60 ms without vector code); Ctrl-C takes effect
# between ranges.

TEAM_KEYS = 1 << 18  # keys that a team sorts without a pass before: 2 ms; 2 MB fit into a cache
MEMBER_KEYS = 1 << 20  # the same for one member: only a stop for Ctrl-C makes a pass worth it
PARTS = 4  # a range is divided again if it holds more than 1 / (PARTS * members) of all keys


def undivided(team: Crew) -> int:
    """The number of keys that are sorted without a pass before."""
    return MEMBER_KEYS if team.size == 1 else TEAM_KEYS


@device
def leading_digit(differing: Any) -> Any:
    """The shift that brings the leading DIGIT_BITS of the differing bits to the bottom."""
    if differing == 0:
        return np.uint64(0)
    top = np.int64(64) - np.int64(leading_zeros(differing))
    return np.uint64(max(np.int64(0), top - DIGIT_BITS))


@device
def find_places(team: Team, keys: Any, scratch: Scratch) -> Any:
    """(shift of the digit, whether to stop): what a member must know before it moves its keys.

    The digit is made of the leading bits in which keys differ.  All members count the digits of
    their shares, which says where each writes (`scratch.places`), and where ranges begin.
    """
    scratch.differing[team.me, 0] = differing_bits(team, keys)
    if barrier(team):
        return np.uint64(0), True
    shift = leading_digit(all_differing(team, scratch))
    return shift, write_places(team, keys, shift, np.uint64(DIGITS - 1), scratch)


@kernel
def _divide(team: Team, keys: Any, out: Any, scratch: Scratch) -> None:
    """Put the keys into ranges by the leading bits in which they differ; equal keys are one."""
    shift, stop = find_places(team, keys, scratch)
    if stop:
        return
    place, mask = scratch.places[team.me], np.uint64(DIGITS - 1)
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
    longest = min(max(undivided(team), keys.size // (PARTS * team.size)), MEMBER_KEYS)
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
