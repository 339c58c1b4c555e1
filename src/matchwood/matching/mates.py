"""What makes an array of mates one: the rule that checks and functions share."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


def fault(mate: Any, n: int) -> str | None:
    """What is wrong with the mates of n vertices, naming the first; None when nothing is."""
    if mate.shape != (n,):
        return f"mate must have {n} elements, got shape {mate.shape}"
    if n == 0:
        return None
    xp = engines.cupy() if engines.location(mate) == "gpu" else np
    outside = (mate < -1) | (mate >= n)
    if outside.any():
        v = int(outside.argmax())
        return f"mate[{v}] is {int(mate[v])}, no vertex of 0..{n - 1} and not -1"
    ends = xp.arange(n, dtype=mate.dtype)
    lone = (mate >= 0) & ((mate[mate] != ends) | (mate == ends))
    if lone.any():
        v = int(lone.argmax())
        u = int(mate[v])
        if u == v:
            return f"mate[{v}] is {v} itself"
        return f"mate[{v}] is {u}, but mate[{u}] is {int(mate[u])}"
    return None
