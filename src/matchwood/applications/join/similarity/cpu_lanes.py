"""Levenshtein distances of up to 16 short texts to another one, all at once.

The recurrence of cpu_levenshtein.py, in 32-bit words: each pattern has a lane, and a step does the
same for all lanes, so the compiler makes vector instructions of it.  For each character the words
of all lanes lie side by side.  Patterns have at most 32 characters, with code points below 256;
the text may be any.  Others take the way of cpu_levenshtein.py.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from matchwood.applications.join.similarity.reference import fixed
from matchwood.engines.cpu import device

LANES = 16  # patterns
LONGEST = 32  # characters of a pattern: bits of a word
DIRECT = 256  # code points below it have a row; the last row is empty, for all others

_WORD = np.uint32
_FULL = np.uint32(0xFFFFFFFF)


class Lanes(NamedTuple):
    """The patterns.  `table` is zero between two uses."""

    table: np.ndarray  # uint32[DIRECT + 1, LANES]: bit i is set where character i is this one
    state: np.ndarray  # uint32[3 * LANES]: rows that rise, rows that fall, distance
    tops: np.ndarray  # uint32[LANES]: the bit of the last character
    lengths: np.ndarray  # uint32[LANES]
    ratios: np.ndarray  # int64[LONGEST + 1, LONGEST + 1]: 1 - edits / length, by (length, edits)


@functools.cache
def ratios() -> np.ndarray:
    """Similarities of short texts by (longer length, edits), in units of 2^-40."""
    made = np.zeros((LONGEST + 1, LONGEST + 1), np.int64)
    for longer in range(1, LONGEST + 1):
        for edits in range(longer + 1):
            made[longer, edits] = fixed(longer - edits, longer)
    return made


@device
def fits_lane(text: np.ndarray, lo: int, hi: int) -> bool:
    """True where text[lo:hi] can be a pattern."""
    if hi - lo > LONGEST:
        return False
    wide = 0
    for i in range(lo, hi):
        wide += text[i] >= DIRECT
    return wide == 0


@device
def set_lane(lanes: Lanes, lane: int, text: np.ndarray, lo: int, hi: int) -> None:
    """text[lo:hi], not empty, is the pattern of that lane."""
    for i in range(lo, hi):
        lanes.table[text[i], lane] |= _WORD(1) << _WORD(i - lo)
    lanes.tops[lane] = _WORD(1) << _WORD(hi - lo - 1)
    lanes.lengths[lane] = hi - lo


@device
def clear_lane(lanes: Lanes, lane: int, text: np.ndarray, lo: int, hi: int) -> None:
    """Forget it."""
    for i in range(lo, hi):
        lanes.table[text[i], lane] = 0


@device
def sweep(lanes: Lanes, text: np.ndarray, lo: int, hi: int) -> None:
    """Distances of all patterns to text[lo:hi], in the last third of `state`."""
    table, state, tops, lengths = lanes.table, lanes.state, lanes.tops, lanes.lengths
    for k in range(LANES):
        state[k] = _FULL
        state[LANES + k] = 0
        state[2 * LANES + k] = lengths[k]
    for j in range(lo, hi):
        row = table[min(text[j], _WORD(DIRECT))]
        for k in range(LANES):
            # every step is cut to 32 bits: else the lanes would be 64 bits wide
            equal, rises, falls = row[k], state[k], state[LANES + k]
            straight = _WORD(equal | falls)
            slope = _WORD(_WORD(_WORD(_WORD(equal & rises) + rises) ^ rises) | equal)
            up = _WORD(falls | _WORD(~_WORD(slope | rises)))
            down = _WORD(rises & slope)
            more = _WORD((up & tops[k]) != 0)
            less = _WORD((down & tops[k]) != 0)
            state[2 * LANES + k] = _WORD(state[2 * LANES + k] + more - less)
            up = _WORD(_WORD(up << 1) | 1)
            state[k] = _WORD(_WORD(down << 1) | _WORD(~_WORD(straight | up)))
            state[LANES + k] = _WORD(up & straight)
