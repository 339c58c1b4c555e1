"""The similarity of two elements as an integer in units of 2^-40, inside kernels.

The Levenshtein distance works on 64 rows of the table at a time, in the bits of one word.

A column of the table of distances is held as two words: in which rows the value rises by one from
the row above, and in which it falls (Myers [1]_; the recurrence as Hyyro [2]_ writes it).  One
character of the text is then some fifteen operations on words, whatever the pattern.

A pattern of up to 64 characters is one word.  A longer one is cut into blocks of 64; a block goes
over the whole text before the next one starts, and stores for each character of the text whether
the last row of the block rose or fell there.  So memory is one byte a character of the text.  Long
texts are first compared in a band around the diagonal, which is enough where few edits are needed
(Ukkonen [3]_): a million characters with ten edits take 20 ms instead of minutes.

Short plain texts are compared up to 16 at once (the section on lanes).

.. [1] G. Myers. A fast bit-vector algorithm for approximate string matching based on dynamic
   programming. J. ACM 46(3), 1999. doi:10.1145/316542.316550
.. [2] H. Hyyro. A bit-vector algorithm for computing Levenshtein and Damerau edit distances.
   Nordic J. Comput. 10, 2003.
.. [3] E. Ukkonen. Algorithms for approximate string matching. Information and Control 64, 1985.
   doi:10.1016/S0019-9958(85)80046-2
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join import Elements
from matchwood.applications.join.similarity import reference
from matchwood.engines.cpu import Team, device, expanded, stopping

JACCARD, EDIT, EQUAL = 0, 1, 2

BITS = 40
ONE = 1 << BITS  # the similarity 1; kernels take constants only from files with kernels
SHORT = 1 << 21  # below it, part << 41 stays within 63 bits

WORD = 64  # characters of a block
DIRECT = 256  # code points below this one have a word of their own; the others are hashed
SLOTS = 128  # slots of the hash table: twice the characters of a block
CHUNK = 16  # characters between two checks of the cut-off
BANDS = 64  # a text is compared in a band first where it is at least 64 times as long as the band
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_SPREAD = 2654435769  # 2^32 / golden ratio: spreads neighbouring code points

LANES = 16  # patterns
LONGEST = 32  # characters of a pattern: bits of a word
_LANE = np.uint32
_LANE_FULL = np.uint32(0xFFFFFFFF)


# Levenshtein distance


class Pattern(NamedTuple):
    """Where each character stands in a block of the pattern.  All words zero between two uses."""

    direct: np.ndarray  # uint64[DIRECT]: bit i is set when character i of the block is this one
    keys: np.ndarray  # uint32[SLOTS]: code point + 1, 0 = free
    words: np.ndarray  # uint64[SLOTS]
    steps: np.ndarray  # int8[longest text]: how the row above the block changes; long patterns only


@device
def _slot(keys: np.ndarray, code: np.uint32) -> Any:
    """Where this code point is, or where it would be."""
    slot = ((np.int64(code) * _SPREAD) & 0xFFFFFFFF) >> 25
    while keys[slot] != 0 and keys[slot] != code + 1:
        slot = (slot + 1) & (SLOTS - 1)
    return slot


@device
def set_pattern(pattern: Pattern, text: np.ndarray, lo: int, hi: int) -> None:
    """Set the bits of the characters lo to hi of the text, at most 64."""
    bit = _ONE
    for i in range(lo, hi):
        code = text[i]
        if code < DIRECT:
            pattern.direct[code] |= bit
        else:
            slot = _slot(pattern.keys, code)
            pattern.keys[slot] = code + 1
            pattern.words[slot] |= bit
        bit <<= _ONE


@device
def clear_pattern(pattern: Pattern, text: np.ndarray, lo: int, hi: int) -> None:
    """Clear the bits that `set_pattern` set."""
    wide = False
    for i in range(lo, hi):
        code = text[i]
        if code < DIRECT:
            pattern.direct[code] = _ZERO
        else:
            wide = True
    if wide:
        pattern.keys[:] = np.uint32(0)
        pattern.words[:] = _ZERO


@device
def _places(pattern: Pattern, code: np.uint32) -> np.uint64:
    """The positions of the character in the block, as bits."""
    if code < DIRECT:
        return pattern.direct[code]
    slot = _slot(pattern.keys, code)
    return pattern.words[slot] if pattern.keys[slot] != 0 else _ZERO


@expanded
def _step(equal: Any, rises: Any, falls: Any, risen: Any, fallen: Any, last: Any) -> Any:
    """One character of the text, whose places in the pattern are `equal`.

    `rises` and `falls` say how distances change down the column, `risen` and `fallen` how that
    above it changes to the right.  Returns those of the next column, and the change in its last
    row.
    """
    straight = equal | falls
    equal |= fallen
    slope = (((equal & rises) + rises) ^ rises) | equal
    up = falls | ~(slope | rises)
    down = rises & slope
    change = np.int64((up >> last) & _ONE) - np.int64((down >> last) & _ONE)
    up = (up << _ONE) | risen
    down = (down << _ONE) | fallen
    return down | ~(straight | up), up & straight, change


@expanded
def _step_below(
    pattern: Pattern, character: Any, rises: Any, falls: Any, at: int, last: Any
) -> Any:
    """`_step` below another block, whose change is steps[at]; replaced by that of this block."""
    step = pattern.steps[at]
    fallen = _ONE if step < 0 else _ZERO
    risen = _ONE if step > 0 else _ZERO
    found = _step(_places(pattern, character), rises, falls, risen, fallen, last)
    pattern.steps[at] = np.int8(found[2])
    return found


@device
def distance_to(
    pattern: Pattern, length: int, text: np.ndarray, lo: int, hi: int, most: int
) -> Any:
    """Distance from the pattern of `length` characters, at most 64, to text[lo:hi].

    Any number above `most` where the distance is above it.
    """
    rises, falls = _FULL, _ZERO
    distance: Any = length
    last = np.uint64(length - 1)
    start = lo
    while start < hi:
        stop = min(start + CHUNK, hi)
        for j in range(start, stop):
            equal = _places(pattern, text[j])
            rises, falls, change = _step(equal, rises, falls, _ONE, _ZERO, last)
            distance += change
        start = stop
        if distance - (hi - start) > most:  # it falls by at most one a character
            return most + 1
    return distance


@device
def _block(pattern: Pattern, length: int, text: np.ndarray, lo: int, hi: int, distance: Any) -> Any:
    """One block over the whole text; reads and writes `steps`.  Distance in its last row."""
    rises, falls = _FULL, _ZERO
    last = np.uint64(length - 1)
    for j in range(lo, hi):
        rises, falls, change = _step_below(pattern, text[j], rises, falls, j - lo, last)
        distance += change
    return distance


@device
def _band_block(
    pattern: Pattern, length: int, text: np.ndarray, lo: int, hi: int, after: int, distance: Any
) -> Any:
    """`_block` over the columns lo to hi.

    Distances in the last row: before the column `after`, the least, and that at the end.
    """
    rises, falls = _FULL, _ZERO
    last = np.uint64(length - 1)
    least = noted = distance
    for j in range(lo, hi):
        if j == after:
            noted = distance
        rises, falls, change = _step_below(pattern, text[j], rises, falls, j, last)
        distance += change
        least = min(least, distance)
    return noted, least, distance


@device
def _distance_in_band(
    team: Team, pattern: Pattern, short: np.ndarray, long: np.ndarray, band: int
) -> Any:
    """The distance if it is at most `band`, else some number above it.

    Texts of distance d are matched along places that differ by at most d (Ukkonen).  So only those
    columns of the table are computed; outside of them every step is taken as an edit, which is
    never too little.
    """
    m, n = short.size, long.size
    pattern.steps[:n] = np.int8(1)
    before: Any = 0  # distance at the last row so far, before the first column of the next block
    distance: Any = n
    for block in range(0, m, WORD):
        if stopping(team):
            return band + 1
        end = min(block + WORD, m)
        lo, hi = max(0, block - band), min(n, end + band)
        after = max(0, end - band)
        set_pattern(pattern, short, block, end)
        before, least, distance = _band_block(
            pattern, end - block, long, lo, hi, after, before + end - block
        )
        clear_pattern(pattern, short, block, end)
        if least > band:
            return band + 1
    return distance


@device
def long_distance(
    team: Team,
    pattern: Pattern,
    text: np.ndarray,
    first: tuple[int, int],
    second: tuple[int, int],
    most: int,
) -> Any:
    """Distance of text[first] and text[second], of any length; the pattern is the shorter.

    Long texts that are much alike are compared in bands of growing width, a small part of the
    table.  Others of millions of characters take minutes: where the team stops, the answer is
    `most` + 1.
    """
    lo, hi = first
    start, stop = second
    if hi - lo > stop - start:
        lo, hi, start, stop = start, stop, lo, hi
    rest = stop - start
    band = max(WORD, rest - (hi - lo))
    while hi - lo >= BANDS * band:
        distance = _distance_in_band(team, pattern, text[lo:hi], text[start:stop], band)
        if distance <= band:
            return distance
        if band >= most or stopping(team):
            return most + 1
        band *= 2
    pattern.steps[:rest] = np.int8(1)  # the first row of the table is 0, 1, 2, ...
    distance = 0
    for block in range(lo, hi, WORD):
        end = min(block + WORD, hi)
        set_pattern(pattern, text, block, end)
        # the first column of the table is 0, 1, 2, ... as well
        distance = _block(pattern, end - block, text, start, stop, end - lo)
        clear_pattern(pattern, text, block, end)
        # below the last row of a block the distance at the end falls by at most one a row
        if distance - (hi - end) > most or stopping(team):
            return most + 1
    return distance if hi > lo else rest


# Similarities


@device
def fixed(part: int, whole: int) -> Any:
    """part / whole in units of 2^-40, rounded to the nearest."""
    if whole < SHORT:
        # unsigned: a signed division in Python's sense also tests signs and remainders
        twice = np.uint64(2 * whole)
        return np.int64(np.uint64((part << (BITS + 1)) + whole) // twice)
    # the same division in two steps of half the digits, for texts of millions of characters
    half = BITS // 2
    high = (part << half) // whole
    rest = (part << half) - high * whole
    return (high << half) + ((rest << (half + 1)) + whole) // (2 * whole)


@device
def jaccard(elements: Elements, a: int, b: int) -> Any:
    """Tokens in common / tokens of both together."""
    if a == b:
        return ONE
    tokens = elements.tokens
    i, last = elements.starts[a], elements.starts[a + 1]
    j, end = elements.starts[b], elements.starts[b + 1]
    whole = (last - i) + (end - j)
    shared = 0
    while i < last and j < end:
        left, right = tokens[i], tokens[j]
        shared += left == right
        i += left <= right
        j += right <= left
    return fixed(shared, whole - shared)


@device
def text_of(elements: Elements, a: int) -> Any:
    """Where the text of an element begins and ends."""
    return elements.text_starts[a], elements.text_starts[a + 1]


@device
def most_edits(longer: int, least: int) -> Any:
    """No pair of that longer length has more edits and a similarity of `least` or more.

    One more than there can be, rather than one less, where rounding decides.
    """
    return longer - max(0, (((least >> 10) * longer) >> (BITS - 10)) - 1)


@device
def open_pattern(elements: Elements, element: int, pattern: Pattern) -> bool:
    """Set the element's text as the pattern; False where it is too long for one word."""
    lo, hi = text_of(elements, element)
    if hi - lo > WORD:
        return False
    set_pattern(pattern, elements.text, lo, hi)
    return True


@device
def edit_to(
    team: Team,
    elements: Elements,
    element: int,
    other: int,
    least: int,
    pattern: Pattern,
    short: bool,
) -> Any:
    """1 - Levenshtein / longer length, -1 where below `least`; the pattern of `element` is open."""
    if element == other:
        return ONE
    first, second = text_of(elements, element), text_of(elements, other)
    length, size = first[1] - first[0], second[1] - second[0]
    longer = max(length, size)
    most = most_edits(longer, least)
    if abs(length - size) > most:
        return np.int64(-1)
    if short:
        edits = distance_to(pattern, length, elements.text, second[0], second[1], most)
    else:
        edits = long_distance(team, pattern, elements.text, first, second, most)
    return fixed(longer - edits, longer) if edits <= most else np.int64(-1)


# Lanes: the same recurrence in 32-bit words.  Each pattern has a lane, and a step does the same for
# all lanes, so the compiler makes vector instructions of it.  For each character the words of all
# lanes lie side by side.  Patterns have at most 32 characters, with code points below 256; the text
# may be any.  Other patterns are compared one by one.


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
            made[longer, edits] = reference.fixed(longer - edits, longer)
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
        lanes.table[text[i], lane] |= _LANE(1) << _LANE(i - lo)
    lanes.tops[lane] = _LANE(1) << _LANE(hi - lo - 1)
    lanes.lengths[lane] = hi - lo


@device
def clear_lane(lanes: Lanes, lane: int, text: np.ndarray, lo: int, hi: int) -> None:
    """Clear what `set_lane` set."""
    for i in range(lo, hi):
        lanes.table[text[i], lane] = 0


@device
def sweep(lanes: Lanes, text: np.ndarray, lo: int, hi: int) -> None:
    """Distances of all patterns to text[lo:hi], in the last third of `state`."""
    table, state, tops, lengths = lanes.table, lanes.state, lanes.tops, lanes.lengths
    for k in range(LANES):
        state[k] = _LANE_FULL
        state[LANES + k] = 0
        state[2 * LANES + k] = lengths[k]
    for j in range(lo, hi):
        row = table[min(text[j], _LANE(DIRECT))]
        for k in range(LANES):
            # every step is cut to 32 bits: else the lanes would be 64 bits wide
            equal, rises, falls = row[k], state[k], state[LANES + k]
            straight = _LANE(equal | falls)
            slope = _LANE(_LANE(_LANE(_LANE(equal & rises) + rises) ^ rises) | equal)
            up = _LANE(falls | _LANE(~_LANE(slope | rises)))
            down = _LANE(rises & slope)
            more = _LANE((up & tops[k]) != 0)
            less = _LANE((down & tops[k]) != 0)
            state[2 * LANES + k] = _LANE(state[2 * LANES + k] + more - less)
            up = _LANE(_LANE(up << 1) | 1)
            state[k] = _LANE(_LANE(down << 1) | _LANE(~_LANE(straight | up)))
            state[LANES + k] = _LANE(up & straight)
