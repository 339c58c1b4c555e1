"""The first edge of a row by its definition, for the references of several methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matchwood.primitives.edge_order.reference import edge_key


def first_edge(
    u: int, among: Iterable[int], indices: Any, data: Any, seed: int, by_hash: bool
) -> int | None:
    """Of the entries of u at these places, the first in the order of edges."""
    return min(among, key=lambda k: edge_key(data[k], u, indices[k], seed, by_hash), default=None)
