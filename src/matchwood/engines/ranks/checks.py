"""Checks of the arguments of collectives, and reductions over the arrays of several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import is_integer, one_of, shown

OPERATIONS = ("sum", "min", "max", "or")
COMBINE = {"sum": "add", "min": "minimum", "max": "maximum", "or": "bitwise_or"}
ALLOWED = {"sum": "iufc", "min": "biuf", "max": "biuf", "or": "biu"}  # kinds of numbers
NUMBERS = frozenset(map(np.dtype, "?bhilqBHILQefdgFDG"))  # types that are checked quickly
Counts = np.ndarray[Any, np.dtype[np.int64]]


def module_of(array: Any) -> Any:
    """NumPy or CuPy; `engines.xp` at a tenth of the cost for the usual case."""
    return np if type(array) is np.ndarray else engines.xp(array)


def vector(function: str, array: Any, dimensions: int | None = 1) -> Any:
    """`array` as a contiguous array, else a clear error; `dimensions` None permits any number."""
    usual = type(array) is np.ndarray and array.dtype in NUMBERS and array.flags.c_contiguous
    if usual and dimensions in (None, array.ndim):
        return array
    is_array = isinstance(array, np.ndarray) or engines.location(array) == "gpu"
    if not is_array or isinstance(array, np.ma.MaskedArray):
        kind = type(array).__name__
        raise TypeError(f"{function}: array must be a NumPy or CuPy array, got {kind}")
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"{function}: array must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind not in "biufc" or not array.dtype.isnative:
        raise TypeError(f"{function}: array must hold numbers or bools, got dtype {array.dtype}")
    found = module_of(array).ascontiguousarray(array)
    return found if found.ndim == array.ndim else found.reshape(())  # no dimension is added


def operation(function: str, op: Any, dtype: np.dtype[Any]) -> str:
    """The name of a reduction that numbers of this type allow."""
    one_of(function, "op", op, OPERATIONS)
    if dtype.kind not in ALLOWED[op]:
        hint = "; op='or' says whether any is true" if dtype.kind == "b" else ""
        raise TypeError(f"{function}: op={op!r} is not defined for {dtype}{hint}")
    return str(op)


def shares(function: str, counts: Any, size: int, total: int) -> Counts:
    """`counts` as an array: how many of `total` elements belong to each of `size` ranks."""
    found = np.asarray(engines.moved(counts, "cpu") if hasattr(counts, "dtype") else counts)
    if found.ndim != 1 or found.size != size:
        raise ValueError(
            f"{function}: counts must have one entry for each of {size} ranks, "
            f"got shape {found.shape}"
        )
    if found.dtype.kind not in "iu":
        raise TypeError(f"{function}: counts must hold integers, got dtype {found.dtype}")
    if int(found.min()) < 0:
        raise ValueError(f"{function}: counts must not be negative, got {int(found.min())}")
    if sum(found.tolist()) != total:
        raise ValueError(
            f"{function}: counts must add up to the {total} elements of array, "
            f"got {sum(found.tolist())}"
        )
    return found.astype(np.int64)


def rank(function: str, name: str, value: Any, size: int) -> int:
    """`value` as the number of a rank."""
    if not is_integer(value):
        raise TypeError(f"{function}: {name} must be an integer, got {shown(value)}")
    if not 0 <= value < size:
        got = shown(int(value))
        raise ValueError(f"{function}: {name} must lie within 0..{size - 1}, got {got}")
    return int(value)


def even_shares(total: int, size: int) -> Counts:
    """`total` elements divided among `size` ranks in runs whose lengths differ by at most one."""
    bounds = np.arange(size + 1, dtype=np.int64) * total // size
    return np.diff(bounds)


def reduced(parts: Any, op: str, out: Any = None) -> Any:
    """The reduction of several arrays of one length, from the first to the last; into `out`.

    The order is fixed, so a sum of floats is the same number in every communicator.
    """
    combine = getattr(module_of(parts[0]), COMBINE[op])
    if len(parts) == 1 or out is None:
        result = parts[0].copy()
        if out is not None:
            out[...] = result
        rest = parts[1:]
    else:
        result, rest = combine(parts[0], parts[1], out=out), parts[2:]
    for part in rest:
        combine(result, part, out=result)
    return result
