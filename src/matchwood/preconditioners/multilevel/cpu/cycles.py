"""Cycles on a team: one kernel goes through all levels.

The arrays of all levels lie one after the other (`Levels`), and all members go through the levels
together.  Levels with little work are visited by member 0 alone, while the others wait.  Sums over
a vector are added up within fixed blocks of rows and then over the blocks in order, so they are the
same at any number of threads.  Between two barriers every word is written by one member, and read
by no other.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    share,
)
from matchwood.preconditioners.multilevel.cpu.fours import WINDOW, Fours, of_four
from matchwood.preconditioners.multilevel.cpu.pairs import solve_segments

Array = np.ndarray[Any, Any]

GOOD_ENOUGH, NOISE = 0.25, 4.0  # as in reference.py

# Columns of the table of levels: sizes, then where the arrays of a level begin.
N, COARSE, BLOCKS, ROW, BLOCK = range(5)
LABEL, ORDER = 5, 6  # in `whole`
INNER, INVERSE, LOWER, UPPER, DENSE = range(7, 12)  # in `real`
MATRIX, RESTRICTION, INTERPOLATION = 12, 16, 20  # four each: arrays of `Fours`, data in `real`
COLUMNS = 24
MAGNITUDE = (1 << 63) - 1  # bits of a float64 without that of its sign
MOST_POWER = 1000  # by which a vector or a matrix is scaled: 2^1000 and its inverse are normal
NONE = -1  # where a level has no such array
DOTS = 6
BLOCK_STEPS = 8192  # entries and rows of a block: sums of its own, and the unit that is shared out
ALONE_STEPS = 100_000  # entries and rows of a level below which member 0 visits it alone
DOWN, UP = range(2)  # what comes next at a level
VCYCLE, WCYCLE, KCYCLE = range(3)


class Levels(NamedTuple):
    """All levels.  `table` says where the arrays of each begin in the two others.

    A few long arrays, since each one costs time where functions are compiled that take it.
    """

    table: Array
    bounds: Array  # of blocks of rows
    whole: Array  # unsigned: matrices, interpolation and its transpose, order of paths
    real: Array  # values, diagonal, smoother, the dense inverse of the last level
    # The interpolation is a label for each row (COARSE for none), or a matrix if it is smoothed.


class Vectors(NamedTuple):
    """Of all levels: right-hand side, what is smoothed, two steps, A times the first, scratch.

    Each level has one word more than rows, which is 0: there the last four rows may end.
    """

    r: Array
    z: Array
    c: Array
    d: Array
    v: Array
    q: Array
    y: Array


class Space(NamedTuple):
    """Vectors of all levels, sums by block, coefficients of each level's solution."""

    vectors: Vectors
    sums: Array
    weights: Array
    state: Array  # (members, levels, 3): visits, rho, t


class Plan(NamedTuple):
    cycle: int
    symmetric: bool
    sweeps: int
    twice: int  # the last level that a K-cycle visits twice
    alone: int  # the first level that member 0 visits alone
    exponent: int  # the levels are those of the matrix times 2^-exponent
    noise: float  # energy of a vector, over that of the diagonal alone, that may be rounding errors


@expanded
def _part(h: Levels, level: Array, first: int) -> Fours:
    order, ptr = h.whole[level[first] :], h.whole[level[first + 1] :]
    return Fours(order, ptr, h.whole[level[first + 2] :], h.real[level[first + 3] :])


@device
def _rows_of_mine(team: Team, h: Levels, level: Array) -> tuple[Any, Any]:
    """This member's rows: whole blocks."""
    lo, hi = share(team, level[BLOCKS])
    return np.uint64(h.bounds[level[BLOCK] + lo]), np.uint64(h.bounds[level[BLOCK] + hi])


@device
def _multiply(
    team: Team, h: Levels, level: Array, x: Array, r: Array, out: Array, subtract: bool
) -> bool:
    """out = r - A x, or A x"""
    lo, hi = _rows_of_mine(team, h, level)
    a, two, one = _part(h, level, MATRIX), np.uint64(2), np.uint64(1)
    for g in range(lo >> two, (hi + np.uint64(3)) >> two):
        if interrupted(team, np.int64(g << two)):
            return True
        t0, t1, t2, t3 = of_four(a, g, x)
        k = g << two
        i0, i1, i2, i3 = a.order[k], a.order[k + one], a.order[k + two], a.order[k + two + one]
        if subtract:
            t0, t1, t2, t3 = r[i0] - t0, r[i1] - t1, r[i2] - t2, r[i3] - t3
        out[i0], out[i1], out[i2], out[i3] = t0, t1, t2, t3
    return False


@device
def _smooth(team: Team, h: Levels, level: Array, q: Array, y: Array, x: Array, add: bool) -> bool:
    """x = S q, or x += S q; y is scratch.  S is diagonal, or solves along segments of paths."""
    n = level[N]
    lo, hi = share(team, n)
    inverse = h.real[level[INVERSE] :]
    if level[ORDER] == NONE:
        for i in range(np.uint64(lo), np.uint64(hi)):
            x[i] = inverse[i] * q[i] + (x[i] if add else q.dtype.type(0))
        return False
    order, lower = h.whole[level[ORDER] :], h.real[level[LOWER] :]
    upper = h.real[level[UPPER] :]
    return solve_segments(team, order, lower, inverse, upper, q[:n], y, x, add)


@device
def _restrict(team: Team, h: Levels, level: Array, q: Array, out: Array) -> bool:
    """out = P.T q"""
    lo, hi = share(team, (level[COARSE] + 3) // 4)
    a, two, one = _part(h, level, RESTRICTION), np.uint64(2), np.uint64(1)
    for g in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(g << two)):
            return True
        t0, t1, t2, t3 = of_four(a, g, q)
        k = g << two
        out[a.order[k]], out[a.order[k + one]] = t0, t1
        out[a.order[k + two]], out[a.order[k + two + one]] = t2, t3
    return False


@device
def _prolong(team: Team, h: Levels, level: Array, w: Array, c: Array, d: Array, z: Array) -> None:
    """z += the solution of the coarse level, w[0] c + w[1] d"""
    n, none = level[N], level[COARSE]
    w0, w1 = z.dtype.type(w[0]), z.dtype.type(w[1])
    if level[INTERPOLATION] == NONE:
        label = h.whole[level[LABEL] :]
        lo, hi = share(team, n)
        for i in range(np.uint64(lo), np.uint64(hi)):
            g = label[i]
            if g != none:
                if w1 != 0:
                    z[i] += w0 * c[g] + w1 * d[g]
                else:
                    z[i] += w0 * c[g]
        return
    lo, hi = share(team, (n + 3) // 4)
    a, two, one = _part(h, level, INTERPOLATION), np.uint64(2), np.uint64(1)
    for g in range(np.uint64(lo), np.uint64(hi)):
        k = g << two
        i0, i1, i2, i3 = a.order[k], a.order[k + one], a.order[k + two], a.order[k + two + one]
        t0, t1, t2, t3 = of_four(a, g, c)
        z[i0] += w0 * t0
        z[i1] += w0 * t1
        z[i2] += w0 * t2
        z[i3] += w0 * t3
        if w1 != 0:
            t0, t1, t2, t3 = of_four(a, g, d)
            z[i0] += w1 * t0
            z[i1] += w1 * t1
            z[i2] += w1 * t2
            z[i3] += w1 * t3


@device
def _dots(
    team: Team, h: Levels, level: Array, first: bool, symmetric: bool, v: Array, c: Array, r: Array,
    w: Array, sums: Array,
) -> bool:  # fmt: skip
    """Sums by block for the first step (v is A c), or for the second, where c is d and w is A d."""
    lo, hi = share(team, level[BLOCKS])
    inner = h.real[level[INNER] :]
    for b in range(lo, hi):
        if interrupted(team, 0):
            return True
        s0 = s1 = s2 = s3 = s4 = s5 = 0.0
        begin = np.uint64(h.bounds[level[BLOCK] + b])
        end = np.uint64(h.bounds[level[BLOCK] + b + 1])
        for i in range(begin, end):
            wi, ri, ci = np.float64(w[i]), np.float64(r[i]), np.float64(c[i])
            test = ci if symmetric else wi
            scaled = np.float64(inner[i]) * ci
            s0 += test * wi
            s1 += test * ri
            s5 += scaled * (ci if symmetric else scaled)
            if first:
                s2 += ri * ri
                s3 += ri * wi
                s4 += wi * wi
            else:
                s2 += test * np.float64(v[i])
        sums[b, 0], sums[b, 1], sums[b, 2] = s0, s1, s2
        sums[b, 3], sums[b, 4], sums[b, 5] = s3, s4, s5
    return False


@device
def _sum(sums: Array, blocks: int, k: int) -> float:
    total = 0.0
    for b in range(blocks):
        total += sums[b, k]
    return total


@device
def _coarsest(team: Team, h: Levels, level: Array, r: Array, y: Array, x: Array) -> bool:
    """x = the inverse times r, added up by columns; the smoother where there is no inverse."""
    if level[DENSE] == NONE:
        return _smooth(team, h, level, r, y, x, False)
    n = level[N]
    lo, hi = share(team, n)
    x[lo:hi] = 0
    for j in range(n):
        if interrupted(team, j):
            return True
        column, value = h.real[level[DENSE] + j * n :], r[j]
        for i in range(np.uint64(lo), np.uint64(hi)):
            x[i] += column[i] * value
    return False


@device
def _sweep(team: Team, h: Levels, level: Array, r: Array, q: Array, y: Array, z: Array) -> bool:
    """z += S (r - A z)"""
    if _multiply(team, h, level, z, r, q, True) or barrier(team):
        return True
    return _smooth(team, h, level, q, y, z, True) or barrier(team)


@device
def _go_down(team: Team, h: Levels, plan: Plan, depth: Any, vectors: Vectors) -> bool:
    """Smooth at level `depth`, and compute the right-hand side of the next level."""
    level = h.table[depth]
    at, n = level[ROW], level[N] + 1
    r, z = vectors.r[at : at + n], vectors.z[at : at + n]
    q, y = vectors.q[at : at + n], vectors.y[at : at + n]
    if _smooth(team, h, level, r, y, z, False) or barrier(team):
        return True
    for _ in range(1, plan.sweeps):
        if _sweep(team, h, level, r, q, y, z):
            return True
    if _multiply(team, h, level, z, r, q, True) or barrier(team):
        return True
    return _restrict(team, h, level, q, vectors.r[at + n :]) or barrier(team)


@device
def _come_up(
    team: Team, h: Levels, plan: Plan, depth: Any, vectors: Vectors, w: Array, out: Array
) -> bool:
    """Add the solution of the next level, and smooth into `out`."""
    level = h.table[depth]
    at, n = level[ROW], level[N] + 1
    r, z = vectors.r[at : at + n], vectors.z[at : at + n]
    q, y = vectors.q[at : at + n], vectors.y[at : at + n]
    _prolong(team, h, level, w, vectors.c[at + n :], vectors.d[at + n :], z)
    if barrier(team):
        return True
    for _ in range(1, plan.sweeps):
        if _sweep(team, h, level, r, q, y, z):
            return True
    lo, hi = _rows_of_mine(team, h, level)
    if level[ORDER] != NONE:
        if _multiply(team, h, level, z, r, q, True):
            return True
        for i in range(lo, hi):
            out[i] = z[i]
        return barrier(team) or _smooth(team, h, level, q, y, out, True) or barrier(team)
    a, inverse = _part(h, level, MATRIX), h.real[level[INVERSE] :]
    two, one = np.uint64(2), np.uint64(1)
    for g in range(lo >> two, (hi + np.uint64(3)) >> two):
        if interrupted(team, np.int64(g << two)):
            return True
        t0, t1, t2, t3 = of_four(a, g, z)
        k = g << two
        i0, i1, i2, i3 = a.order[k], a.order[k + one], a.order[k + two], a.order[k + two + one]
        out[i0] = z[i0] + inverse[i0] * (r[i0] - t0)
        out[i1] = z[i1] + inverse[i1] * (r[i1] - t1)
        out[i2] = z[i2] + inverse[i2] * (r[i2] - t2)
        out[i3] = z[i3] + inverse[i3] * (r[i3] - t3)
    return barrier(team)


@device
def _accelerated(
    team: Team, h: Levels, plan: Plan, depth: Any, vectors: Vectors, sums: Array, state: Array,
    weights: Array,
) -> int:  # fmt: skip
    """After a visit: 1 if level `depth` is solved, 0 if it needs a second visit, -1 to stop.

    Flexible CG, or GCR where the matrix is not symmetric, of at most two steps.
    """
    level = h.table[depth]
    at, n, blocks = level[ROW], level[N] + 1, level[BLOCKS]
    first = state[0] == 0
    r, v = vectors.r[at : at + n], vectors.v[at : at + n]
    c = (vectors.c if first else vectors.d)[at : at + n]
    one, two = 1.0, 0.0
    solved = True
    if plan.cycle == WCYCLE:
        if first:
            solved = False
            if _multiply(team, h, level, c, r, v, True) or barrier(team):
                return -1
            lo, hi = _rows_of_mine(team, h, level)
            for i in range(lo, hi):
                r[i] = v[i]
        else:
            two = 1.0
    elif plan.cycle == KCYCLE and depth <= plan.twice:
        w = v if first else vectors.q[at : at + n]
        if _multiply(team, h, level, c, r, w, False):  # of the same rows as the sums
            return -1
        if _dots(team, h, level, first, plan.symmetric, v, c, r, w, sums) or barrier(team):
            return -1
        a, b = _sum(sums, blocks, 0), _sum(sums, blocks, 1)
        noise = plan.noise * _sum(sums, blocks, 5)  # rounding errors of a, where c is constant
        if first:
            t = b / a if a > noise else 1.0
            rr = _sum(sums, blocks, 2)
            left = rr - 2.0 * t * _sum(sums, blocks, 3) + t * t * _sum(sums, blocks, 4)
            one = t
            if a > noise and left > GOOD_ENOUGH * GOOD_ENOUGH * rr:
                solved = False
                state[1], state[2] = a, t
                lo, hi = _rows_of_mine(team, h, level)
                step = r.dtype.type(t)
                for i in range(lo, hi):
                    r[i] -= step * v[i]
        else:
            g, rho = _sum(sums, blocks, 2), state[1]
            rest = a - g * g / rho
            one = state[2]
            if rest > noise:
                two = b / rest
                one -= two * g / rho
    state[0] += 1.0
    if solved and team.me == 0:
        weights[0], weights[1] = one, two
    if barrier(team):
        return -1
    return 1 if solved else 0


@device
def apply_cycle(team: Team, h: Levels, plan: Plan, space: Space) -> bool:
    """vectors.c = the cycle applied to vectors.r, at level 0.  True: the team stops."""
    whole, solo = team, Team(0, 1, team.words)
    vectors, last = space.vectors, h.table.shape[0] - 1
    state = space.state[team.me]
    depth, after = np.int64(0), DOWN  # of a plain 0 Numba compiles all that follows twice
    state[0, 0] = 0.0
    while True:
        if after == DOWN:
            level = h.table[depth]
            at, n = level[ROW], level[N] + 1
            if depth < last:
                if _go_down(team, h, plan, depth, vectors):
                    return True
                if depth + 1 == plan.alone:
                    if team.me != 0:
                        after = UP
                        if barrier(whole):
                            return True
                        continue
                    team = solo
                depth += 1
                state[depth, 0] = 0.0
                continue
            x = vectors.c[at : at + n]
            if _coarsest(team, h, level, vectors.r[at : at + n], vectors.y[at : at + n], x):
                return True
            if team.me == 0:
                space.weights[depth, 0], space.weights[depth, 1] = 1.0, 0.0
            if barrier(team):
                return True
        elif after == UP:
            level = h.table[depth]
            at, n = level[ROW], level[N] + 1
            first = depth == 0 or state[depth, 0] == 0.0
            out = (vectors.c if first else vectors.d)[at : at + n]
            if _come_up(team, h, plan, depth, vectors, space.weights[depth + 1], out):
                return True
            if depth > 0:
                solved = _accelerated(
                    team, h, plan, depth, vectors, space.sums, state[depth], space.weights[depth]
                )
                if solved < 0:
                    return True
                if solved == 0:
                    after = DOWN
                    continue
        if depth == 0:
            return False
        depth -= 1
        after = UP
        if depth + 1 == plan.alone:
            team = whole
            if barrier(team):
                return True


@kernel
def _apply(team: Any, h: Levels, plan: Plan, space: Space, r: Array, x: Array) -> None:
    """x = the cycle applied to r, which is multiplied by a power of two for float32 to hold it."""
    n = r.size
    right, answer = space.vectors.r, space.vectors.c
    lo, hi = share(team, n)
    largest = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        largest = max(largest, _size_bits(np.float64(r[i])))
    space.state[team.me, 0, 0] = _number(largest)
    if team.me == 0:
        for k in range(h.table.shape[0]):
            at = h.table[k, ROW] + h.table[k, N]
            for vector in space.vectors:
                vector[at] = 0  # also after a NaN
    if barrier(team):
        return
    top = 0.0
    for member in range(team.size):
        top = max(top, space.state[member, 0, 0])
    power: Any = 0
    if 0.0 < top < np.inf:
        power = max(-MOST_POWER, min(MOST_POWER, (_size_bits(top) >> 52) - 1023))
    less = _power(-power)
    for i in range(np.uint64(lo), np.uint64(hi)):
        right[i] = np.float64(r[i]) * less
    if barrier(team) or apply_cycle(team, h, plan, space):
        return
    half = (power - plan.exponent) // 2
    one, two = _power(half), _power(power - plan.exponent - half)
    for i in range(np.uint64(lo), np.uint64(hi)):
        x[i] = np.float64(answer[i]) * one * two


@device
def _size_bits(x: Any) -> Any:
    """The bits of |x|, which are in the order of the numbers: integers have a fast maximum."""
    return np.float64(x).view(np.int64) & np.int64(MAGNITUDE)


@device
def _number(bits: Any) -> Any:
    return np.int64(bits).view(np.float64)


@device
def _power(k: int) -> Any:
    """2^k"""
    return np.int64((k + 1023) << 52).view(np.float64)


class Cycle:
    """Levels laid out for `_apply`; its vectors are used by one call at a time."""

    def __init__(
        self, levels: Levels, plan: Plan, kind: Any, work: int, threads: int | None
    ) -> None:  # fmt: skip
        self._levels = levels
        self._plan, self._kind, self._work, self._threads = plan, np.dtype(kind), work, threads
        self._lock = threading.Lock()
        self._space: Space | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_space": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __call__(self, rows: Array) -> Array:
        """The cycle applied to each row."""
        kind = self._kind if rows.dtype != np.float64 else rows.dtype  # others are converted here
        right = np.ascontiguousarray(rows, kind)
        out = np.empty_like(right)
        team = crew(self._threads, work=self._work)
        with self._lock:
            space = self._scratch(team.size)
            for r, x in zip(right, out, strict=True):
                team.run(_apply, self._levels, self._plan, space, r, x)
        return out.astype(rows.dtype, copy=False)

    def _scratch(self, members: int) -> Space:
        if self._space is None or self._space.state.shape[0] < members:
            h = self._levels
            levels, total = h.table.shape[0], int(h.table[-1, ROW] + h.table[-1, N]) + 1
            self._space = Space(
                Vectors(*(np.empty(total, self._kind) for _ in Vectors._fields)),
                np.empty((int(h.table[:, BLOCKS].max()), DOTS)),
                np.empty((levels, 2)),
                np.empty((members, levels, 3)),
            )
        return self._space


def blocks_of(indptr: Array) -> Array:
    """Bounds of blocks of whole windows with about BLOCK_STEPS entries and rows each."""
    n = indptr.size - 1
    ends = np.append(np.arange(0, n, WINDOW), n)
    steps = indptr[ends].astype(np.int64) + ends
    marks = np.arange(0, steps[-1], BLOCK_STEPS)
    return np.unique(ends[np.append(np.searchsorted(steps, marks), ends.size - 1)])
