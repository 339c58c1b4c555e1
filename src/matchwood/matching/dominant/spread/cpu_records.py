"""Messages of the distributed matching: flat arrays of the unsigned index type.

One record comes after the other, in the order of the receivers, and those for the rank itself at
the end: they are not sent, but read where they were written.  A weight of 64 bits takes two words
of 32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import Team, device, expanded

Array = np.ndarray[Any, Any]


GAP = 16  # words between what two members count: else every count takes a cache line from others


class Out(NamedTuple):
    """Messages that a kernel writes, in the order of their receivers; the own ones come last."""

    words: Array
    counts: Array  # (members, receivers + GAP) records that each member has for each receiver
    places: Array  # (members, receivers + GAP) where they begin
    bits: Array  # (members, GAP or more) scratch: [0] is the weight of a record
    receivers: int
    own: int  # this rank's number among them
    width: int  # words of a record


class Came(NamedTuple):
    """Messages for this rank."""

    words: Array  # those of the other ranks, by rank
    starts: Array  # (ranks + 1) where those of each begin
    kept: Array  # those of this rank
    own: int  # its number
    width: int  # words of a record


@expanded
def run_of(came: Came, rank: Any) -> Any:
    """The messages of a rank: an array, and the words between which they lie."""
    if rank == came.own:
        return came.kept, np.int64(0), np.int64(came.kept.size)
    return came.words, came.starts[rank], came.starts[rank + 1]


@device
def nobody(array: Array) -> Any:
    return ~array.dtype.type(0)


@expanded
def put_bits(words: Array, at: Any, bits: Array, i: Any) -> None:
    """Write the weight bits[i] from `at` on."""
    raw = np.uint64(bits[i])  # weights are not negative
    if bits.itemsize > words.itemsize:
        words[at] = np.uint32(raw & np.uint64(0xFFFF_FFFF))
        words[at + 1] = np.uint32(raw >> np.uint64(32))
    else:
        words[at] = raw


@expanded
def get_bits(words: Array, at: Any, bits: Array) -> Any:
    """The weight at `at`, of the type of `bits`."""
    raw = np.uint64(words[at])
    if bits.itemsize > words.itemsize:
        raw |= np.uint64(words[at + 1]) << np.uint64(32)
    return bits.dtype.type(raw)


@device
def begin_records(team: Team, out: Out, places: Array) -> None:
    """places[d] = where this member's records for d begin; all members have counted theirs."""
    start = np.int64(0)
    for turn in range(out.receivers + 1):
        d = turn if turn < out.receivers else out.own
        if turn == out.own:
            continue
        for member in range(team.size):
            if member == team.rank:
                places[d] = start
            start += out.counts[member, d]
