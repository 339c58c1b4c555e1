"""Are the paths of a tridiagonal matrix positive definite, and what makes them so: on a team.

A path begins where nothing lies below the diagonal's left neighbour: ``dl[k] == 0``.  Each member
walks along the paths that begin in its share of the rows.  A symmetric matrix is positive definite
if all pivots of its elimination without exchanges are positive.

Paths that are not are weakened: what lies off the diagonal, or off the blocks on it, is multiplied
by a number below 1.  With D the diagonal (or its blocks) and r the largest eigenvalue of
``D^-1/2 (D - T) D^-1/2``, the path T is positive definite for every number below 1/r.  The largest
one is found by halving, and MARGIN of it left away, so that the least eigenvalue of the scaled path
is MARGIN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import crew, device, interrupted, kernel, share

Array = np.ndarray[Any, Any]

INDEFINITE, HOPELESS, WIDTH = 0, 1, 8  # places in a member's line, which has its own cache line
HALVINGS = 10
# Iterations of CG to 1e-8, medians, for a margin of 0.01, 0.1 and 0.3: bcsstk10 377, 267, 337,
# bcsstk13 2011, 1617, 1703, bcsstk19 1551, 1384, 1285.  To add what was left out of the rows to
# their diagonals takes 502, 2059 and 1926.
MARGIN = 0.1


@device
def _begins(dl: Array, k: int) -> bool:
    """Does a path begin at row k?"""
    if dl.ndim == 1:  # settled when this is compiled
        return k == 0 or dl[k] == 0
    below = dl[k, 0, 0] != 0 or dl[k, 0, 1] != 0 or dl[k, 1, 0] != 0 or dl[k, 1, 1] != 0
    return k == 0 or not below


@device
def _plain_pivots(team: Any, dl: Array, d: Array, du: Array, k: int, c: float, tiny: float) -> int:
    """Where the path that begins at k ends, if all pivots are positive; else -1, -2 to stop.

    Pivots are divided by the diagonal, so that nothing overflows.
    """
    if not d[k] > 0:
        return -1
    p, i = 1.0, k + 1
    while i < d.size and dl[i] != 0:
        if interrupted(team, i):
            return -2
        if not d[i] > 0:
            return -1
        p = 1.0 - c * (dl[i] / d[i]) * (c * (du[i - 1] / d[i - 1])) / p
        if not p > tiny:
            return -1
        i += 1
    return i


@device
def _block_pivots(team: Any, dl: Array, d: Array, du: Array, k: int, c: float, tiny: float) -> int:
    """The same for 2x2 blocks, whose pivots are symmetric matrices."""
    p = q = s = 0.0  # the inverse of the pivot before: (p, q; q, s)
    i = k
    while i < d.shape[0] and (i == k or not _begins(dl, i)):
        if interrupted(team, i):
            return -2
        a, b, e = d[i, 0, 0], d[i, 0, 1], d[i, 1, 1]
        if not (a > 0 and e > 0 and b * (b / a) < e):
            return -1
        x, y, z = a, b, e
        if i > k:
            l00, l01, l10, l11 = dl[i, 0, 0], dl[i, 0, 1], dl[i, 1, 0], dl[i, 1, 1]
            m00, m01 = l00 * p + l01 * q, l00 * q + l01 * s
            m10, m11 = l10 * p + l11 * q, l10 * q + l11 * s
            f = c * c
            x -= f * (m00 * l00 + m01 * l01)
            y -= f * (m00 * l10 + m01 * l11)
            z -= f * (m10 * l10 + m11 * l11)
        if not x > tiny * a:
            return -1
        rest = z - y * (y / x)
        if not rest > tiny * e:
            return -1
        p, q, s = 1 / x + (y / x) * (y / x) / rest, -(y / x) / rest, 1 / rest
        i += 1
    return i


@device
def _pivots(team: Any, dl: Array, d: Array, du: Array, k: int, c: float, tiny: float) -> int:
    if d.ndim == 1:
        return _plain_pivots(team, dl, d, du, k, c, tiny)
    return _block_pivots(team, dl, d, du, k, c, tiny)


@device
def _part(team: Any, dl: Array, d: Array, du: Array, k: int, tiny: float) -> float:
    """The number by which the path that begins at k has to be multiplied off its diagonal."""
    least, most = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        if _pivots(team, dl, d, du, k, middle, tiny) > 0:
            least = middle
        else:
            most = middle
    return (1 - MARGIN) * least


@kernel
def _judge(
    team: Any, dl: Array, d: Array, du: Array, tiny: float, change: bool, part: Array, table: Array
) -> None:
    """`part` comes filled with -1; with `change`, the number of each path that needs one."""
    line = table[team.rank]
    lo, hi = share(team, d.shape[0])
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        if _begins(dl, k) and _pivots(team, dl, d, du, k, 1.0, tiny) == -1:
            line[INDEFINITE] += 1
            line[HOPELESS] += _pivots(team, dl, d, du, k, 0.0, tiny) == -1
            if change:
                part[k] = _part(team, dl, d, du, k, tiny)


@kernel
def _weaken(team: Any, dl: Array, d: Array, du: Array, part: Array) -> None:
    """Multiply what is off the diagonal; after `_judge`, as members look at each other's paths."""
    lo, hi = share(team, d.shape[0])
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        if part[k] >= 0:
            end = k + 1
            while end < d.shape[0] and not _begins(dl, end):
                end += 1
            for i in range(k + 1, end):
                if dl.ndim == 1:
                    dl[i] *= part[k]
                    du[i - 1] *= part[k]
                else:
                    for r in range(2):
                        for s in range(2):
                            dl[i, r, s] *= part[k]
                            du[i - 1, r, s] *= part[k]


def judge(
    dl: Array, d: Array, du: Array, *, change: bool, threads: int | None = None
) -> tuple[int, int]:
    """How many paths are not positive definite, and how many of them nothing makes so.

    With `change`, `dl` and `du` are overwritten where a path has to be weakened.
    """
    team = crew(threads, work=4 * d.size)
    table = np.zeros((team.size, WIDTH), np.int64)
    part = np.full(d.shape[0], -1.0) if change else np.empty(0)
    tiny = 16 * float(np.finfo(d.dtype).eps)
    team.run(_judge, dl, d, du, tiny, change, part, table)
    if change and table[:, INDEFINITE].any():
        team.run(_weaken, dl, d, du, part)
    return int(table[:, INDEFINITE].sum()), int(table[:, HOPELESS].sum())
