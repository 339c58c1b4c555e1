"""Host side of gpu.cu; what it shares with plain systems is in ../elements/gpu.py."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.tridiagonal.elements import gpu as elements

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "reduce_rows<T,I>",
        "substitute_rows = substitute_rows<T,I,false>",
        "substitute_and_check = substitute_rows<T,I,true>",
        *("join = join<2,T>", "top = top<2,T>", "expand = expand<2,T>", "repair = repair<2,T>"),
    ),
    types={"T": (np.float32, np.float64)},
)


class Solver(elements.Solver):
    """Solves systems of blocks of one size and type on the current stream, without waiting."""

    def __init__(self, n: int, dtype: Any, index: Any = np.int32, **options: Any) -> None:
        rows = SOURCE.constant("PART_BYTES") // (4 * np.dtype(dtype).itemsize)
        super().__init__(SOURCE, n, 2, rows, dtype, index, **options)


solve = functools.partial(elements.solve, Solver)
