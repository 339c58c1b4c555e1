"""What the gate refuses, and the error messages.  The gate itself is graph.py."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import inputs
from matchwood.primitives.inspect import Structure

INT32_MAX = np.iinfo(np.int32).max


def index_kind(n: int, nnz: int, asked: Any, caller: str) -> Any:
    """The type of indices that was asked for, or the smaller one that fits."""
    fits = max(n, nnz) <= INT32_MAX
    if asked is None:
        return np.dtype(np.int32 if fits else np.int64)
    kind = arguments.any_type(asked)
    if kind is None or kind not in (np.int32, np.int64):
        got = arguments.shown(asked) if kind is None else kind
        raise TypeError(f"{caller}: index_dtype must be int32 or int64, got {got}")
    if kind == np.int32 and not fits:
        raise ValueError(
            f"{caller}: index_dtype int32 is too small for {n} vertices and {nnz} entries"
        )
    return kind


def refuse_length(indptr: Any, rows: int, caller: str) -> None:
    """Raise unless indptr has rows + 1 elements; before a kernel reads the last of them."""
    if indptr.shape[0] != rows + 1:
        raise ValueError(
            f"{caller}: indptr must have {rows + 1} elements for {rows} rows, got {indptr.shape[0]}"
        )


def refuse_fault(facts: Structure, indptr: Any, indices: Any, columns: int, caller: str) -> None:
    at = facts.at
    if facts.fault == "indptr_start":
        raise ValueError(f"{caller}: indptr must start at 0, got {int(indptr[0])}")
    if facts.fault == "indptr_order":
        raise ValueError(
            f"{caller}: indptr must not decrease, got {int(indptr[at])} and then "
            f"{int(indptr[at + 1])} at row {at}"
        )
    if facts.fault == "indptr_end":
        raise ValueError(
            f"{caller}: indptr must end at the number of indices, {indices.shape[0]}, "
            f"got {int(indptr[-1])}"
        )
    if facts.fault == "index_range":
        raise ValueError(
            f"{caller}: indices must be within 0..{columns - 1}, "
            f"got {int(indices[at])} at entry {at}"
        )


def place(view: Any, at: int) -> tuple[int, int]:
    row = int(np.searchsorted(engines.moved(view.indptr, "cpu"), at, "right")) - 1
    return row, int(view.indices[at])


def raise_infinite(view: Any, at: int, caller: str) -> NoReturn:
    row, column = place(view, at)
    raise ValueError(
        f"{caller}: weights must be finite, got {float(view.data[at])} at row {row}, "
        f"column {column}"
    )


def refuse_infinite(view: Any, caller: str) -> None:
    good = abs(view.data) < float("inf")  # false for NaN
    if not bool(good.all()):
        raise_infinite(view, int(good.argmin()), caller)


def refuse_overflow(given: Any, sums: Any, integers: bool, caller: str) -> None:
    """Raise if a sum of finite duplicates overflows, or a sum of integers is not exact."""
    limit = float(np.finfo(sums.dtype).max)
    if sums.size and not bool((abs(sums) <= limit).all()) and bool((abs(given) <= limit).all()):
        raise ValueError(f"{caller}: duplicates must have a finite sum, got overflow; scale them")
    if integers and sums.size and float(abs(sums).max()) > inputs.EXACT:
        raise ValueError(
            f"{caller}: sums of integer duplicates must be exact in float64, at most 2**53 in "
            f"size, got {float(abs(sums).max()):.17g}; scale them or pass floats"
        )


def refuse_overflow_of_directions(view: Any, caller: str) -> None:
    """Raise unless all |a_ij| + |a_ji| are finite."""
    good = abs(view.data) <= float(np.finfo(view.data.dtype).max)
    if not bool(good.all()):
        row, column = place(view, int(good.argmin()))
        raise ValueError(
            f"{caller}: |a_ij| + |a_ji| must be finite, got overflow at row {row}, "
            f"column {column}; scale the weights"
        )


def refuse_duplicates(indptr: Any, indices: Any, caller: str) -> NoReturn:
    """Raise the error that names an entry given more than once; there must be one."""
    indptr, indices = engines.moved(indptr, "cpu"), engines.moved(indices, "cpu")
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    order = np.lexsort((indices, rows))
    rows, cols = rows[order], indices[order]
    at = int(((rows[1:] == rows[:-1]) & (cols[1:] == cols[:-1])).argmax())
    raise ValueError(
        f"{caller}: entries must be given once with duplicates='error', "
        f"got ({int(rows[at])}, {int(cols[at])}) more than once"
    )
