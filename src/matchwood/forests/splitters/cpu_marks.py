"""What walks along paths leave behind.  The idea: cpu.py.

A mark of a vertex: 0, or (walk + 1) * 2^24 + steps, or ~node.  Walks that start at vertex v have
the number v, the two of node r have n + 2 r + side.  The chance of 2^24 steps without a node is
e^-2048.

A record of a walk: path, position at its start, +1 or -1 for each step, length of the path.

A walk that looks for the weakest edge (cpu_cycles.py) is called a survey.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device, store_relaxed
from matchwood.engines.cpu.hints import natural

Array = np.ndarray[Any, Any]

WALKS = 8  # that a thread has at a time: it waits for memory once for all of them
VERTICES_PER_CHUNK = 4096  # that a thread takes at a time

STEP_BITS = 24  # of a mark
STEPS = (1 << STEP_BITS) - 1  # the bits of a mark that hold the steps

# Words of a record.
PATH = 0
START = 1  # position where the walk starts
SIGN = 2  # +1 or -1 for each step
LENGTH = 3
RECORD_WORDS = 4

# Words of a walk that has not ended.
FROM = 0  # the vertex before
AT = 1  # where it is
COUNT = 2  # steps to there
WALK = 3  # its number
CUT = 4  # of a survey: steps before the weakest edge so far
U = 5  # ... and its first
V = 6  # ... and second vertex
SLOT = 7  # ... and where to note it
WALK_WORDS = 8

# Words of `Cuts.counters`, apart so that they are in different cache lines.
EDGES_CUT = 0
CYCLES_WITH_NODES = 16  # 1 where there is one
COUNTER_WORDS = 32

# States of a node.
ON_PATH = 1
ON_CYCLE = 2


class Pairs(NamedTuple):
    """The factor: both neighbours of v, or -1, at 2 v and 2 v + 1, and the weights of the edges."""

    table: Any
    weights: Any


class Board(NamedTuple):
    """What walks write, for all threads to read."""

    marks: Any  # (n,)
    records: Any  # RECORD_WORDS for each walk
    lengths: Any  # (n,) of a path, at its name; 0 at all other vertices


class Nodes(NamedTuple):
    """The sampled vertices, and what is known of the stretches between them.

    links[2 r + side] is ~end of the path, or the slot 2 r' + side' at which the walk arrives: it
    goes on from there through slot 2 r' + (1 - side')."""

    vertices: Any
    links: Any  # for each slot
    link_steps: Any  # for each slot: how far that is
    state: Any  # for each node


class Stretches(NamedTuple):
    """The weakest edge between two nodes of a cycle, for each slot."""

    edges: Any  # (slots, 3): steps before it, its first and second vertex
    weights: Any


class Cuts(NamedTuple):
    """The edges that are removed."""

    edges: Any  # (room, 2)
    counters: Any


class Surveys(NamedTuple):
    """The walks of a member that look for weakest edges."""

    walks: Any  # (WALKS, WALK_WORDS)
    bests: Any  # (WALKS,) the least weight so far


@device
def mark_of(walk: int, steps: int) -> int:
    return ((walk + 1) << STEP_BITS) | steps


@device
def begin(walks: Array, k: int, before: int, at: int, walk: int) -> int:
    walks[k, FROM], walks[k, AT], walks[k, COUNT], walks[k, WALK] = before, at, 1, walk
    return k + 1


@device
def replace(walks: Array, k: int, last: int, words: int) -> None:
    """Walk k has ended; the last one takes its place.  `words`: how many words of it are used."""
    for field in range(words):
        walks[k, field] = walks[last, field]


@device
def write_record(records: Array, walk: int, path: int, start: int, sign: int, length: int) -> None:
    at = natural(RECORD_WORDS * walk)
    records[at + PATH] = path
    records[at + START] = start
    records[at + SIGN] = sign
    records[at + LENGTH] = length


@device
def write_node(
    records: Array, n: int, slot: int, path: int, position: int, sign: int, length: int
) -> None:
    """The records of both walks of a node at that position; the one of `slot` changes by `sign`."""
    write_record(records, n + slot, path, position, sign, length)
    write_record(records, n + (slot ^ 1), path, position, -sign, length)


@device
def write_path(board: Board, one: int, other: int, length: int) -> None:
    """The records of the walks from both ends of a path."""
    records, lengths = board.records, board.lengths
    low, high = min(one, other), max(one, other)
    write_record(records, high, low, length, -1, length)
    write_record(records, low, low, 1, 1, length)
    store_relaxed(lengths, low, length)
