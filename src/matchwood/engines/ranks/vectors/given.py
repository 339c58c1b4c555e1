"""Answers that are spread over ranks, as checks take them.

The kind of error is that of checks on one machine (answers.py): what cannot be an answer at all is
a TypeError, what is of the right kind and wrong is a `CheckFailed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.engines.ranks.vectors import DistributedVector
from matchwood.errors import CheckFailed

Array = np.ndarray[Any, Any]


def own_integers(spread: Any, caller: str, problem: str, name: str, value: Any) -> Array:
    """The own values of a DistributedVector of integers, as int64 on the CPU.

    It must be spread as `spread` is: a DistributedGraph, or another vector.
    """
    if not isinstance(value, DistributedVector):
        kind = type(value).__name__
        raise TypeError(f"{caller}: {name} must be a DistributedVector, got {kind}")
    mine, theirs = layout_of(spread), layout_of(value)
    if mine != theirs:
        raise CheckFailed(f"{problem}: {name} must be spread over {mine}, got {theirs}")
    owned = (spread.grid.owned,)
    return answers.integers(caller, problem, name, value.local, owned, "cpu")  # type: ignore[no-any-return]


def layout_of(spread: Any) -> str:
    """How a graph or a vector is spread, in words; equal where it is the same."""
    grid, order = spread.grid, spread.order
    numbered = "" if order is None else f", {order.name}"
    return f"{grid.R}x{grid.C} ranks ({grid.n} vertices, {grid.layout}{numbered})"


def first_of(wrong: Array, ids: Array) -> tuple[int, int] | None:
    """(vertex, place) of the smallest vertex that is marked; None where none is."""
    places = np.flatnonzero(wrong)
    if places.size == 0:
        return None
    at = int(places[ids[places].argmin()])
    return int(ids[at]), at
