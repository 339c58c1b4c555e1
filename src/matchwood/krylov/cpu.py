"""Flexible conjugate gradients on a team: one kernel an iteration, beside the preconditioner.

The definition is `fcg` of flexible.py.  Sums are added up within fixed blocks of rows, and then
over the blocks in order, so they are the same at any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share
from matchwood.krylov.check import norm
from matchwood.primitives.tally.cpu import Rows, rows_of

Array = np.ndarray[Any, Any]

BLOCK_STEPS = 8192  # entries and rows of a block: sums of its own, and the unit that is shared out
ALONG, LEFT = 0, 1  # of `found`: p.A p, and |r|^2


class Vectors(NamedTuple):
    """Solution, residual, what the preconditioner made of it, direction p, and A p."""

    x: Array
    r: Array
    z: Array
    p: Array
    q: Array


@device
def _sum(sums: Array, k: int) -> float:
    total = 0.0
    for b in range(sums.shape[0]):
        total += sums[b, k]
    return total


@device
def _dot(x: Array, y: Array, begin: Any, end: Any) -> float:
    """Four sums, so that no addition waits for the one before."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    s0 = s1 = s2 = s3 = 0.0
    i, last = begin, begin + ((end - begin) & ~three)
    while i < last:
        s0 += np.float64(x[i]) * np.float64(y[i])
        s1 += np.float64(x[i + one]) * np.float64(y[i + one])
        s2 += np.float64(x[i + two]) * np.float64(y[i + two])
        s3 += np.float64(x[i + three]) * np.float64(y[i + three])
        i += np.uint64(4)
    while i < end:
        s0 += np.float64(x[i]) * np.float64(y[i])
        i += one
    return (s0 + s1) + (s2 + s3)


@device
def _times(team: Any, rows: Rows, x: Array, out: Array, begin: Any, end: Any) -> bool:
    """Rows of out = A x, each by two sums."""
    one = np.uint64(1)
    last = np.uint64(rows.indptr[begin])
    for i in range(begin, end):
        if interrupted(team, np.int64(i)):
            return True
        k, last = last, np.uint64(rows.indptr[i + one])
        even = odd = x.dtype.type(0)
        while k + one < last:
            even += rows.data[k] * x[np.uint64(rows.indices[k])]
            odd += rows.data[k + one] * x[np.uint64(rows.indices[k + one])]
            k += np.uint64(2)
        if k < last:
            even += rows.data[k] * x[np.uint64(rows.indices[k])]
        out[i] = even + odd
    return False


@kernel
def _advance(
    team: Any, rows: Rows, bounds: Array, v: Vectors, sums: Array, found: Array, first: bool
) -> None:
    """One iteration; found[ALONG] is that of the one before, and not above 0 at a breakdown.

    Before the first one p and q are 0.
    """
    lo, hi = share(team, bounds.size - 1)
    begin, end = np.uint64(bounds[lo]), np.uint64(bounds[hi])
    back = 0.0
    if not first:
        for b in range(lo, hi):
            sums[b, 0] = _dot(v.z, v.q, np.uint64(bounds[b]), np.uint64(bounds[b + 1]))
        if barrier(team):
            return
        back = _sum(sums, 0) / found[ALONG]
    towards = v.p.dtype.type(back)
    for i in range(begin, end):
        v.p[i] = v.z[i] - towards * v.p[i]
    if barrier(team):
        return
    for b in range(lo, hi):
        at, last = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        if _times(team, rows, v.p, v.q, at, last):
            return
        sums[b, 1], sums[b, 2] = _dot(v.p, v.q, at, last), _dot(v.p, v.r, at, last)
    if barrier(team):
        return
    along = _sum(sums, 1)
    if team.me == 0:
        found[ALONG] = along
    if not along > 0.0:  # also NaN
        return
    step = v.x.dtype.type(_sum(sums, 2) / along)
    for b in range(lo, hi):
        at, last = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        for i in range(at, last):
            v.x[i] += step * v.p[i]
            v.r[i] -= step * v.q[i]
        sums[b, 3] = _dot(v.r, v.r, at, last)
    if barrier(team):
        return
    if team.me == 0:
        found[LEFT] = _sum(sums, 3)


def fcg(
    A: Any, b: Array, x0: Array | None, *, rtol: float, atol: float, maxiter: int, M: Any,
    callback: Any, threads: int | None,
) -> tuple[Array, int]:  # fmt: skip
    """`flexible.fcg` for a SciPy matrix that has passed a gate, of the type of b."""
    n, kind = b.size, b.dtype
    x = np.zeros(n, kind) if x0 is None else x0.astype(kind)
    r = b.copy() if x0 is None else b - A @ x
    v = Vectors(x, r, r, np.zeros(n, kind), np.zeros(n, kind))
    allowed = max(rtol * norm(b), atol)
    if norm(r) <= allowed:
        return x, 0
    steps = A.indptr.astype(np.int64) + np.arange(n + 1)
    bounds = np.unique(np.append(np.searchsorted(steps, np.arange(0, steps[-1], BLOCK_STEPS)), n))
    sums, found = np.zeros((bounds.size - 1, 4)), np.ones(2)
    rows = rows_of(A.indptr, A.indices, A.data)
    team = crew(threads, work=A.indices.size + 4 * n)
    for k in range(maxiter):
        v = v._replace(z=r.copy() if M is None else np.ascontiguousarray(M @ r, kind))
        if v.z.shape != b.shape:  # the kernel reads one number a row
            raise ValueError(f"solve: preconditioner must return shape {b.shape}, got {v.z.shape}")
        team.run(_advance, rows, bounds, v, sums, found, k == 0)
        if not found[ALONG] > 0:
            return x, -1
        if callback is not None:
            callback(x)
        if found[LEFT] ** 0.5 <= allowed:
            return x, 0
    return x, maxiter
