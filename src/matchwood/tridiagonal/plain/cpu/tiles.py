"""One part of a tridiagonal system: its rows to two equations between its ends, and back.

A part is ROWS consecutive rows s..e.  Its inner unknowns s+1..e-1 occur in no other row, so they
can be eliminated by its own rows with row pivoting; there is always a pivot unless the matrix is
singular.  Two equations in x[s-1], x[s], x[e], x[e+1] are left: an element.  ../../elements solves
for the ends; `substitute_tile` then computes the inner unknowns.

The elimination goes down the rows and carries two equations A, B, both in the unknowns
(x[s-1], x[s] | x[j], x[j+1]).  Row j+1 is the third.  The pivot is the one of the three whose
coefficient of x[j] is the largest relative to the size of its row.  The size of a row is the
largest entry that it has or had since the part began.  With its size at the beginning, A and B
could grow by a factor of 1.618 per row.  With its present size alone, rows that have become small
would be taken too often.

Growth: let s(p) be the size of the pivot row p, with pivot k, and s(q) that of another row q, with
entry c.  The rule is |c| / s(q) <= |k| / s(p), so what is subtracted from q is at most
|c / k| s(p) <= s(q).  One step at most doubles a row, relative to its own size, and a row that has
grown is no pivot for small ones.  For all levels see docs/problems/tridiagonal.rst.  The choice of
rows is stored, so that `substitute_tile` takes the same ones.

Where no diagonal entry of a tile is smaller than the two beside it together, no row is exchanged:
B is always the pivot, and nothing grows.  That takes half the time.

LANES parts, a tile, are computed at the same time, one per lane, in loops that the compiler turns
into vector instructions.  All data of such a loop lie in one array at constant distances.  Here a
tile has one right-hand side; __init__.py does the same for several, with the same steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.engines.cpu.compiled import Later, intrinsic
from matchwood.engines.cpu.hints import select
from matchwood.tridiagonal.elements.cpu import EPSILON, LARGE, TINY, RowSystem, is_off
from matchwood.tridiagonal.repair.cpu import clear_marks, set_mark

Array = np.ndarray[Any, Any]

LANES = 8  # parts of a tile: two vectors of AVX2 in double precision, one of AVX-512
ROWS = 128  # rows of a part; a tile, 4 arrays x 128 rows x 8 lanes, is 32 KiB
TILE = ROWS * LANES  # numbers of one array of a tile
# Which row was the pivot of each of the 126 inner unknowns: two bits, of which the first ones are
# in WORDS words of STEPS bits, the second ones in as many after these.
WORDS, STEPS = 2, 63
# Offsets in a thread's scratch buffer: one number for each lane.
A_L1, A_L2, A_R1, A_R2, A_F, A_SIZE = (k * LANES for k in range(6))
B_L1, B_L2, B_R1, B_R2, B_F, B_SIZE = (k * LANES for k in range(6, 12))
BAD = 12 * LANES  # the row after the first unknown without a pivot; 0 = none
MOST = 13 * LANES  # the largest size of a row, or right-hand side
LEAST = 14 * LANES  # the smallest size of a row
X0, X1, X2 = (k * LANES for k in range(15, 18))
CHOICES = 18 * LANES
LOWER = CHOICES + 2 * WORDS * LANES  # the tile: dl, d, du, b; then the pivot rows
DIAGONAL = LOWER + TILE
UPPER = DIAGONAL + TILE
RIGHT = UPPER + TILE
SCRATCH = RIGHT + TILE

ir, types = map(Later, ("llvmlite.ir", "numba.core.types"))


@intrinsic
def as_word(typingctx: Any, number: Any) -> Any:
    """The bits of a number, as an integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def as_number(typingctx: Any, word: Any) -> Any:
    """The number that has these bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def larger(typingctx: Any, a: Any, b: Any) -> Any:
    """The larger of two numbers in one instruction; any number where one of them is NaN."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flags = ("nnan", "nsz")
        above = builder.fcmp_ordered(">", *args, flags=flags)
        return builder.select(above, *args, flags=flags)

    return a(a, a), codegen


# Loading, and one step of the elimination


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
    """`load_lane` for all lanes of a tile without missing rows: a row of lanes is one vector."""
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
        s[MOST + t] = zero
        s[LEAST + t] = one
    for j in range(2):
        for t in range(LANES):
            size = measured(s, t, j * LANES + t)
            s[(A_SIZE if j == 0 else B_SIZE) + t] = size + tiny


@expanded
def measured(s: Array, t: int, at: int) -> Any:
    """The size of the row at `at`, which is counted in the most and in the least."""
    size = larger(larger(abs(s[LOWER + at]), abs(s[DIAGONAL + at])), abs(s[UPPER + at]))
    s[MOST + t] = larger(s[MOST + t], size)
    s[LEAST + t] = -larger(-s[LEAST + t], -size)
    return size


@expanded
def reduced(s: Array, t: int, at: int, word: int, bit: int, row: Any) -> Any:
    """Eliminate in the coefficients of A, B and the row at `at`, with a pivot chosen among them.

    Returns the choice, `swap` and `new`, and the multipliers of the two rows that are left.
    """
    zero, one, tiny = s.dtype.type(0), s.dtype.type(1), s.dtype.type(TINY)
    c1, c2, c3 = s[LOWER + at], s[DIAGONAL + at], s[UPPER + at]
    c_size = measured(s, t, at)
    a_l1, b_l1 = s[A_L1 + t], s[B_L1 + t]
    a_l2, b_l2 = s[A_L2 + t], s[B_L2 + t]
    a_r1, b_r1 = s[A_R1 + t], s[B_R1 + t]
    a_r2, b_r2 = s[A_R2 + t], s[B_R2 + t]
    a_size, b_size = s[A_SIZE + t], s[B_SIZE + t]
    swap = abs(b_r1) * a_size > abs(a_r1) * b_size
    p_l1 = select(swap, b_l1, a_l1)
    q_l1 = select(swap, a_l1, b_l1)
    p_l2 = select(swap, b_l2, a_l2)
    q_l2 = select(swap, a_l2, b_l2)
    p_r1 = select(swap, b_r1, a_r1)
    q_r1 = select(swap, a_r1, b_r1)
    p_r2 = select(swap, b_r2, a_r2)
    q_r2 = select(swap, a_r2, b_r2)
    p_size = select(swap, b_size, a_size)
    q_size = select(swap, a_size, b_size)
    new = abs(c1) * p_size > abs(p_r1) * c_size  # the new row is the pivot, not p
    first, second = CHOICES + word * LANES + t, CHOICES + (WORDS + word) * LANES + t
    s[first] = as_number(as_word(s[first]) | select(swap, bit, 0))
    s[second] = as_number(as_word(s[second]) | select(new, bit, 0))
    k_l1 = select(new, zero, p_l1)
    o_l1 = select(new, p_l1, zero)
    k_l2 = select(new, zero, p_l2)
    o_l2 = select(new, p_l2, zero)
    k_r1 = select(new, c1, p_r1)
    o_r1 = select(new, p_r1, c1)
    k_r2 = select(new, c2, p_r2)
    o_r2 = select(new, p_r2, c2)
    k_r3 = select(new, c3, zero)
    o_r3 = select(new, zero, c3)
    o_size = select(new, p_size, c_size)
    none, bad = k_r1 == zero, s[BAD + t]
    s[BAD + t] = select(none & (bad == zero), row, bad)
    inverse = one / select(none, _stand_in(k_r2, k_r3), k_r1)
    m_a = q_r1 * inverse
    l1, l2 = q_l1 - m_a * k_l1, q_l2 - m_a * k_l2
    s[A_L1 + t] = select(abs(l1) > tiny, l1, zero)
    s[A_L2 + t] = select(abs(l2) > tiny, l2, zero)
    r1, r2 = q_r2 - m_a * k_r2, -m_a * k_r3
    s[A_R1 + t] = r1
    s[A_R2 + t] = r2
    size = larger(larger(abs(l1), abs(l2)), larger(abs(r1), abs(r2)))
    s[A_SIZE + t] = larger(size, q_size)
    m_b = o_r1 * inverse
    l1, l2 = o_l1 - m_b * k_l1, o_l2 - m_b * k_l2
    s[B_L1 + t] = select(abs(l1) > tiny, l1, zero)
    s[B_L2 + t] = select(abs(l2) > tiny, l2, zero)
    r1, r2 = o_r2 - m_b * k_r2, o_r3 - m_b * k_r3
    s[B_R1 + t] = r1
    s[B_R2 + t] = r2
    size = larger(larger(abs(l1), abs(l2)), larger(abs(r1), abs(r2)))
    s[B_SIZE + t] = larger(size, o_size)
    return swap, new, m_a, m_b


@expanded
def repeated(s: Array, t: int, at: int, word: int, bit: int) -> Any:
    """The same elimination without the left unknowns, with the pivot that was chosen before.

    Returns the choice and the multipliers as `reduced` does, then one over the pivot and the two
    other coefficients of the pivot row, divided by it.
    """
    zero, one = s.dtype.type(0), s.dtype.type(1)
    c1, c2, c3 = s[LOWER + at], s[DIAGONAL + at], s[UPPER + at]
    a_r1, b_r1 = s[A_R1 + t], s[B_R1 + t]
    a_r2, b_r2 = s[A_R2 + t], s[B_R2 + t]
    swap = (as_word(s[CHOICES + word * LANES + t]) & bit) != 0
    new = (as_word(s[CHOICES + (WORDS + word) * LANES + t]) & bit) != 0
    p_r1 = select(swap, b_r1, a_r1)
    q_r1 = select(swap, a_r1, b_r1)
    p_r2 = select(swap, b_r2, a_r2)
    q_r2 = select(swap, a_r2, b_r2)
    k_r1 = select(new, c1, p_r1)
    o_r1 = select(new, p_r1, c1)
    k_r2 = select(new, c2, p_r2)
    o_r2 = select(new, p_r2, c2)
    k_r3 = select(new, c3, zero)
    o_r3 = select(new, zero, c3)
    inverse = one / select(k_r1 == zero, _stand_in(k_r2, k_r3), k_r1)
    m_a = q_r1 * inverse
    s[A_R1 + t] = q_r2 - m_a * k_r2
    s[A_R2 + t] = -m_a * k_r3
    m_b = o_r1 * inverse
    s[B_R1 + t] = o_r2 - m_b * k_r2
    s[B_R2 + t] = o_r3 - m_b * k_r3
    return swap, new, m_a, m_b, inverse, k_r2 * inverse, k_r3 * inverse


@expanded
def reduced_dominant(s: Array, t: int, at: int, row: Any) -> Any:
    """`reduced` in a dominant tile, where B is the pivot.

    Nothing grows: B's second entry is at most as large as its pivot, so A becomes smaller, and so
    does B, which begins anew at every row.
    """
    zero, one, tiny = s.dtype.type(0), s.dtype.type(1), s.dtype.type(TINY)
    size = abs(s[DIAGONAL + at])
    s[MOST + t] = larger(s[MOST + t], size)
    s[LEAST + t] = -larger(-s[LEAST + t], -size)
    b_l2, b_r1, b_r2 = s[B_L2 + t], s[B_R1 + t], s[B_R2 + t]
    none, bad = b_r1 == zero, s[BAD + t]
    s[BAD + t] = select(none & (bad == zero), row, bad)
    inverse = one / select(none, _stand_in(b_r2, zero), b_r1)
    m_a, m_b = s[A_R1 + t] * inverse, s[LOWER + at] * inverse
    r1, l2 = -m_a * b_r2, -m_b * b_l2
    s[A_L2 + t] -= m_a * b_l2
    s[A_R1 + t] = select(abs(r1) > tiny, r1, zero)
    s[B_L2 + t] = select(abs(l2) > tiny, l2, zero)
    s[B_R1 + t] = s[DIAGONAL + at] - m_b * b_r2
    s[B_R2 + t] = s[UPPER + at]
    s[B_SIZE + t] = size
    return True, False, m_a, m_b


@expanded
def repeated_dominant(s: Array, t: int, at: int) -> Any:
    """`repeated` in a dominant tile, where A is no pivot."""
    zero, one = s.dtype.type(0), s.dtype.type(1)
    b_r1, b_r2 = s[B_R1 + t], s[B_R2 + t]
    inverse = one / select(b_r1 == zero, _stand_in(b_r2, zero), b_r1)
    m_b = s[LOWER + at] * inverse
    s[B_R1 + t] = s[DIAGONAL + at] - m_b * b_r2
    s[B_R2 + t] = s[UPPER + at]
    return True, False, zero, m_b, inverse, b_r2 * inverse, zero


@expanded
def right_hand_sides(a: Any, b: Any, c: Any, swap: Any, new: Any, m_a: Any, m_b: Any) -> Any:
    """The same elimination in a right-hand side of A, B and the new row: the pivot row's, then
    those of the two rows that are left."""
    p = select(swap, b, a)
    q = select(swap, a, b)
    k = select(new, c, p)
    o = select(new, p, c)
    return k, q - m_a * k, o - m_b * k


# A tile with one right-hand side


@device
def load_tile(tile: int, system: RowSystem, s: Array) -> None:
    """Load the rows of a tile; rows past the end are x = 0."""
    dl, d, du, b, perm = system
    load_matrix(tile, dl, d, du, s)
    n, first = d.size, tile * TILE
    whole, gather = first + TILE <= n, perm.size > 0
    if whole and not gather:
        load_whole(b[first:], s, RIGHT)
        return
    for lane in range(LANES):
        first = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - first))
        if gather:
            part = perm[first:]
            for j in range(rows):
                s[RIGHT + j * LANES + lane] = b[np.uint64(part[j])]
            for j in range(rows, ROWS):
                s[RIGHT + j * LANES + lane] = 0
        else:
            load_lane(b, first, rows, 0, s, RIGHT + lane)


@device
def _start(s: Array) -> None:
    """Set A and B to the first two rows of every lane's part."""
    start(s)
    for t in range(LANES):
        s[A_F + t] = s[RIGHT + t]
        s[B_F + t] = s[RIGHT + LANES + t]


@device
def is_dominant(s: Array) -> bool:
    """Whether no diagonal entry of a tile is smaller than the two beside it together."""
    for j in range(ROWS):
        off = 0
        for t in range(LANES):
            at = j * LANES + t
            beside = abs(s[LOWER + at]) + abs(s[UPPER + at])
            off += select(beside <= abs(s[DIAGONAL + at]), 0, 1)
        if off > 0:
            return False
    return True


@device
def start_choices(s: Array) -> bool:
    """No pivots are chosen yet; returns whether they will be.  A tile where they are not is marked
    by the sign of its first words."""
    pivoting = not is_dominant(s)
    for k in range(2 * WORDS * LANES):
        s[CHOICES + k] = s.dtype.type(0)
    if not pivoting:
        for t in range(LANES):
            s[CHOICES + t] = as_number(np.int64(-1))
    return pivoting


@expanded
def _reduce_rows(s: Array, pivoting: bool) -> None:
    for word in range(WORDS):
        for step in range(STEPS):
            j, bit = 2 + word * STEPS + step, np.int64(1) << step
            row = s.dtype.type(j)
            for t in range(LANES):
                at = j * LANES + t
                cf = s[RIGHT + at]
                s[MOST + t] = larger(s[MOST + t], abs(cf))
                if pivoting:
                    swap, new, m_a, m_b = reduced(s, t, at, word, bit, row)
                else:
                    swap, new, m_a, m_b = reduced_dominant(s, t, at, row)
                _, a_f, b_f = right_hand_sides(s[A_F + t], s[B_F + t], cf, swap, new, m_a, m_b)
                s[A_F + t] = a_f
                s[B_F + t] = b_f


@device
def reduce_tile(s: Array) -> None:
    """Eliminate the inner unknowns of every lane's part: A and B are its element afterwards."""
    _start(s)
    start_sizes(s)
    for t in range(LANES):
        s[MOST + t] = larger(s[MOST + t], larger(abs(s[RIGHT + t]), abs(s[RIGHT + LANES + t])))
    if start_choices(s):
        _reduce_rows(s, True)
    else:
        _reduce_rows(s, False)


@device
def store_elements(tile: int, s: Array, elements: Array, choices: Array, parts: int) -> None:
    """Store A and B of every lane as an element (2, 6): left 2, right 2, b, size."""
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < parts:
            for k in range(6):
                elements[part, 0, k] = s[k * LANES + lane]
                elements[part, 1, k] = s[(6 + k) * LANES + lane]
            for k in range(2 * WORDS):
                choices[part, k] = s[CHOICES + k * LANES + lane]


@device
def load_ends(tile: int, s: Array, ends: Array, choices: Array, parts: int) -> None:
    """Load the ends of every part, and move the terms of known unknowns to the right-hand sides."""
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        before, first = s.dtype.type(ends[part, 0]), s.dtype.type(ends[part, 1])
        s[X0 + lane] = first
        s[X1 + lane] = ends[part + 1, 0]
        s[X2 + lane] = ends[part + 1, 1]
        for k in range(2 * WORDS):
            s[CHOICES + k * LANES + lane] = choices[part, k]
        s[RIGHT + lane] -= s[LOWER + lane] * before + s[DIAGONAL + lane] * first
        s[RIGHT + LANES + lane] -= s[LOWER + LANES + lane] * first


@expanded
def _repeat_rows(s: Array, pivoting: bool) -> None:
    """The pivot row of x[j], divided by its pivot, overwrites row j."""
    for word in range(WORDS):
        for step in range(STEPS):
            j, bit = 2 + word * STEPS + step, np.int64(1) << step
            for t in range(LANES):
                at = j * LANES + t
                cf = s[RIGHT + at]
                found = repeated(s, t, at, word, bit) if pivoting else repeated_dominant(s, t, at)
                swap, new, m_a, m_b, inverse, second, third = found
                k_f, a_f, b_f = right_hand_sides(s[A_F + t], s[B_F + t], cf, swap, new, m_a, m_b)
                s[A_F + t] = a_f
                s[B_F + t] = b_f
                s[LOWER - LANES + at] = second
                s[UPPER - LANES + at] = third
                s[RIGHT - LANES + at] = k_f * inverse


@device
def substitute_tile(s: Array) -> None:
    """The same elimination without the left unknowns, then back substitution: x overwrites d."""
    _start(s)
    if as_word(s[CHOICES]) < 0:
        _repeat_rows(s, False)
    else:
        _repeat_rows(s, True)
    for t in range(LANES):
        s[DIAGONAL + t] = s[X0 + t]
        s[DIAGONAL + TILE - LANES + t] = s[X1 + t]
    for j in range(ROWS - 2, 0, -1):
        for t in range(LANES):
            at = j * LANES + t
            x = s[RIGHT + at] - s[LOWER + at] * s[X1 + t] - s[UPPER + at] * s[X2 + t]
            s[X2 + t] = s[X1 + t]
            s[X1 + t] = x
            s[DIAGONAL + at] = x


@device
def _terms(part: int, j: int, system: RowSystem, x: Array, ends: Array) -> tuple[Any, Any]:
    """The residual of row j of a part, and the sum of |terms|; in double precision."""
    number, i = ends.dtype.type, part * ROWS + j
    left, right = number(0), number(0)
    if i > 0:
        left = system.dl[i] * (number(x[i - 1]) if j > 0 else ends[part, 0])
    if i < x.size - 1:
        right = system.du[i] * (number(x[i + 1]) if j < ROWS - 1 else ends[part + 1, 1])
    middle, b = system.d[i] * number(x[i]), number(system.b[i])
    size = (abs(left) + abs(middle)) + (abs(right) + abs(b))
    return abs((left + middle) + (right - b)), size


@device
def _inner_off(part: int, rows: int, system: RowSystem, x: Array, ends: Array, limit: float) -> int:
    """The number of inner rows of a part that are off; without branches, to be vectorised."""
    start = part * ROWS
    lower, diagonal, upper = system.dl[start:], system.d[start:], system.du[start:]
    b, x = system.b[start:], x[start:]
    number, count = ends.dtype.type, 0
    for j in range(1, rows - 1):
        left = lower[j] * number(x[j - 1])
        middle = diagonal[j] * number(x[j])
        right = upper[j] * number(x[j + 1])
        size = (abs(left) + abs(middle)) + (abs(right) + abs(b[j]))
        good = abs((left + middle) + (right - b[j])) <= limit * size
        count += 0 if good & (size <= LARGE * LARGE) else 1
    return count


@device
def mark_off(part: int, system: RowSystem, x: Array, ends: Array, limit: float, mark: Array) -> int:
    """Mark the rows of a part that are off by more than `limit`; returns how many."""
    rows = min(ROWS, x.size - part * ROWS)
    clear_marks(mark)
    count = _inner_off(part, rows, system, x, ends, limit)
    for j in range(0, rows, max(1, rows - 1)):  # the first and the last
        residual, size = _terms(part, j, system, x, ends)
        count += is_off(residual, size, limit)
    if count > 0:
        for j in range(rows):
            residual, size = _terms(part, j, system, x, ends)
            if is_off(residual, size, limit) > 0:
                set_mark(mark, j)
    return count


@device
def store_solution(tile: int, s: Array, perm: Array, x: Array) -> None:
    """Store x of the tile's rows; with `perm` the unknown of row i goes to x[perm[i]]."""
    scatter = perm.size > 0
    n = perm.size if scatter else x.size  # x may be longer
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - start))
        if scatter:
            part_p = perm[start:]
            for j in range(rows):
                x[np.uint64(part_p[j])] = s[DIAGONAL + j * LANES + lane]
        else:
            part_x = x[start:]
            for j in range(rows):
                part_x[j] = s[DIAGONAL + j * LANES + lane]
