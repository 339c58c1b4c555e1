"""Compaction.  Read on in reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from typing import Any

from matchwood.arguments import same_size, vector
from matchwood.engines import call

__all__ = ["compact"]

FLAGS = ("bool", "uint8", "int8", "int32", "int64")
VALUES = ("int32", "int64", "uint32", "uint64", "float32", "float64")


def compact(
    mask: Any, values: Any = None, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """Keep what a mask marks, in order: the positions, or the values there.

    Parameters
    ----------
    mask : (n,) array of bool, uint8, int8, int32 or int64
        What is not 0 is kept.
    values : (n,) array of int32, int64, uint32, uint64, float32 or float64, or None
        None stands for the positions 0 .. n - 1 (int32 where they fit).
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `mask` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    kept : (k,) array of the type of `values`
        ``values[mask != 0]``.

    Raises
    ------
    TypeError, ValueError
        If an array is of another type; if it is not one-dimensional or the sizes differ.

    Notes
    -----
    Each thread counts in its share, then writes from where the shares before it end: two passes
    over the mask.  The result does not depend on the engine or the threads.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.compact import compact
    >>> mask = np.array([False, True, True, False, True])
    >>> compact(mask).tolist()
    [1, 2, 4]
    >>> compact(mask, np.array([10, 11, 12, 13, 14], dtype=np.int32)).tolist()
    [11, 12, 14]
    """
    mask = vector("compact", "mask", mask, FLAGS)
    if values is not None:
        values = vector("compact", "values", values, VALUES)
        same_size("compact", "values", values, "mask", mask)
    return call(__name__, "compact", (mask, values), engine, threads=threads)
