"""Are these edges in order?  Compares each with the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.errors import CheckFailed
from matchwood.primitives.edge_order.reference import edge_key


def check_order(u: Any, v: Any, w: Any, perm: Any, *, seed: int = 0, ties: str = "hash") -> None:
    """Raise `CheckFailed` unless `perm` sorts the edges (see `order_edges`)."""
    u, v, w, perm = (np.asarray(engines.moved(array, "cpu")) for array in (u, v, w, perm))
    answers.of_kind("check_order", "iu", perm=perm)
    if perm.shape != u.shape or not np.array_equal(np.sort(perm), np.arange(u.size)):
        raise CheckFailed(f"edge order: perm must hold each of 0 .. {u.size - 1} once")
    previous = None
    for place, k in enumerate(perm.tolist()):
        key = (*edge_key(w[k].item(), u[k].item(), v[k].item(), seed, ties == "hash"), k)
        if previous is not None and key < previous:
            raise CheckFailed(
                f"edge order: edge {k} is at place {place}, but comes before the edge at "
                f"place {place - 1}"
            )
        previous = key
