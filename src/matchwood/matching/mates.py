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
    if engines.location(mate) == "gpu":
        from matchwood.matching.gpu_mates import OUTSIDE, first_fault

        code, v = first_fault(mate, n)
        outside, lone = code == OUTSIDE, code != 0
    else:
        outside, lone, v = _first_fault(mate, n)
    if outside:
        return f"mate[{v}] is {int(mate[v])}, no vertex of 0..{n - 1} and not -1"
    if lone:
        u = int(mate[v])
        if u == v:
            return f"mate[{v}] is {v} itself"
        return f"mate[{v}] is {u}, but mate[{u}] is {int(mate[u])}"
    return None


def _first_fault(mate: Any, n: int) -> tuple[bool, bool, int]:
    """Whether a mate is no vertex; whether one is not mutual; and whose is the first."""
    outside = (mate < -1) | (mate >= n)
    if outside.any():
        return True, False, int(outside.argmax())
    ends = np.arange(n, dtype=mate.dtype)
    lone = (mate >= 0) & ((mate[mate] != ends) | (mate == ends))
    return False, bool(lone.any()), int(lone.argmax())
