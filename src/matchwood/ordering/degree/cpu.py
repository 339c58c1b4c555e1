"""Orders by degree on a team: one stable sort of the numbers that `keys` gives."""

from __future__ import annotations

from typing import Any

from matchwood.ordering.degree import keys
from matchwood.primitives.sort import radix_sort


def order(view: Any, rule: str, *, threads: int | None = None) -> Any:
    perm = radix_sort(keys(view, rule), threads=threads)[1]
    return perm.astype(view.indptr.dtype, copy=False)
