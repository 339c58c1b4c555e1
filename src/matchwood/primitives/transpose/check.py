"""Is B the transpose of A?"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def check_transpose(A: tuple[Any, Any, Any], B: tuple[Any, Any, Any], columns: int) -> None:
    """Raise `CheckFailed` unless B holds each entry of A once, mirrored, in order of arrival.

    An entry's place in B is the start of its row plus the number of earlier entries of A in
    that row, so every entry can be looked up on its own.
    """
    indptr, indices, data = A
    t_indptr, t_indices, t_data = B
    answers.of_kind("check_transpose", "iu", indptr=t_indptr, indices=t_indices)
    if len(t_indptr) != columns + 1 or t_indptr[0] != 0 or t_indptr[-1] != len(indices):
        raise CheckFailed("transpose: indptr has the wrong length, start or end")
    if len(t_indices) != len(indices):
        raise CheckFailed(f"transpose: {len(t_indices)} entries, expected {len(indices)}")
    if (data is None) != (t_data is None) or (data is not None and t_data.shape != t_indices.shape):
        raise CheckFailed("transpose: values must be there where A has them, one for each entry")
    used = np.asarray(t_indptr[:-1]).copy()
    for i in range(len(indptr) - 1):
        for k in range(int(indptr[i]), int(indptr[i + 1])):
            j = int(indices[k])
            place = int(used[j])
            used[j] += 1
            if place >= t_indptr[j + 1] or t_indices[place] != i:
                raise CheckFailed(f"transpose: entry ({i}, {j}) is not at place {place}")
            if data is not None and not _same(t_data[place], data[k]):
                raise CheckFailed(f"transpose: the value of ({i}, {j}) differs")


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or bool(one != one and other != other)
