"""Exclusive scan.  Read on in reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import INDEX, any_type, shown, vector
from matchwood.engines import call

__all__ = ["exclusive_scan"]


def exclusive_scan(
    counts: Any, *, dtype: Any = None, engine: str | None = None, threads: int | None = None
) -> Any:
    """Sum up all elements before each one: where row i starts, when rows have these lengths.

        offsets[i] = counts[0] + ... + counts[i - 1],    i = 0 .. n

    Parameters
    ----------
    counts : (n,) int32 or int64 array
        Not changed.  Negative numbers are allowed.
    dtype : int32, int64 or None
        Type of the result; None takes that of `counts`.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `counts` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    offsets : (n + 1,) array of `dtype`
        ``offsets[0]`` is 0, ``offsets[n]`` the sum of all.

    Raises
    ------
    TypeError
        If `counts` or `dtype` is of another type.
    ValueError
        If `counts` is not one-dimensional, or if an offset does not fit an int32 `dtype`.
        (Sums beyond int64 are not looked for.)

    Notes
    -----
    Each thread sums its share, then scans it from where the shares before it end: two passes over
    `counts`, one over `offsets`.  The result does not depend on the engine or the threads.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.scan import exclusive_scan
    >>> exclusive_scan(np.array([3, 0, 2], dtype=np.int32)).tolist()
    [0, 3, 3, 5]
    >>> exclusive_scan(np.empty(0, dtype=np.int32)).tolist()
    [0]
    """
    counts = vector("exclusive_scan", "counts", counts, INDEX)
    result = counts.dtype if dtype is None else any_type(dtype)
    if result is None or result.name not in INDEX:
        raise TypeError(f"exclusive_scan: dtype must be int32 or int64, got {shown(dtype)}")
    return call(__name__, "exclusive_scan", (counts,), engine, dtype=result, threads=threads)


def does_not_fit(dtype: Any) -> ValueError:
    """The error of all engines for an offset too large for `dtype`."""
    return ValueError(
        f"exclusive_scan: a sum does not fit {np.dtype(dtype)}; ask for dtype=np.int64"
    )
