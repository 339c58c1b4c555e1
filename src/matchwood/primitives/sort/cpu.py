"""Radix sort on a team: least significant digit first, one stable pass a digit of 8 bits.

A pass: each member counts the digits of its share; all learn from all counts where the digits of
each member start in the output; each member moves its share there, in order.  Places are disjoint,
so there are no races.  Passes alternate between two buffers, and the input is only read.

Two things make it fast.  The bits in which keys differ at all are found first, and digits are laid
over those bits alone: keys below 2^20 cost three passes, whatever their width.  And each write
fetches the next cache line of its digit: 256 streams are more than the hardware follows, and a
pass over 10 M pairs takes 29 instead of 72 ms (one thread of a Xeon, bench/primitives/sort.py).
Collecting whole lines and streaming them out was no faster (26 against 24 ms, packed pairs).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import Team, barrier, crew, device, kernel, share, stopping
from matchwood.engines.cpu.hints import prefetch_write, trailing_zeros
from matchwood.primitives.sort.cpu_keys import sort_keys as sort_keys

DIGIT_BITS = 8  # 256 counters and twice as many lines being written stay in a first-level cache
DIGITS = 1 << DIGIT_BITS
AHEAD = 8  # elements from a write to the line that is fetched; 16 measured 20 % slower
BLOCK = 1 << 16  # elements between two checks of the stop word

UNSIGNED, SIGNED, FLOATING = 0, 1, 2
_KINDS = {"u": UNSIGNED, "i": SIGNED, "f": FLOATING}


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
def _encode_share(team: Team, keys: Any, kind: int, ones: Any, codes: Any) -> Any:
    """The bits in which the keys of this member's share differ from the first key of all.

    Keys that are not unsigned already are also written to `codes`, encoded.
    """
    lo, hi = share(team, keys.size)
    differing = np.uint64(0)
    if keys.size == 0:
        return differing
    first = _encode(keys[0], kind, ones)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        source = keys[start : min(start + BLOCK, hi)]
        target = codes[start : min(start + BLOCK, hi)]
        if kind == UNSIGNED:
            for i in range(source.size):
                differing |= source[i] ^ first
        else:
            for i in range(source.size):
                code = _encode(source[i], kind, ones)
                differing |= code ^ first
                target[i] = code
    return differing


@device
def _move_by_digit(
    team: Team,
    keys: Any,
    payload: Any,
    shift: Any,
    bits: Any,
    counts: Any,
    places: Any,
    out_keys: Any,
    out_payload: Any,
) -> bool:
    """One pass, by the DIGIT_BITS bits of `bits` from `shift` on.  True: the team stops.

    `payload` None stands for positions.
    """
    mine = counts[team.rank]
    mine[:] = 0
    lo, hi = share(team, keys.size)
    digit_mask = (bits >> shift) & np.uint64(DIGITS - 1)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            break
        block = keys[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            mine[(block[i] >> shift) & digit_mask] += 1
    if barrier(team):
        return True
    place = places[team.rank]
    before = np.int64(0)
    for digit in range(DIGITS):
        for rank in range(team.size):
            if rank == team.rank:
                place[digit] = before
            before += counts[rank, digit]
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
    team: Team,
    keys: Any,
    payload: Any,
    kind: int,
    ones: Any,
    bits: Any,
    counts: Any,
    places: Any,
    differing: Any,
    buffers: Buffers,
    passes: Any,
) -> None:
    """Sort by the bits in `bits`; passes[0] says how many passes it took.

    The result of an odd number is in what came as a, of an even number (or none) in b.
    `differing` has a line of words for each member.
    """
    keys_a, payload_a, keys_b, payload_b = buffers
    differing[team.rank, 0] = _encode_share(team, keys, kind, ones, keys_b)
    if barrier(team):
        return
    left = np.uint64(0)
    for rank in range(team.size):
        left |= differing[rank, 0]
    left &= bits
    done = 0
    if left != 0:
        shift = trailing_zeros(left)
        left &= ~(np.uint64(DIGITS - 1) << shift)
        source = keys if kind == UNSIGNED else keys_b
        if _move_by_digit(team, source, payload, shift, bits, counts, places, keys_a, payload_a):
            return
        done = 1
    while left != 0:
        shift = trailing_zeros(left)
        left &= ~(np.uint64(DIGITS - 1) << shift)
        if _move_by_digit(team, keys_a, payload_a, shift, bits, counts, places, keys_b, payload_b):
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
    if team.rank == 0:
        passes[0] = done


def sort_pairs(
    keys: np.ndarray[Any, Any],
    payload: np.ndarray[Any, Any] | None = None,
    *,
    bits: int | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """See matchwood.primitives.sort.radix_sort."""
    n, width = keys.size, 8 * keys.dtype.itemsize
    unsigned = np.ascontiguousarray(keys).view(f"u{keys.dtype.itemsize}")
    carried = index_type(n) if payload is None else payload.dtype
    if payload is not None:
        payload = np.ascontiguousarray(payload)
    buffers = Buffers(*(np.empty(n, kind) for kind in (unsigned.dtype, carried) * 2))
    team = crew(threads, work=4 * n)
    counts = np.empty((2, team.size, DIGITS), np.int64)
    differing = np.zeros((team.size, 16), np.uint64)
    passes = np.zeros(1, np.int64)
    ones = np.uint64((1 << width) - 1)
    looked_at = np.uint64((1 << (width if bits is None else bits)) - 1)
    kind = _KINDS[keys.dtype.kind]
    team.run(_sort, unsigned, payload, kind, ones, looked_at, *counts, differing, buffers, passes)
    result = buffers[:2] if passes[0] % 2 else buffers[2:]
    return result[0].view(keys.dtype), result[1]
