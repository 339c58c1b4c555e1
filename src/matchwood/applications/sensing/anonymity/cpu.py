"""The loops around AES for Crypto-PAn, and the rounds of the permutation.

Addresses are sorted, packed with their places: (address << 32) | place.  A block of AES decides
one bit of one prefix, so an address needs blocks only for the prefixes that it does not share with
the address before it; the other bits are its neighbour's.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, share, stopping
from matchwood.primitives.sort.cpu import BLOCK, sort_keys

Array = np.ndarray[Any, Any]

BITS = 32  # of an address
TABLE_BITS = 16  # the first 16 levels are read from a table
ROUNDS = 10
_LITTLE = sys.byteorder == "little"
_HALF = np.uint64(32)
_ONE, _ALL = np.uint32(1), np.uint32(0xFFFFFFFF)
_LOW = np.uint32(0xFFFF)

# What `write_blocks` and `read_flips` share, one int64 each: where they are in the addresses
START, STOP, BLOCKS = range(3)
STATE_WORDS = 3


@kernel
def pack_places(team: Team, addresses: Array, packed: Array, falls: Array) -> None:
    """Pack addresses above their places; falls[member]: how often one is below its predecessor."""
    lo, hi = share(team, addresses.size)
    found = 0
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        end = min(start + BLOCK, hi)
        before = addresses[max(start, 1) - 1]
        for k in range(start, end):
            address = addresses[k]
            packed[k] = (np.uint64(address) << _HALF) | np.uint64(k)
            found += address < before
            before = address
    falls[team.me] = found


def sorted_with_places(addresses: Array, threads: int | None) -> Array:
    """(address << 32) | place, ascending."""
    team = crew(threads, work=addresses.size)
    packed, falls = np.empty(addresses.size, np.uint64), np.zeros(team.size, np.int64)
    team.run(pack_places, np.ascontiguousarray(addresses), packed, falls)
    return sort_keys(packed, threads=threads) if falls.any() else packed


@device
def _first_level(address: np.uint32, before: np.uint32, known: bool) -> int:
    """The first level after the table's whose prefix differs from that of the address before."""
    if not known:
        return TABLE_BITS
    differing, level = address ^ before, 0
    while level < BITS and (differing >> np.uint32(BITS - 1 - level)) & _ONE == 0:
        level += 1
    return max(TABLE_BITS, level + 1)


@kernel
def write_blocks(team: Team, packed: Array, pad: np.uint32, words: Array, state: Array) -> None:
    """Write the first word of each block that is needed from state[START] on.

    Stops where the next address might not fit; state[STOP] is that address.
    """
    k, count, room = state[START], 0, words.shape[0]
    before, known = np.uint32(0), False
    while k < packed.size and count + (BITS - TABLE_BITS) <= room:
        if interrupted(team, k):
            return
        address = np.uint32(packed[k] >> _HALF)
        for level in range(_first_level(address, before, known), BITS):
            mask = ~(_ALL >> np.uint32(level))
            word = (address & mask) | (pad & ~mask)
            words[count, 0] = _network(word)
            count += 1
        before, known = address, True
        k += 1
    state[STOP], state[BLOCKS] = k, count


@device
def _network(word: np.uint32) -> np.uint32:
    """The word whose bytes in memory are those of `word` from the top down."""
    if _LITTLE:
        return np.uint32(
            (word >> np.uint32(24))
            | ((word >> np.uint32(8)) & np.uint32(0xFF00))
            | ((word << np.uint32(8)) & np.uint32(0xFF0000))
            | (word << np.uint32(24))
        )
    return word


@kernel
def read_flips(
    team: Team, packed: Array, table: Array, secret: Array, out: Array, state: Array
) -> None:
    """Turn the top bits of the encrypted blocks into addresses, walking as `write_blocks` does."""
    count = 0
    before, known, flips = np.uint32(0), False, np.uint32(0)
    for k in range(state[START], state[STOP]):
        if interrupted(team, k):
            return
        address = np.uint32(packed[k] >> _HALF)
        first = _first_level(address, before, known)
        # keep the bits of the levels above `first`, which the neighbour shares
        flips = flips & ~(_ALL >> np.uint32(first)) if first < BITS else flips
        for level in range(first, BITS):
            bit = np.uint32(secret[count, 0] >> np.uint8(7))
            flips |= bit << np.uint32(BITS - 1 - level)
            count += 1
        flips = (flips & _LOW) | (np.uint32(table[address >> np.uint32(16)]) << np.uint32(16))
        out[packed[k] & np.uint64(0xFFFFFFFF)] = address ^ flips
        before, known = address, True


@kernel
def permute(team: Team, addresses: Array, tables: Array, out: Array) -> None:
    """Ten Feistel rounds on halves of 16 bits; tables[r] is the function of round r."""
    lo, hi = share(team, addresses.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        left, right = addresses[k] >> np.uint32(16), addresses[k] & _LOW
        for r in range(ROUNDS):
            left, right = right, left ^ np.uint32(tables[r, right])
        out[k] = (left << np.uint32(16)) | right


def permuted(addresses: Array, tables: Array, threads: int | None) -> Array:
    """The permutation of every address."""
    out = np.empty(addresses.size, np.uint32)
    steps = ROUNDS * addresses.size
    crew(threads, work=steps).run(permute, np.ascontiguousarray(addresses), tables, out)
    return out
