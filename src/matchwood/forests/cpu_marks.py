"""What walks along paths leave behind.  The idea: cpu.py.

A mark of a vertex: 0, or (walk + 1) * 2^24 + steps, or ~node.  Walks that start at vertex v have
the number v, the two of node r have n + 2 r + side.  The chance of 2^24 steps without a node is
e^-2048.

A record of a walk: path, position at its start, +1 or -1 for each step, length of the path.

Fields of a walk under way: where it comes from, where it is, the steps to there, its number; for
those that look for the weakest edge (cpu_cycles.py) also that edge, and the slot to write it to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.cpu_hints import natural
from matchwood.teams import device, store_relaxed

Array = np.ndarray[Any, Any]

WALKS = 8  # of a member at a time, to wait for memory once for all
CHUNK = 4096  # vertices that a member takes at a time

STEP_BITS = 24
STEPS = (1 << STEP_BITS) - 1

PATH, START, SIGN, LENGTH, RECORD = 0, 1, 2, 3, 4

FROM, AT, COUNT, WALK, CUT, U, V, SLOT, FIELDS = 0, 1, 2, 3, 4, 5, 6, 7, 8


@device
def mark_of(walk: int, steps: int) -> int:
    return ((walk + 1) << STEP_BITS) | steps


@device
def begin(walks: Array, k: int, before: int, at: int, walk: int) -> int:
    walks[k, FROM], walks[k, AT], walks[k, COUNT], walks[k, WALK] = before, at, 1, walk
    return k + 1


@device
def write_record(records: Array, walk: int, path: int, start: int, sign: int, length: int) -> None:
    at = natural(RECORD * walk)
    records[at + PATH] = path
    records[at + START] = start
    records[at + SIGN] = sign
    records[at + LENGTH] = length


@device
def write_path(records: Array, lengths: Array, one: int, other: int, length: int) -> None:
    """The records of the walks from both ends of a path."""
    low, high = min(one, other), max(one, other)
    write_record(records, high, low, length, -1, length)
    write_record(records, low, low, 1, 1, length)
    store_relaxed(lengths, low, length)
