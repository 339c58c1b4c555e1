"""One step of the elimination in a tile of rows, and the layout of a thread's scratch buffer.

LANES parts, a tile, are computed at the same time, one per lane, in loops that the compiler turns
into vector instructions.  All data of such a loop lie in one array at constant distances.  What the
steps are for: cpu_parts.py (one right-hand side) and cpu_columns.py (several).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.tridiagonal.cpu_elements import EPSILON, TINY

Array = np.ndarray[Any, Any]

LANES = 8  # parts of a tile: two vectors of AVX2 in double precision, one of AVX-512
ROWS = 128  # rows of a part; a tile, 4 arrays x 128 rows x 8 lanes, is 32 KiB
TILE = ROWS * LANES  # numbers of one array of a tile
# Which row was the pivot of each of the 126 inner unknowns: a number 0 to 3, which is a digit to
# base 4 of a fraction.  There are WORDS fractions of STEPS digits.
WORDS, STEPS = 6, 21

# Offsets in a thread's scratch buffer: one number for each lane.
A_L1, A_L2, A_R1, A_R2, A_F, A_SIZE = (k * LANES for k in range(6))
B_L1, B_L2, B_R1, B_R2, B_F, B_SIZE = (k * LANES for k in range(6, 12))
BAD = 12 * LANES  # the row after the first unknown without a pivot; 0 = none
SUM = 13 * LANES  # the sum of the absolute values of all numbers
LEAST = 14 * LANES  # the smallest size of a row
X0, X1, X2 = (k * LANES for k in range(15, 18))
CHOICES = 18 * LANES
LOWER = CHOICES + WORDS * LANES  # the tile: dl, d, du, b; then the pivot rows
DIAGONAL = LOWER + TILE
UPPER = DIAGONAL + TILE
RIGHT = UPPER + TILE
SCRATCH = RIGHT + TILE


@device
def load_lane(values: Array, start: int, rows: int, filler: Any, s: Array, to: int) -> None:
    """Copy one lane's part of an array, from place `to` on; missing rows become `filler`."""
    part = values[start:]
    for j in range(rows):
        s[to + j * LANES] = part[j]
    for j in range(rows, ROWS):
        s[to + j * LANES] = filler


@device
def load_whole(values: Array, s: Array, to: int) -> None:
    """The same for all lanes of a tile without missing rows: a row of lanes is one vector."""
    for j in range(ROWS):
        for lane in range(LANES):
            s[to + j * LANES + lane] = values[lane * ROWS + j]


@device
def load_matrix(tile: int, dl: Array, d: Array, du: Array, s: Array) -> None:
    """Load the coefficients of a tile; rows past the end are x = 0."""
    n, start = d.size, tile * TILE
    whole = start + TILE <= n
    if whole:
        load_whole(dl[start:], s, LOWER)
        load_whole(d[start:], s, DIAGONAL)
        load_whole(du[start:], s, UPPER)
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        if not whole:
            rows = max(0, min(ROWS, n - start))
            load_lane(dl, start, rows, 0, s, LOWER + lane)
            load_lane(d, start, rows, 1, s, DIAGONAL + lane)
            load_lane(du, start, rows, 0, s, UPPER + lane)
        if start == 0:
            s[LOWER + lane] = 0
        if start < n <= start + ROWS:
            s[UPPER + (n - 1 - start) * LANES + lane] = 0


@device
def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@device
def _stand_in(second: Any, third: Any) -> Any:
    """The replacement of a zero pivot: as large as the rounding errors of its row."""
    tiny = EPSILON * (abs(second) + abs(third))
    return tiny if tiny > 0.0 else EPSILON


@device
def start(s: Array) -> None:
    """Set the coefficients of A and B to the first two rows of every lane's part."""
    zero = s.dtype.type(0)
    for t in range(LANES):
        s[A_L1 + t] = s[LOWER + t]
        s[A_L2 + t] = s[DIAGONAL + t]
        s[A_R1 + t] = s[UPPER + t]
        s[A_R2 + t] = zero
        s[B_L1 + t] = zero
        s[B_L2 + t] = s[LOWER + LANES + t]
        s[B_R1 + t] = s[DIAGONAL + LANES + t]
        s[B_R2 + t] = s[UPPER + LANES + t]


@device
def start_sizes(s: Array) -> None:
    """Set the sizes of A and B, and what is known of the part's numbers so far."""
    zero, one, tiny = s.dtype.type(0), s.dtype.type(1), s.dtype.type(TINY)
    for t in range(LANES):
        s[BAD + t] = zero
        s[SUM + t] = zero
        s[LEAST + t] = one
    for j in range(2):
        for t in range(LANES):
            size = measured(s, t, j * LANES + t)
            s[(A_SIZE if j == 0 else B_SIZE) + t] = size + tiny


@expanded
def measured(s: Array, t: int, at: int) -> Any:
    """The size of the row at `at`; its coefficients are counted in the sum and in the least."""
    c1, c2, c3 = abs(s[LOWER + at]), abs(s[DIAGONAL + at]), abs(s[UPPER + at])
    size = larger(larger(c1, c2), c3)
    s[SUM + t] += (c1 + c2) + c3
    s[LEAST + t] = size if size < s[LEAST + t] else s[LEAST + t]
    return size


@expanded
def reduced(s: Array, t: int, at: int, word: int, scale: Any, row: Any) -> Any:
    """Eliminate in the coefficients of A, B and the row at `at`, with a pivot chosen among them.

    Returns the choice, `swap` and `new`, and the multipliers of the two rows that are left.
    """
    zero, one, two = s.dtype.type(0), s.dtype.type(1), s.dtype.type(2)
    tiny = s.dtype.type(TINY)
    c1, c2, c3 = s[LOWER + at], s[DIAGONAL + at], s[UPPER + at]
    c_size = measured(s, t, at)
    a_l1, b_l1 = s[A_L1 + t], s[B_L1 + t]
    a_l2, b_l2 = s[A_L2 + t], s[B_L2 + t]
    a_r1, b_r1 = s[A_R1 + t], s[B_R1 + t]
    a_r2, b_r2 = s[A_R2 + t], s[B_R2 + t]
    a_size, b_size = s[A_SIZE + t], s[B_SIZE + t]
    swap = abs(b_r1) * a_size > abs(a_r1) * b_size
    p_l1 = b_l1 if swap else a_l1
    q_l1 = a_l1 if swap else b_l1
    p_l2 = b_l2 if swap else a_l2
    q_l2 = a_l2 if swap else b_l2
    p_r1 = b_r1 if swap else a_r1
    q_r1 = a_r1 if swap else b_r1
    p_r2 = b_r2 if swap else a_r2
    q_r2 = a_r2 if swap else b_r2
    p_size = b_size if swap else a_size
    q_size = a_size if swap else b_size
    new = abs(c1) * p_size > abs(p_r1) * c_size  # the new row is the pivot, not p
    choice = (two if swap else zero) + (one if new else zero)
    s[CHOICES + word * LANES + t] += choice * scale
    k_l1 = zero if new else p_l1
    o_l1 = p_l1 if new else zero
    k_l2 = zero if new else p_l2
    o_l2 = p_l2 if new else zero
    k_r1 = c1 if new else p_r1
    o_r1 = p_r1 if new else c1
    k_r2 = c2 if new else p_r2
    o_r2 = p_r2 if new else c2
    k_r3 = c3 if new else zero
    o_r3 = zero if new else c3
    o_size = p_size if new else c_size
    none = k_r1 == zero
    bad = s[BAD + t]
    first = row if bad == zero else bad
    s[BAD + t] = first if none else bad
    k_r1 = _stand_in(k_r2, k_r3) if none else k_r1
    inverse = one / k_r1
    m_a = q_r1 * inverse
    l1, l2 = q_l1 - m_a * k_l1, q_l2 - m_a * k_l2
    s[A_L1 + t] = l1 if abs(l1) > tiny else zero
    s[A_L2 + t] = l2 if abs(l2) > tiny else zero
    r1, r2 = q_r2 - m_a * k_r2, -m_a * k_r3
    s[A_R1 + t] = r1
    s[A_R2 + t] = r2
    size = larger(larger(abs(l1), abs(l2)), larger(abs(r1), abs(r2)))
    s[A_SIZE + t] = larger(size, q_size)
    m_b = o_r1 * inverse
    l1, l2 = o_l1 - m_b * k_l1, o_l2 - m_b * k_l2
    s[B_L1 + t] = l1 if abs(l1) > tiny else zero
    s[B_L2 + t] = l2 if abs(l2) > tiny else zero
    r1, r2 = o_r2 - m_b * k_r2, o_r3 - m_b * k_r3
    s[B_R1 + t] = r1
    s[B_R2 + t] = r2
    size = larger(larger(abs(l1), abs(l2)), larger(abs(r1), abs(r2)))
    s[B_SIZE + t] = larger(size, o_size)
    return swap, new, m_a, m_b


@expanded
def repeated(s: Array, t: int, at: int, word: int) -> Any:
    """The same elimination without the left unknowns, with the pivot that was chosen before.

    Returns the choice and the multipliers as `reduced` does, then one over the pivot and the two
    other coefficients of the pivot row, divided by it.
    """
    zero, one, two, four = s.dtype.type(0), s.dtype.type(1), s.dtype.type(2), s.dtype.type(4)
    c1, c2, c3 = s[LOWER + at], s[DIAGONAL + at], s[UPPER + at]
    a_r1, b_r1 = s[A_R1 + t], s[B_R1 + t]
    a_r2, b_r2 = s[A_R2 + t], s[B_R2 + t]
    rest = s[CHOICES + word * LANES + t] * four
    swap = rest >= two
    rest = rest - two if swap else rest
    new = rest >= one
    s[CHOICES + word * LANES + t] = rest - one if new else rest
    p_r1 = b_r1 if swap else a_r1
    q_r1 = a_r1 if swap else b_r1
    p_r2 = b_r2 if swap else a_r2
    q_r2 = a_r2 if swap else b_r2
    k_r1 = c1 if new else p_r1
    o_r1 = p_r1 if new else c1
    k_r2 = c2 if new else p_r2
    o_r2 = p_r2 if new else c2
    k_r3 = c3 if new else zero
    o_r3 = zero if new else c3
    k_r1 = _stand_in(k_r2, k_r3) if k_r1 == zero else k_r1
    inverse = one / k_r1
    m_a = q_r1 * inverse
    s[A_R1 + t] = q_r2 - m_a * k_r2
    s[A_R2 + t] = -m_a * k_r3
    m_b = o_r1 * inverse
    s[B_R1 + t] = o_r2 - m_b * k_r2
    s[B_R2 + t] = o_r3 - m_b * k_r3
    return swap, new, m_a, m_b, inverse, k_r2 * inverse, k_r3 * inverse


@expanded
def right_hand_sides(a: Any, b: Any, c: Any, swap: Any, new: Any, m_a: Any, m_b: Any) -> Any:
    """The same elimination in a right-hand side of A, B and the new row: the pivot row's, then
    those of the two rows that are left."""
    p = b if swap else a
    q = a if swap else b
    k = c if new else p
    o = p if new else c
    return k, q - m_a * k, o - m_b * k
