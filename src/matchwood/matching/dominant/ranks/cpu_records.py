"""Messages of the distributed matching: flat arrays of the unsigned index type.

One record comes after the other, in the order of the receivers, and those for the rank itself at
the end: they are not sent, but read where they were written.  A weight of 64 bits takes two words
of 32.

A kernel writes records in two passes over its work.  The work is in parts, which members take one
after the other: a thread that has to share its core keeps the others waiting for one part at most.
The first pass counts the records of each part for each receiver.  In the second pass, which writes
them, a member knows from the counts where those of its next part begin (`begin_records`, then
`begin_part`).  So their order is that of the parts, on any team.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, barrier, device, expanded

Array = np.ndarray[Any, Any]


STRETCH = 4096  # records that a member reads at a time
LINE = 8  # words of a cache line


class Candidates(NamedTuple):
    """What the owner of vertices knows of their candidates, by place * C + rank of the row."""

    ids: Array  # the grid's ids; empty where they are the names
    names: Array
    bits: Array  # weights; 0 for none


class Out(NamedTuple):
    """Messages that a kernel writes, in the order of their receivers; the own ones come last."""

    words: Array
    counts: Array  # (parts, row) records that each part has for each receiver
    places: Array  # (members, row) where those of a member's present part begin
    bits: Array  # (members, LINE or more) scratch: [0] is the weight of a record
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


def row_words(receivers: int) -> int:
    """Words of a row that a member counts in: rows of two members never share a cache line.

    Arrays begin anywhere within a line.  Without a line to spare between rows, in some processes
    members took each other's line away at every record: `choose` then took 17 ms instead of 7 in
    the first round of R-MAT 22, on four ranks of four threads.
    """
    return -(-receivers // LINE) * LINE + LINE


@expanded
def _run_of(came: Came, rank: Any) -> Any:
    """The messages of a rank: an array, and the words between which they lie."""
    if rank == came.own:
        return came.kept, np.int64(0), np.int64(came.kept.size)
    return came.words, came.starts[rank], came.starts[rank + 1]


@device
def stretches(came: Came) -> Any:
    """The number of stretches: each has messages of one rank."""
    words, total = STRETCH * came.width, np.int64(0)
    for rank in range(came.starts.size - 1):
        _, start, stop = _run_of(came, rank)
        total += (stop - start + words - 1) // words
    return total


@expanded
def stretch_of(came: Came, number: Any) -> Any:
    """A stretch: an array, the words between which it lies, and the rank that sent it."""
    words, rank = STRETCH * came.width, 0
    array, start, stop = _run_of(came, rank)
    while number * words >= stop - start:
        number -= (stop - start + words - 1) // words
        rank += 1
        array, start, stop = _run_of(came, rank)
    start += number * words
    return array, np.uint64(start), np.uint64(min(start + words, stop)), np.uint64(rank)


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
def begin_records(team: Team, out: Out) -> bool:
    """When all members have counted: where the records of part 0 begin; True: the team stops.

    Afterwards members take parts anew.
    """
    if barrier(team):
        return True
    places, start = out.places[team.rank], np.int64(0)
    for turn in range(out.receivers + 1):
        d = turn if turn < out.receivers else out.own
        if turn != out.own:
            places[d] = start
            for part in range(out.counts.shape[0]):
                start += out.counts[part, d]
    return False


@device
def begin_part(team: Team, out: Out, done: Any, part: Any) -> Any:
    """Go on to a part; the parts below `done` are behind this member.  Returns the next `done`.

    While records are written places[d] moves on by one for each, and so past the part itself.
    """
    places = out.places[team.rank]
    for other in range(done, part):
        for d in range(out.receivers):
            places[d] += out.counts[other, d]
    return part + 1


@device
def records_of(out: Out, part: Any) -> Any:
    """How many records a part has."""
    total = np.int64(0)
    for d in range(out.receivers):
        total += out.counts[part, d]
    return total
