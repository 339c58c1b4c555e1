"""The weakest edge of a cycle: the least by (weight, smaller end, larger end)."""

from __future__ import annotations

from typing import Any

from matchwood.engines.cpu import device


@device
def weaker(weight: Any, a: int, b: int, best: Any, low: int, high: int) -> bool:
    """Whether {a, b} comes before {low, high} of weight `best`, a < b; low < 0: no edge yet."""
    return low < 0 or weight < best or (weight == best and (a < low or (a == low and b < high)))
