"""Orders by degree on the GPU: one stable sort of the numbers that `keys` gives."""

from __future__ import annotations

from typing import Any

from matchwood.engines import gpu
from matchwood.ordering.degree import keys
from matchwood.primitives.sort import radix_sort


def order(view: Any, rule: str, *, threads: int | None = None) -> Any:
    with gpu.guard("degree_order", 40 * view.n):
        return radix_sort(keys(view, rule))[1].astype(view.indptr.dtype, copy=False)
