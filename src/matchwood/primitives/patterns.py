"""Checks that public primitives make of CSR arrays before a kernel reads them.

Kernels do not check columns and row pointers: a wrong one would make them read or write outside
the arrays.  To check types and lengths takes no time.  To check every entry takes a pass over them.
A primitive that is much slower than this pass makes it first (`inspect.look_through`).  One that is
as quick as the pass checks while it runs, and calls `inspect.fault` only when something is wrong.

One convention: a public primitive `f` checks its arrays and then calls `trusted_f`, which checks
nothing.  Code whose arrays have passed a gate calls `trusted_f` itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import INDEX, same_size, vector

FLOATS = ("float32", "float64")
NUMBERS = (*INDEX, *FLOATS)


def csr_arrays(
    function: str, indptr: Any, indices: Any, data: Any, kinds: Iterable[str] = NUMBERS
) -> tuple[Any, Any, Any]:
    """The three arrays, contiguous; their types fit and so do their lengths."""
    indptr = vector(function, "indptr", indptr, INDEX)
    indices = vector(function, "indices", indices, INDEX)
    if indptr.dtype != indices.dtype:
        raise TypeError(
            f"{function}: indptr and indices must be of one type, "
            f"got {indptr.dtype} and {indices.dtype}"
        )
    if indptr.size == 0:
        raise ValueError(f"{function}: indptr must have at least one element")
    if data is not None:
        data = vector(function, "data", data, kinds)
        same_size(function, "data", data, "indices", indices)
    if one_place(function, indptr, indices, data) == "cpu":  # on a GPU this would wait
        if indptr[0] != 0:
            raise ValueError(f"{function}: {_start(indptr)}")
        if indptr[-1] != indices.size:
            raise ValueError(f"{function}: {_end(indptr, indices)}")
    return contiguous(indptr), contiguous(indices), contiguous(data)


def one_place(function: str, *arrays: Any) -> str:
    """The engine on which all arrays live; an error when there are two."""
    places = {engines.location(array) for array in arrays if array is not None}
    if len(places) > 1:
        raise TypeError(f"{function}: all arrays must live on one engine, got CPU and GPU arrays")
    return places.pop()


def contiguous(array: Any) -> Any:
    """The array itself, or a copy without gaps."""
    if array is None or array.flags.c_contiguous:
        return array
    return array.copy()


def error_of(
    function: str, facts: Any, indptr: Any, indices: Any, columns: int
) -> ValueError | None:
    """What `facts` (inspect.Structure) say is wrong with a pattern; None when nothing is."""
    kind, at = facts.fault, facts.at
    if kind == "indptr_start":
        what = _start(indptr)
    elif kind == "indptr_order":
        what = (
            f"indptr must not decrease, got {int(indptr[at])} and then {int(indptr[at + 1])} "
            f"at row {at}"
        )
    elif kind == "indptr_end":
        what = _end(indptr, indices)
    elif kind == "index_range":
        within = "at least 0" if columns == ANY else f"within 0..{columns - 1}"
        what = f"indices must be {within}, got {int(indices[at])} at entry {at}"
    else:
        return None
    return ValueError(f"{function}: {what}")


def _start(indptr: Any) -> str:
    return f"indptr must start at 0, got {int(indptr[0])}"


def _end(indptr: Any, indices: Any) -> str:
    return f"indptr must end at the number of indices, {indices.size}, got {int(indptr[-1])}"


ANY = int(np.iinfo(np.int64).max)
"""Given as the number of columns: every column that is not negative is allowed."""


def not_symmetric(function: str) -> ValueError:
    """The error of kernels that rely on symmetry and find that it is missing.

    Symmetry is tested by hashed sums, which are almost never wrong (primitives/inspect).  Where
    they are, kernels stay inside their arrays and end.
    """
    return ValueError(f"{function}: A was taken for symmetric, but its pattern is not")
