"""Are the paths of a tridiagonal matrix positive definite: by the eigenvalues of each path."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BISECTIONS, MARGIN = 10, 0.1  # as in cpu.py


def examine(
    dl: Array, d: Array, du: Array, *, change: bool, threads: int | None = None
) -> tuple[int, int]:
    """How many paths are not positive definite, and how many of them no factor makes so.

    With `change`, `dl` and `du` are overwritten in paths that need a factor.
    """
    indefinite = not_positive = 0
    starts = [k for k in range(len(d)) if k == 0 or not dl[k].any()]
    for start, end in zip(starts, [*starts[1:], len(d)], strict=True):
        path = slice(start, end)
        lower, middle, upper = dl[path], d[path], du[path]
        if _positive(lower, middle, upper, 1.0):
            continue
        indefinite += 1
        not_positive += not _positive(lower, middle, upper, 0.0)
        if change:
            part = (1 - MARGIN) * _largest_part(lower, middle, upper)
            dl[start + 1 : end] *= part
            du[start : end - 1] *= part
    return indefinite, not_positive


def _largest_part(dl: Array, d: Array, du: Array) -> float:
    """The largest factor for the entries off the diagonal, by bisection."""
    least, most = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (least + most) / 2
        if _positive(dl, d, du, middle):
            least = middle
        else:
            most = middle
    return least


def _positive(dl: Array, d: Array, du: Array, part: float) -> bool:
    """Are all eigenvalues of the path positive, when it is scaled to a diagonal of ones?"""
    size = 1 if d.ndim == 1 else 2
    whole = np.zeros((len(d) * size, len(d) * size))
    for k in range(len(d)):
        here, before = slice(k * size, (k + 1) * size), slice((k - 1) * size, k * size)
        whole[here, here] = d[k]
        if k > 0:
            whole[here, before] = part * dl[k]
            whole[before, here] = part * du[k - 1]
    diagonal = whole.diagonal()
    if not (diagonal > 0).all():
        return False
    scale = 1 / np.sqrt(diagonal)
    least = np.linalg.eigvalsh(scale[:, None] * whole * scale).min()
    return bool(least > 16 * np.finfo(d.dtype).eps)
