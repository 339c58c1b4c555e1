"""What the gate refuses, and the error messages.  The gate itself is graph.py."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import inputs
from matchwood.primitives.inspect import Structure
from matchwood.primitives.patterns import error_of

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
    error = error_of(caller, facts, indptr, indices, columns)
    if error is not None:
        raise error


def place(view: Any, at: int) -> tuple[int, int]:
    row = int(np.searchsorted(engines.moved(view.indptr, "cpu"), at, "right")) - 1
    return row, int(view.indices[at])


def infinite(caller: str, value: float, row: int, column: int) -> ValueError:
    return ValueError(
        f"{caller}: weights must be finite, got {value} at row {row}, column {column}"
    )


def raise_infinite(view: Any, at: int, caller: str) -> NoReturn:
    raise infinite(caller, float(view.data[at]), *place(view, at))


def refuse_infinite(view: Any, caller: str) -> None:
    good = abs(view.data) < float("inf")  # false for NaN
    if not bool(good.all()):
        raise_infinite(view, int(good.argmin()), caller)


def refuse_overflow(given: Any, sums: Any, integers: bool, caller: str) -> None:
    """Raise if a sum of finite duplicates overflows, or a sum of integers is not exact."""
    limit = float(np.finfo(sums.dtype).max)
    over = not bool((abs(sums) <= limit).all()) and bool((abs(given) <= limit).all())
    refuse_sums(over, float(abs(sums).max()) if integers and sums.size else 0.0, caller)


def refuse_sums(over: bool, largest: float, caller: str) -> None:
    """Raise where sums of duplicates overflow; `largest` is that of integers, 0 of floats."""
    if over:
        raise ValueError(f"{caller}: duplicates must have a finite sum, got overflow; scale them")
    if largest > inputs.EXACT:
        raise ValueError(
            f"{caller}: sums of integer duplicates must be exact in float64, at most 2**53 in "
            f"size, got {largest:.17g}; scale them or pass floats"
        )


def refuse_overflow_of_directions(view: Any, caller: str) -> None:
    """Raise unless all ``|a_ij| + |a_ji|`` are finite."""
    good = abs(view.data) <= float(np.finfo(view.data.dtype).max)
    if not bool(good.all()):
        raise overflow_of_directions(caller, *place(view, int(good.argmin())))


def overflow_of_directions(caller: str, row: int, column: int) -> ValueError:
    return ValueError(
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
    raise duplicate(caller, int(rows[at]), int(cols[at]))


def duplicate(caller: str, row: int, column: int) -> ValueError:
    return ValueError(
        f"{caller}: entries must be given once with duplicates='error', "
        f"got ({row}, {column}) more than once"
    )
