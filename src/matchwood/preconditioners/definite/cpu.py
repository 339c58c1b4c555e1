"""Are the paths of a tridiagonal matrix positive definite, and how are they made so: on a team.

A path begins at row k where ``dl[k] == 0``.  Each thread works on the paths that begin in its part
of the rows.  A symmetric matrix is positive definite if all pivots of its elimination without row
exchanges are positive.

In a path that is not, the entries off the diagonal (or off the blocks on it) are multiplied by a
factor below 1.  Let D be the diagonal (or its blocks) and r the largest eigenvalue of
``D^-1/2 (D - T) D^-1/2``.  Then the path T becomes positive definite for every factor below 1/r.
The largest such factor is found by bisection and reduced by the fraction MARGIN, so that the least
eigenvalue of the scaled path is MARGIN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, share

Array = np.ndarray[Any, Any]

INDEFINITE, NOT_POSITIVE = 0, 1  # columns of the table
LINE_WORDS = 8  # its columns: a cache line for each thread
BISECTIONS = 10  # steps of bisection
# A fraction.  Iterations of CG to 1e-8, medians, for a margin of 0.01, 0.1 and 0.3: bcsstk10 377,
# 267, 337, bcsstk13 2011, 1617, 1703, bcsstk19 1551, 1384, 1285.  Adding the entries that were
# dropped from a row to its diagonal instead takes 502, 2059 and 1926.
MARGIN = 0.1


@device
def _begins(dl: Array, k: int) -> bool:
    if dl.ndim == 1:  # known at compile time
        return k == 0 or dl[k] == 0
    below = dl[k, 0, 0] != 0 or dl[k, 0, 1] != 0 or dl[k, 1, 0] != 0 or dl[k, 1, 1] != 0
    return k == 0 or not below


@device
def _plain_pivots(team: Any, dl: Array, d: Array, du: Array, k: int, c: float, tiny: float) -> int:
    """The end of the path that begins at k, if all pivots are positive; -1 if not; -2 to stop.

    The entries off the diagonal are multiplied by c.  Pivots are divided by the diagonal, so that
    nothing overflows.
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
    """As `_plain_pivots`, for 2x2 blocks, whose pivots are symmetric matrices."""
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
def _factor(team: Any, dl: Array, d: Array, du: Array, k: int, tiny: float) -> float:
    """The factor for the entries off the diagonal of the path that begins at k."""
    least, most = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (least + most) / 2
        if _pivots(team, dl, d, du, k, middle, tiny) > 0:
            least = middle
        else:
            most = middle
    return (1 - MARGIN) * least


@kernel
def _examine(
    team: Any, dl: Array, d: Array, du: Array, tiny: float, change: bool, part: Array, table: Array
) -> None:
    """Count the paths that are not definite; with `change`, part[k] becomes the factor of the path
    that begins at k, if it needs one.  Caller: `part` is -1 everywhere."""
    line = table[team.me]
    lo, hi = share(team, d.shape[0])
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        if _begins(dl, k) and _pivots(team, dl, d, du, k, 1.0, tiny) == -1:
            line[INDEFINITE] += 1
            line[NOT_POSITIVE] += _pivots(team, dl, d, du, k, 0.0, tiny) == -1
            if change:
                part[k] = _factor(team, dl, d, du, k, tiny)


@kernel
def _scale_paths(team: Any, dl: Array, d: Array, du: Array, part: Array) -> None:
    """Multiply the entries off the diagonal by the path's factor.

    Only after `_examine` has ended: there a thread may read rows of another thread's paths.
    """
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


def examine(
    dl: Array, d: Array, du: Array, *, change: bool, threads: int | None = None
) -> tuple[int, int]:
    """How many paths are not positive definite, and how many of them no factor makes so.

    With `change`, `dl` and `du` are overwritten in paths that need a factor.
    """
    team = crew(threads, work=4 * d.size)
    table = np.zeros((team.size, LINE_WORDS), np.int64)
    part = np.full(d.shape[0], -1.0) if change else np.empty(0)
    tiny = 16 * float(np.finfo(d.dtype).eps)
    team.run(_examine, dl, d, du, tiny, change, part, table)
    if change and table[:, INDEFINITE].any():
        team.run(_scale_paths, dl, d, du, part)
    return int(table[:, INDEFINITE].sum()), int(table[:, NOT_POSITIVE].sum())
