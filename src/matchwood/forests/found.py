"""What `linear_forest` asks of its engines.  Imports nothing of ours: kernels depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Found(NamedTuple):
    """What an engine returns; the arrays live where the table lives."""

    perm: Any
    path: Any
    position: Any
    place: Any
    cuts: Callable[[], Any]  # (R, 2) removed edges, in any order, either end first
    seconds: Callable[[], Mapping[str, float]]  # by phase
