"""Sorting: stable with a payload, or keys alone.

Read on in reference.py, check.py, cpu.py, gpu.py.
"""

from __future__ import annotations

from typing import Any

from matchwood.arguments import INDEX, count, same_size, vector
from matchwood.engines import call, location, resolve

__all__ = ["radix_sort", "sort_keys"]

KEYS = ("uint32", "uint64", "int32", "int64", "float32", "float64")


def radix_sort(
    keys: Any,
    payload: Any = None,
    *,
    bits: int | None = None,
    engine: str | None = None,
    threads: int | None = None,
) -> tuple[Any, Any]:
    """Sort keys and carry a payload along; equal keys keep their order.

    Parameters
    ----------
    keys : (n,) array of uint32, uint64, int32, int64, float32 or float64
        Not changed.
    payload : (n,) array of int32 or int64, or None
        What is moved with each key.  None carries the positions 0 .. n - 1 (int32 where they
        fit), so that the second result is what ``np.argsort(keys, kind="stable")`` gives.
    bits : int or None
        Only the lowest `bits` bits of unsigned keys are looked at; the caller knows that the
        others are 0, or wants them ignored.  None looks at all.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `keys` already live.
    threads : int or None
        CPU only.

    Returns
    -------
    keys, payload : two new (n,) arrays

    Raises
    ------
    TypeError
        If an array is of another type, or `bits` is given for keys that are not unsigned.
    ValueError
        If an array is not one-dimensional, the sizes differ, or `bits` is not in 0 .. key width.

    Notes
    -----
    Signed and floating keys are compared through a one-to-one map to unsigned ones
    (`reference.order_bits`).  For floats that is IEEE 754's total order: -0.0 comes before 0.0,
    NaN with a sign before everything and without one after everything.

    Least significant digit first, one stable pass a digit; a digit that is the same in all keys
    costs no pass.  Work O(n) for each of at most 4 or 8 digits.  Memory: twice keys and payload.
    The order is total (key, position), so every engine gives the same arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.sort import radix_sort
    >>> keys, order = radix_sort(np.array([3.0, -1.0, 3.0, -0.0], dtype=np.float32))
    >>> keys.tolist(), order.tolist()
    ([-1.0, -0.0, 3.0, 3.0], [1, 3, 0, 2])
    """
    keys = vector("radix_sort", "keys", keys, KEYS)
    if payload is not None:
        payload = vector("radix_sort", "payload", payload, INDEX)
        same_size("radix_sort", "payload", payload, "keys", keys)
    width = 8 * keys.dtype.itemsize
    if bits is not None:
        if keys.dtype.kind != "u":
            raise TypeError(f"radix_sort: bits is for unsigned keys, got {keys.dtype} keys")
        if count("radix_sort", "bits", bits) > width:
            raise ValueError(f"radix_sort: bits must be at most {width}, got {bits}")
    resolve(location(keys), engine, "radix_sort")
    result: tuple[Any, Any] = call(
        __name__, "sort_pairs", (keys, payload), engine, bits=bits, threads=threads
    )
    return result


def sort_keys(keys: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """Sort keys without a payload.

    Parameters
    ----------
    keys : (n,) array of uint32 or uint64
        Not changed.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `keys` already live.
    threads : int or None
        CPU only.

    Returns
    -------
    keys : a new (n,) array

    Raises
    ------
    TypeError
        If the array is of another type.
    ValueError
        If it is not one-dimensional.

    Notes
    -----
    On a team, one pass puts the keys into 256 ranges by their leading bits, and members sort the
    ranges that fit into their caches by NumPy's vector code; ranges that hold a large part of
    all keys are divided again.  Equal keys are the same bits, so every engine gives the same
    array.  Work O(n log n), memory twice the keys.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.sort import sort_keys
    >>> sort_keys(np.array([3, 1, 2], dtype=np.uint64)).tolist()
    [1, 2, 3]
    """
    keys = vector("sort_keys", "keys", keys, ("uint32", "uint64"))
    return call(__name__, "sort_keys", (keys,), engine, threads=threads)
